"""`kgctl consume --group` on a running cluster: assignments, commits, rebalances, and the state after the end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer as OtherConsumer

from broker.local import LocalBroker
from tests.harness.clusters import Cluster, fresh
from tests.harness.commandline import Kgctl
from tests.harness.consuming import committed, filled, more, owners, rows, state, written
from tests.harness.streaming import PATIENCE_SECONDS, Running, delete_records, running, until


@pytest.fixture
def topic(kgctl: Kgctl) -> str:
    """Three partitions with ten records each: p0-0, p0-1, ..."""
    return filled(kgctl)


@pytest.fixture
def group() -> str:
    return fresh("g")


@pytest.fixture
def member(kgctl: Kgctl, topic: str, group: str) -> Iterator[Running]:
    """One member that has printed all thirty records."""
    with running(str(kgctl.bootstrap), "consume", topic, "--group", group, "--from-beginning") as started:
        assert set(started.lines(30)) == written()
        yield started


def test_the_next_run_continues_after_the_printed_records(kgctl: Kgctl, topic: str, group: str) -> None:
    first = kgctl("consume", topic, "--group", group, "--from-beginning", "--max-messages", 13)
    assert (first.exit_code, first.stderr) == (0, "")
    assert sum(offset or 0 for offset in committed(kgctl, group).values()) == 13
    second = kgctl("consume", topic, "--group", group, "--until-end")
    assert (second.exit_code, second.stderr) == (0, "")
    assert len(second.stdout.split()) == 17
    assert set(first.stdout.split()) | set(second.stdout.split()) == written()
    assert committed(kgctl, group) == {0: 10, 1: 10, 2: 10}


def test_without_commits_a_group_starts_at_the_end(kgctl: Kgctl, topic: str, group: str) -> None:
    result = kgctl("consume", topic, "--group", group, "--until-end")
    assert (result.exit_code, result.stdout) == (0, "")
    assert committed(kgctl, group) == {0: 10, 1: 10, 2: 10}


def test_committed_offsets_override_from_beginning(kgctl: Kgctl, topic: str, group: str) -> None:
    kgctl("consume", topic, "--group", group, "--from-beginning", "--until-end")
    again = kgctl("consume", topic, "--group", group, "--from-beginning", "--until-end")
    assert (again.exit_code, again.stdout) == (0, "")


def test_a_committed_offset_outside_of_the_log_is_reset_with_a_notice(kgctl: Kgctl, topic: str, group: str) -> None:
    kgctl.commit(group, topic, p0=2, p1=10, p2=10)
    delete_records(str(kgctl.bootstrap), topic, 0, 5)
    result = kgctl("consume", topic, "--group", group, "--from-beginning", "--until-end")
    assert result.stdout.split() == [f"p0-{n}" for n in range(5, 10)]
    assert f"{topic}-0 has no offset 2; continuing at 5, the earliest" in result.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_after_a_signal_the_member_commits_and_leaves(
    kgctl: Kgctl, group: str, member: Running, number: signal.Signals
) -> None:
    member.interrupt(number)
    assert member.wait() == (0, "")
    assert state(kgctl, group) == "Empty"
    assert committed(kgctl, group) == {0: 10, 1: 10, 2: 10}


def test_a_running_member_commits_regularly(kgctl: Kgctl, group: str, member: Running) -> None:
    until(lambda: committed(kgctl, group) == {0: 10, 1: 10, 2: 10}, "no commit")
    assert member.program.poll() is None


def test_members_share_the_partitions_and_take_over_when_one_leaves(
    kgctl: Kgctl, topic: str, group: str, member: Running
) -> None:
    with running(str(kgctl.bootstrap), "consume", topic, "--group", group) as second:
        until(lambda: len(set(owners(kgctl, group).values()) - {None}) == 2, "no second member")
        until(lambda: state(kgctl, group) == "Stable", "not stable")
        more(kgctl, topic, "q")
        counts = sorted(set(owners(kgctl, group).values()), key=str)
        assert len(counts) == 2
        until(lambda: sum(offset or 0 for offset in committed(kgctl, group).values()) == 60, "not all committed")
        second.interrupt()
        assert second.wait() == (0, "")
        until(lambda: len(set(owners(kgctl, group).values())) == 1, "no take-over")
        until(lambda: state(kgctl, group) == "Stable", "not stable")
        more(kgctl, topic, "r")
        until(lambda: sum(offset or 0 for offset in committed(kgctl, group).values()) == 90, "not all committed")
    member.interrupt()
    assert member.wait() == (0, "")
    printed = member.seen + second.seen
    assert len(second.seen) in (10, 20)
    assert sorted(printed) == sorted(written() | written("q") | written("r"))


def test_the_partitions_of_a_killed_member_are_taken_over_after_its_session_timeout(
    kgctl: Kgctl, topic: str, group: str
) -> None:
    words = ("consume", topic, "--group", group, "--from-beginning", "--session-timeout", 1)
    with running(str(kgctl.bootstrap), *words) as first, running(str(kgctl.bootstrap), *words) as second:
        until(lambda: len(set(owners(kgctl, group).values()) - {None}) == 2, "no second member")
        first.program.kill()
        until(lambda: len(set(owners(kgctl, group).values())) == 1 and state(kgctl, group) == "Stable", "no take-over")
        more(kgctl, topic, "q")
        while not written("q") <= set(second.seen):
            second.line()


def test_the_broker_assigns_with_the_consumer_protocol(kgctl: Kgctl, topic: str, group: str) -> None:
    words = ("consume", topic, "--group", group, "--from-beginning", "--group-protocol", "consumer", "--notices")
    assign = ("--assignor", "range")
    with running(str(kgctl.bootstrap), *words, *assign) as first, running(str(kgctl.bootstrap), *words) as second:
        until(lambda: len(set(owners(kgctl, group).values()) - {None}) == 2, "no second member")
        until(lambda: sum(offset or 0 for offset in committed(kgctl, group).values()) == 30, "not all committed")
        (row,) = rows(kgctl, group, "--state")
        assert (row["state"], row["members"]) == ("Stable", 2)
        second.interrupt()
        assert second.wait()[0] == 0
        until(lambda: len(set(owners(kgctl, group).values())) == 1, "no take-over")
        # Its first assignment is empty: the other member has all partitions then.
        third = kgctl(*words, "--until-end")
        assert third.exit_code == 0
        assert f"assigned {topic}:" in third.stderr
        first.interrupt()
        assert first.wait()[0] == 0
        assert sorted(first.seen + second.seen) == sorted(written())
    assert state(kgctl, group) == "Empty"


def test_members_of_another_client_can_share_the_group(kgctl: Kgctl, topic: str, group: str, member: Running) -> None:
    other = OtherConsumer(
        {"bootstrap.servers": kgctl.bootstrap, "group.id": group, "partition.assignment.strategy": "range"}
    )
    try:
        other.subscribe([topic])

        def is_shared() -> bool:
            other.poll(0.1)
            return bool(other.assignment()) and len(other.assignment()) < 3

        until(is_shared, "the other client got no share")
        theirs = {partition.partition for partition in other.assignment()}
        more(kgctl, topic, "q")
        ours = {value for value in written("q") if int(value[1]) not in theirs}
        assert set(member.lines(len(ours))) == ours
    finally:
        other.close()


def test_a_group_of_another_protocol_is_an_error(kgctl: Kgctl, topic: str, group: str) -> None:
    other = OtherConsumer(
        {"bootstrap.servers": kgctl.bootstrap, "group.id": group, "partition.assignment.strategy": "cooperative-sticky"}
    )
    try:
        other.subscribe([topic])
        until(lambda: other.poll(0.1) or other.assignment(), "the other client got nothing")
        result = kgctl("consume", topic, "--group", group, "--until-end")
        assert result.exit_code == 1
        assert "INCONSISTENT_GROUP_PROTOCOL" in result.stderr
    finally:
        other.close()


def test_a_join_that_takes_longer_than_the_timeout_exits_with_3(kgctl: Kgctl, topic: str, group: str) -> None:
    stuck = OtherConsumer({"bootstrap.servers": kgctl.bootstrap, "group.id": group, "session.timeout.ms": 30_000})
    try:
        stuck.subscribe([topic])
        until(lambda: stuck.poll(0.1) or stuck.assignment(), "the other client got nothing")
        # It sends heartbeats in the background, but rejoins only when polled.
        result = kgctl("consume", topic, "--group", group, "--timeout", 1.5)
        assert result.exit_code == 3
    finally:
        stuck.close()


def test_a_signal_ends_the_wait_for_a_group_that_does_not_answer(kgctl: Kgctl, topic: str, group: str) -> None:
    stuck = OtherConsumer({"bootstrap.servers": kgctl.bootstrap, "group.id": group, "session.timeout.ms": 30_000})
    try:
        stuck.subscribe([topic])
        until(lambda: stuck.poll(0.1) or stuck.assignment(), "the other client got nothing")
        with running(str(kgctl.bootstrap), "consume", topic, "--group", group) as waiting:
            until(lambda: state(kgctl, group) == "PreparingRebalance", "it does not join")
            waiting.interrupt()
            assert waiting.wait() == (0, "")
        until(lambda: len(rows(kgctl, group, "--members")) == 1, "it is still there")
    finally:
        stuck.close()


def test_a_member_with_a_slow_reader_stays_in_the_group_and_can_be_interrupted(
    kgctl: Kgctl, topic: str, group: str
) -> None:
    assert kgctl("produce", topic, text=f"{'x' * 1000}\n" * 1000).exit_code == 0
    words = ["consume", topic, "--group", group, "--from-beginning", "--session-timeout", "0.8"]
    command = [sys.executable, "-m", "kgctl", *words, "--bootstrap", str(kgctl.bootstrap)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as program:
        until(lambda: state(kgctl, group) == "Stable", "it does not join")
        (member,) = rows(kgctl, group, "--members")
        deadline = time.monotonic() + 2.5  # three sessions
        while time.monotonic() < deadline:
            assert [row["consumer_id"] for row in rows(kgctl, group, "--members")] == [member["consumer_id"]]
        program.send_signal(signal.SIGINT)
        assert program.wait(timeout=PATIENCE_SECONDS) == 0
        assert program.stdout is not None
        assert program.stdout.read().count(b"\n") >= sum(offset or 0 for offset in committed(kgctl, group).values())
    assert state(kgctl, group) == "Empty"


def test_surplus_members_have_no_partitions(kgctl: Kgctl, group: str) -> None:
    topic = fresh("narrow")
    assert kgctl("produce", topic, text="a\n").exit_code == 0
    words = ("consume", topic, "--group", group, "--from-beginning")
    with running(str(kgctl.bootstrap), *words) as first:
        assert first.line() == "a"
        with running(str(kgctl.bootstrap), *words) as second:
            until(lambda: len(rows(kgctl, group, "--members")) == 2 and state(kgctl, group) == "Stable", "not two")
            first.interrupt()
            second.interrupt()
            assert (first.wait(), second.wait()) == ((0, ""), (0, ""))
            assert second.seen == []


def test_a_broker_that_restarts_keeps_its_members_and_their_commits(own_cluster: Cluster) -> None:
    kgctl = Kgctl(own_cluster.bootstrap_servers)
    topic, group = filled(kgctl), fresh("g")
    with running(own_cluster.bootstrap_servers, "consume", topic, "--group", group, "--from-beginning") as member:
        assert set(member.lines(30)) == written()
        until(lambda: committed(kgctl, group) == {0: 10, 1: 10, 2: 10}, "no commit")
        own_cluster.kill()
        own_cluster.restart()
        more(kgctl, topic, "q")
        assert set(member.lines(30)) == written("q")
        member.interrupt()
        assert member.wait()[0] == 0
    assert committed(kgctl, group) == {0: 20, 1: 20, 2: 20}


def test_a_broker_that_hangs_delays_a_member_by_at_most_twice_the_timeout() -> None:
    with LocalBroker() as broker:
        kgctl = Kgctl(broker.bootstrap_servers)
        assert kgctl("produce", "t", text="a\n").exit_code == 0
        with running(
            broker.bootstrap_servers, "consume", "t", "--group", "g", "--from-beginning", "--timeout", 2
        ) as reading:
            assert reading.line() == "a"
            begun = time.monotonic()
            os.kill(broker.pid, signal.SIGSTOP)
            try:
                assert reading.wait()[0] == 3
                assert time.monotonic() - begun < 7
            finally:
                os.kill(broker.pid, signal.SIGCONT)
