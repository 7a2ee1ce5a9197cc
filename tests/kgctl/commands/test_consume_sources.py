"""`kgctl consume` on a running cluster: partitions by name, with and without commits, and topics that match a pattern."""

from __future__ import annotations

import pytest

from tests.harness.clusters import fresh
from tests.harness.commandline import Kgctl, fill, member_of
from tests.harness.consuming import committed, filled, more, rows, state, written
from tests.harness.streaming import running

ALL = ("--from-beginning", "--until-end")


def test_partitions_of_several_topics_are_read(kgctl: Kgctl) -> None:
    first, second = filled(kgctl, "a"), filled(kgctl, "b")
    shown = kgctl("consume", f"{first}:0", f"{second}:1-2", f"{first}:2,0", *ALL)
    assert (shown.exit_code, shown.stderr) == (0, "")
    assert {line[:2] for line in shown.stdout.split()} == {"a0", "a2", "b1", "b2"}
    assert len(shown.stdout.split()) == 40


def test_a_partition_that_does_not_exist_is_an_error_that_names_the_count(kgctl: Kgctl) -> None:
    topic = filled(kgctl)
    shown = kgctl("consume", f"{topic}:1-3", *ALL)
    assert (shown.exit_code, shown.stdout) == (5, "")
    assert "has no partition 3: it has 3" in shown.stderr


def test_named_partitions_with_a_group_continue_at_its_commits_without_a_member(kgctl: Kgctl) -> None:
    topic, group = filled(kgctl), fresh("g")
    words = ("consume", f"{topic}:0-1", "--group", group)
    first = kgctl(*words, "--from-beginning", "--max-messages", 13)
    assert (first.exit_code, first.stderr) == (0, "")
    assert sum(offset or 0 for offset in committed(kgctl, group).values()) == 13
    assert state(kgctl, group) == "Empty"
    second = kgctl(*words, "--until-end")
    assert (second.exit_code, second.stderr) == (0, "")
    read = first.stdout.split() + second.stdout.split()
    assert sorted(read) == sorted(value for value in written() if value[1] in "01")
    assert committed(kgctl, group) == {0: 10, 1: 10}
    assert kgctl(*words, "--offset", 7, "--until-end").stdout.split()[0][-1] == "7"


def test_named_partitions_are_committed_while_the_command_runs_and_after_a_signal(kgctl: Kgctl) -> None:
    topic, group = filled(kgctl), fresh("g")
    words = ("consume", f"{topic}:2", "--group", group, "--from-beginning", "--commit-interval", 0.05)
    with running(str(kgctl.bootstrap), *words) as reading:
        assert reading.lines(10)[-1] == "p2-9"
        while committed(kgctl, group) != {2: 10}:
            assert reading.program.poll() is None
        assert rows(kgctl, group, "--members") == []
        more(kgctl, topic, "q")
        reading.lines(10)
        reading.interrupt()
        assert reading.wait() == (0, "")
    assert committed(kgctl, group) == {2: 20}


@pytest.mark.parametrize("words", [(), ("--commit", "sync"), ("--delivery", "at-most-once")])
def test_a_group_with_members_refuses_commits_of_named_partitions(kgctl: Kgctl, words: tuple[str, ...]) -> None:
    topic, group = filled(kgctl), fresh("g")
    with member_of(kgctl, group, {topic: [0, 1, 2]}):
        shown = kgctl("consume", f"{topic}:0", "--group", group, *ALL, *words)
        assert shown.exit_code == 1
        assert f"group {group!r} has active members" in shown.stderr
        assert shown.stdout.split() == ([] if "--delivery" in words else [f"p0-{n}" for n in range(10)])
    assert committed(kgctl, group) == {}


@pytest.mark.parametrize("of_group", [False, True])
def test_a_topic_that_matches_later_is_read_from_its_start(kgctl: Kgctl, of_group: bool) -> None:
    stem = fresh("late")
    words = ["consume", "--include", f"{stem}-.", "--metadata-max-age", 0.1, "--print-partition", "--print-offset"]
    words += ["--group", fresh("g"), "--from-beginning"] if of_group else []
    with running(str(kgctl.bootstrap), *words) as reading:
        assert reading.error_line() == f"No topic matches '{stem}-.' yet; waiting for one."
        for suffix in "ab":
            assert kgctl("topics", "create", f"{stem}-{suffix}", "--partitions", 2).exit_code == 0
            fill(kgctl, f"{stem}-{suffix}", [1, 1])
            assert set(reading.lines(2)) == {f"Partition:{number}\tOffset:0\tv" for number in range(2)}
        reading.interrupt()
        assert reading.wait()[0] == 0


def test_a_pattern_shares_matching_topics_with_the_group(kgctl: Kgctl) -> None:
    stem, group = fresh("many"), fresh("g")
    for suffix in ("-a", "-b", "-ab"):
        assert kgctl("topics", "create", stem + suffix).exit_code == 0
        fill(kgctl, stem + suffix, [2])
    words = ("consume", "--include", f"{stem}-.", "--group", group)
    assert kgctl(*words, *ALL, "--format", r"%t\n").stdout.split() in (
        [f"{stem}-a"] * 2 + [f"{stem}-b"] * 2,
        [f"{stem}-b"] * 2 + [f"{stem}-a"] * 2,
    )
    assert kgctl(*words, *ALL).stdout == ""
    absent = kgctl("consume", "--include", "__consumer_.*", "--group", group, "--until-end")
    assert (absent.exit_code, absent.stderr) == (5, "Error: No topic matches '__consumer_.*'.\n")
