"""Commands understand the options that users of Kafka's tools type."""

from __future__ import annotations

import pytest

from tests.harness.clusters import fresh
from tests.harness.commandline import Kgctl


@pytest.mark.parametrize(
    ("habit", "ours"),
    [
        (["describe", "--group", "A"], ["describe", "A"]),
        (["describe", "--group=A", "--state", "--group", "B"], ["describe", "A", "B", "--state"]),
        (["describe", "--all-groups", "--offsets"], ["describe", "--all", "--offsets"]),
        (["delete", "--group", "A", "--dry-run"], ["delete", "A"]),
        (["delete-offsets", "--group", "A", "--all-topics", "--dry-run"], ["delete-offsets", "A", "--all-topics"]),
        (
            ["reset-offsets", "--group", "A", "--all-topics", "--to-latest", "--dry-run"],
            ["reset-offsets", "A", "--all-topics", "--to-latest"],
        ),
    ],
    ids=lambda words: " ".join(words[:4]),
)
def test_a_command_line_as_for_kafkas_tools_does_the_same(kgctl: Kgctl, habit: list[str], ours: list[str]) -> None:
    topic, names = fresh("t"), {"A": fresh("a"), "B": fresh("b")}
    kgctl("topics", "create", "--topic", topic)
    for group in names.values():
        kgctl.commit(group, topic, p0=0)

    def named(words: list[str]) -> list[str]:
        return [names.get(word, word.replace("=A", f"={names['A']}")) for word in words]

    done, expected = (kgctl("groups", *named(words)) for words in (habit, ours))
    assert (done.exit_code, done.stdout) == (expected.exit_code, expected.stdout)
    assert done.exit_code == 0, done.output
    assert topic in done.stdout or names["A"] in done.stdout


def test_a_command_keeps_its_own_option_of_this_name(kgctl: Kgctl) -> None:
    topic, group = fresh("t"), fresh("g")
    kgctl("topics", "create", topic)
    done = kgctl("consume", "--topic", topic, "--group", group, "--until-end")
    assert done.exit_code == 0, done.output
    assert group in kgctl("groups", "list").stdout
