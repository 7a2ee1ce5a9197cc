"""Deletes groups and offsets of many groups, and removes members by host, on a running cluster."""

from __future__ import annotations

import pytest

from tests.harness.clusters import fresh
from tests.harness.commandline import Kgctl, fill, member_of


@pytest.fixture
def topic(kgctl: Kgctl) -> str:
    name = fresh("orders")
    assert kgctl("topics", "create", name, "--partitions", 2).exit_code == 0
    fill(kgctl, name, [10, 10])
    return name


def listed(kgctl: Kgctl, stem: str) -> set[str]:
    return {row["group"] for row in kgctl.rows("groups", "list") if row["group"].startswith(stem)}


def test_groups_are_deleted_by_pattern_and_state(kgctl: Kgctl, topic: str) -> None:
    stem = fresh("old")
    empty, other, live = f"{stem}-a", f"{stem}-keep", f"{stem}-b"
    for group in (empty, other, live):
        kgctl.commit(group, topic, p0=1)
    with member_of(kgctl, live, {topic: [0]}):
        chosen = ("groups", "delete", "--match", f"{stem}-[ab]")
        planned = kgctl(*chosen, "--state", "Empty")
        assert (planned.exit_code, listed(kgctl, stem)) == (0, {empty, other, live})
        assert "1 of 1 groups can be deleted." in planned.stderr
        partly = kgctl(*chosen, "--execute")
        assert partly.exit_code == 4
        assert "1 of 2 groups deleted." in partly.stderr
        assert "NON_EMPTY_GROUP" in partly.stdout
        assert listed(kgctl, stem) == {other, live}
        gone = kgctl(*chosen, "--state", "Empty", "--execute")
        assert gone.exit_code == 5
        assert f"No group matches '{stem}-[ab]' and state Empty." in gone.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["g", "--match", "g"],
        ["g", "--state", "Empty"],
        ["g", "--unused-for", "1d"],
        ["--match", "["],
        ["--match", ""],
    ],
)
def test_a_selection_that_is_missing_or_unclear_is_a_usage_error(arguments: list[str]) -> None:
    assert Kgctl()("groups", "delete", *arguments, "--execute").exit_code == 2


def test_only_groups_that_are_proven_to_be_unused_are_deleted(kgctl: Kgctl, topic: str) -> None:
    stem = fresh("old")
    simple, left, live = f"{stem}-simple", f"{stem}-left", f"{stem}-live"
    for group in (simple, left, live):
        kgctl.commit(group, topic, p0=1)
    with member_of(kgctl, left, {topic: [0]}):
        pass
    with member_of(kgctl, live, {topic: [0]}):
        chosen = ("groups", "delete", "--match", f"{stem}-.*", "--unused-for")
        young = kgctl(*chosen, "7d", "--execute")
        assert (young.exit_code, listed(kgctl, stem)) == (0, {simple, left, live})
        assert "0 of 0 groups deleted." in young.stderr
        done = kgctl(*chosen, "1ms", "--execute")
        assert done.exit_code == 0, done.output
        # Without the clock of the cluster, the newest group may be in use.
        assert listed(kgctl, stem) in ({live}, {left, live})


def test_offsets_of_a_topic_are_deleted_from_all_groups_that_have_them(kgctl: Kgctl, topic: str) -> None:
    stem, other = fresh("g"), fresh("other")
    assert kgctl("topics", "create", other).exit_code == 0
    for group in (f"{stem}-a", f"{stem}-b"):
        kgctl.commit(group, topic, p0=1)
        kgctl.commit(group, other, p0=0)
    kgctl.commit(f"{stem}-c", other, p0=0)
    done = kgctl("groups", "delete-offsets", "--match", f"{stem}-.*", "--topic", topic, "--execute")
    assert done.exit_code == 0
    assert [line.split()[:3] for line in done.stdout.splitlines()[1:]] == [
        [f"{stem}-a", topic, "0"],
        [f"{stem}-b", topic, "0"],
    ]
    again = kgctl("groups", "delete-offsets", "--match", f"{stem}-.*", "--topic", topic, "--execute")
    assert again.exit_code == 5
    left = kgctl.rows("groups", "describe", f"{stem}-a", f"{stem}-b", f"{stem}-c")
    assert {row["topic"] for row in left} == {other}
    named = kgctl("groups", "delete-offsets", f"{stem}-a", fresh("absent"), "--topic-match", "oth.*", "--execute")
    assert named.exit_code == 4


def test_the_members_on_a_host_are_removed_from_all_their_groups(kgctl: Kgctl, topic: str) -> None:
    stem = fresh("g")
    one, two = f"{stem}-a", f"{stem}-b"
    with member_of(kgctl, one, {topic: [0]}), member_of(kgctl, two, {topic: [0]}):
        chosen = ("groups", "remove-members", "--match", f"{stem}-.*")
        elsewhere = kgctl(*chosen, "--host", "10.9.9.9", "--execute")
        assert (elsewhere.exit_code, elsewhere.stdout) == (5, "")
        assert "None of these groups has such a member." in elsewhere.stderr
        named = kgctl("groups", "remove-members", one, "--host", "10.9.9.9")
        assert named.exit_code == 5
        assert f"Group '{one}' has no member on host '10.9.9.9'." in named.stderr
        done = kgctl(*chosen, "--host", "127.0.0.1", "--execute")
        assert done.exit_code == 0
        assert [line.split()[0] for line in done.stdout.splitlines()[1:]] == [one, two]
        assert [row["members"] for row in kgctl.rows("groups", "describe", one, two, "--state")] == [0, 0]
