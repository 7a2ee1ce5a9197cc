"""`kgctl consume --group` on a running cluster: what is committed when, and what a crash does to it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from kgctl import Consumer, TopicPartition
from kgctl.client.consumer.offset_and_metadata import OffsetAndMetadata
from kgctl.commands.records.offset_commits import CommitPolicy, OffsetCommits, When
from tests.harness.clusters import fresh
from tests.harness.commandline import Kgctl
from tests.harness.consuming import committed, filled, more, rows, state, written
from tests.harness.streaming import running, until

RECORDS = 300


def large(kgctl: Kgctl) -> tuple[str, set[str]]:
    """A topic whose records fill a pipe several times, and the numbers that its lines begin with."""
    topic = fresh("large")
    assert kgctl("topics", "create", topic, "--partitions", 2).exit_code == 0
    for partition in range(2):
        text = "".join(f"{partition}-{n} {'x' * 1000}\n" for n in range(RECORDS))
        assert kgctl("produce", topic, "--partition", partition, "--batch-size", 20_000, text=text).exit_code == 0
    return topic, {f"{partition}-{n}" for partition in range(2) for n in range(RECORDS)}


@pytest.mark.parametrize("words", [("--delivery", "at-most-once"), ("--commit", "sync")])
def test_a_kill_while_printing_repeats_or_loses_as_the_delivery_says(kgctl: Kgctl, words: tuple[str, ...]) -> None:
    topic, everything = large(kgctl)
    group = fresh("g")
    # A static member that comes back does not wait for the session of the killed one.
    command = ("consume", topic, "--group", group, "--group-instance-id", "one", "--from-beginning", *words)
    with running(str(kgctl.bootstrap), *command, is_read=False) as first:
        # The pipe is full: the command is between the first record of a batch and the last one.
        until(first.is_blocked, "the pipe is not full")
        first.program.kill()
        before = sum(offset or 0 for offset in committed(kgctl, group).values())
        printed = {line.split()[0] for line in first.rest()}
    assert 0 < len(printed) < len(everything)
    again = kgctl(*command, "--until-end")
    assert again.exit_code == 0, again.output
    repeated = [line.split()[0] for line in again.stdout.splitlines()]
    assert len(repeated) == len(set(repeated))
    if "at-most-once" in words:
        assert before > len(printed)
        assert not printed & set(repeated)
        assert len(repeated) == len(everything) - before
    else:
        assert before == 0
        assert printed & set(repeated)
        assert printed | set(repeated) == everything
    assert sum(offset or 0 for offset in committed(kgctl, group).values()) == len(everything)


def test_at_most_once_commits_only_what_is_printed(kgctl: Kgctl) -> None:
    topic, group = filled(kgctl), fresh("g")
    words = ("consume", topic, "--group", group, "--from-beginning", "--delivery", "at-most-once")
    first = kgctl(*words, "--max-messages", 13)
    assert (first.exit_code, first.stderr) == (0, "")
    assert sum(offset or 0 for offset in committed(kgctl, group).values()) == 13
    second = kgctl(*words, "--until-end")
    assert sorted(first.stdout.split() + second.stdout.split()) == sorted(written())


def test_records_that_a_rebalance_takes_before_their_commit_are_printed_once(kgctl: Kgctl) -> None:
    topic, group = filled(kgctl), fresh("g")
    words = ("consume", topic, "--group", group, "--from-beginning", "--delivery", "at-most-once")
    with running(str(kgctl.bootstrap), *words) as first:
        first.lines(30)
        for stem in "qrs":
            with running(str(kgctl.bootstrap), *words) as second:
                more(kgctl, topic, stem)
                until(lambda: len(rows(kgctl, group, "--members")) == 2, "no second member")
                second.interrupt()
                assert second.wait()[0] == 0
                first.seen += second.seen
        while len(first.seen) < 120:
            first.line()
        first.interrupt()
        assert first.wait()[0] == 0
    assert sorted(first.seen) == sorted(set().union(*(written(stem) for stem in "pqrs")))


@pytest.mark.parametrize("when", [When.BEFORE, When.AFTER])
def test_no_older_offset_follows_a_commit(kgctl: Kgctl, when: When) -> None:
    """Where reading starts is due to be committed when the first batch arrives, whose commit is newer."""
    partition, group = TopicPartition(filled(kgctl), 0), fresh("g")
    with Consumer(bootstrap_servers=kgctl.bootstrap, group_id=group, enable_auto_commit=False) as consumer:
        consumer.assign([partition])
        commits = OffsetCommits(consumer, CommitPolicy(when), is_member=False, notice=pytest.fail)
        commits.start(partition, 2)
        commits.commit_now({partition: 7}, 30.0, lambda: None)
        commits.commit_if_due()
        commits.commit_all(30.0)
        assert consumer.committed([partition]) == {partition: OffsetAndMetadata(7)}


def test_with_commit_sync_each_printed_batch_is_committed(kgctl: Kgctl) -> None:
    topic, group = filled(kgctl), fresh("g")
    with running(
        str(kgctl.bootstrap), "consume", topic, "--group", group, "--from-beginning", "--commit", "sync"
    ) as one:
        one.lines(30)
        until(lambda: committed(kgctl, group) == {0: 10, 1: 10, 2: 10}, "no commit")
        one.program.kill()


def test_without_commits_each_run_reads_the_same(kgctl: Kgctl) -> None:
    topic, group = filled(kgctl), fresh("g")
    kgctl.commit(group, topic, p0=4, p1=10, p2=10)
    for _ in range(2):
        shown = kgctl("consume", topic, "--group", group, "--until-end", "--commit", "none")
        assert (shown.exit_code, shown.stdout.split()) == (0, [f"p0-{n}" for n in range(4, 10)])
    assert committed(kgctl, group) == {0: 4, 1: 10, 2: 10}


def test_a_static_member_keeps_its_place_after_the_end(kgctl: Kgctl) -> None:
    topic, group = filled(kgctl), fresh("g")
    words = ("consume", topic, "--group", group, "--from-beginning", "--group-instance-id", "one")
    assert len(kgctl(*words, "--until-end").stdout.split()) == 30
    (member,) = rows(kgctl, group, "--members")
    assert member["group_instance_id"] == "one"
    assert state(kgctl, group) == "Stable"


def test_notices_name_the_partitions_and_generations_of_each_rebalance(kgctl: Kgctl) -> None:
    topic, group = filled(kgctl), fresh("g")
    words = ("consume", topic, "--group", group, "--from-beginning", "--notices", "--assignor", "cooperative-sticky")
    words = (*words, "--session-timeout", 1.5)
    with running(str(kgctl.bootstrap), *words) as first:
        assert first.error_line() == f"group {group}, generation 1: assigned {topic}:0-2"
        first.lines(30)
        until(lambda: committed(kgctl, group) == {0: 10, 1: 10, 2: 10}, "no commit")
        assert kgctl("groups", "remove-members", group, "--all", "--execute").exit_code == 0
        assert first.error_line() == f"group {group}, generation 1: lost {topic}:0-2"
        assert f": assigned {topic}:0-2" in first.error_line()
        with running(str(kgctl.bootstrap), *words) as second:
            revoked = first.error_line()
            assert f": revoked {topic}:" in revoked
            gained = second.error_line()
            while "assigned no partitions" in gained:  # it waits until the first member has given up its partition
                gained = second.error_line()
            assert gained.partition("assigned ")[2] == revoked.partition("revoked ")[2]
            assert first.error_line().endswith("assigned no other partitions")
            first.interrupt()
            second.interrupt()
            assert (first.wait()[0], second.wait()[0]) == (0, 0)


def test_an_assignor_of_a_module_in_the_current_folder_assigns(
    kgctl: Kgctl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = fresh("assignor").replace("-", "_")
    (tmp_path / f"{name}.py").write_text(
        "from pathlib import Path\n"
        "from kgctl.client.consumer.assignors.range import RangeAssignor\n"
        "class Backwards(RangeAssignor):\n"
        "    name = 'backwards'\n"
        "    def assign(self, cluster, members):\n"
        "        Path('asked').write_text(' '.join(cluster.partition_counts))\n"
        "        return super().assign(cluster, members)\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    topic = filled(kgctl)
    words = ("consume", topic, "--group", fresh("g"), "--from-beginning", "--until-end")
    shown = kgctl(*words, "--assignor", f"{name}:Backwards")
    assert (shown.exit_code, shown.stderr) == (0, "")
    assert len(shown.stdout.split()) == 30
    assert (tmp_path / "asked").read_text() == topic
