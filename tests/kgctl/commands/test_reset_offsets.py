"""`kgctl groups reset-offsets` for several groups, with patterns, from plans, and for groups that are in use."""

from __future__ import annotations

import json
import threading
import time
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition

from tests.harness.clusters import fresh
from tests.harness.commandline import Kgctl, fill, member_of, opened
from tests.harness.running_consumer import running_consumer


@pytest.fixture
def topic(kgctl: Kgctl) -> str:
    """Three partitions with 100, 50 and no records."""
    name = fresh("orders")
    assert kgctl("topics", "create", name, "--partitions", 3).exit_code == 0
    fill(kgctl, name, [100, 50, 0])
    return name


def offsets_of(kgctl: Kgctl, group: str) -> dict[int, int | None]:
    return {row["partition"]: row["current_offset"] for row in kgctl.rows("groups", "describe", group)}


def reset(kgctl: Kgctl, *arguments: object, text: str | None = None) -> Any:
    return kgctl("groups", "reset-offsets", *arguments, text=text)


# --- which groups ---


def test_a_pattern_moves_the_groups_whose_whole_name_it_matches(kgctl: Kgctl, topic: str) -> None:
    stem = fresh("etl")
    groups = [f"{stem}-a", f"{stem}-b", f"{stem}-b-dlq"]
    for group in groups:
        kgctl.commit(group, topic, p0=60)
    planned = reset(kgctl, "--match", f"{stem}-[ab]", "--all-topics", "--to-earliest")
    assert planned.exit_code == 0
    assert [offsets_of(kgctl, group) for group in groups] == [{0: 60}] * 3
    assert "2 groups, 2 partitions: 120 records to read again, 0 to skip." in planned.stderr
    done = reset(kgctl, "--match", f"{stem}-[ab]", "--all-topics", "--to-earliest", "--execute")
    assert done.exit_code == 0
    assert [offsets_of(kgctl, group) for group in groups] == [{0: 0}, {0: 0}, {0: 60}]


def test_a_pattern_without_a_match_is_not_found_and_a_bad_one_is_a_usage_error(kgctl: Kgctl) -> None:
    missing = reset(kgctl, "--match", fresh("none"), "--all-topics", "--to-earliest", "--execute")
    assert (missing.exit_code, missing.stdout) == (5, "")
    assert "No group matches 'none-" in missing.stderr
    assert reset(kgctl, "--match", "(", "--all-topics", "--to-earliest").exit_code == 2
    assert reset(kgctl, "g", "--match", "g", "--all-topics", "--to-earliest").exit_code == 2


def test_a_pattern_gives_no_group_offsets_of_a_topic_that_it_does_not_read(kgctl: Kgctl, topic: str) -> None:
    stem, other = fresh("etl"), fresh("other")
    assert kgctl("topics", "create", other).exit_code == 0
    kgctl.commit(f"{stem}-a", topic, p0=60)
    kgctl.commit(f"{stem}-b", other, p0=0)
    done = reset(kgctl, "--match", f"{stem}-.*", "--topic", f"{topic}:0-1", "--to-latest", "--execute")
    assert done.exit_code == 0
    assert "1 group with nothing in this scope left out." in done.stderr
    assert offsets_of(kgctl, f"{stem}-a") == {0: 100, 1: 50}
    assert [row["topic"] for row in kgctl.rows("groups", "describe", f"{stem}-b")] == [other]


def test_one_group_that_fails_does_not_stop_the_others(kgctl: Kgctl, topic: str) -> None:
    free, live, absent = fresh("free"), fresh("live"), fresh("absent")
    kgctl.commit(free, topic, p0=60)
    kgctl.commit(live, topic, p0=60)
    with member_of(kgctl, live, {topic: [0]}):
        done = reset(kgctl, free, live, absent, "--all-topics", "--to-earliest", "--execute")
        assert done.exit_code == 4
        assert f"group '{live}' is inactive, but the current state is Stable" in done.stderr
        assert f"Consumer group '{absent}' does not exist; check the name, or add --create" in done.stderr
        assert (offsets_of(kgctl, free), offsets_of(kgctl, live)) == ({0: 0}, {0: 60})


# --- scope and strategies ---


def test_a_topic_pattern_narrows_the_committed_topics(kgctl: Kgctl, topic: str) -> None:
    group, other = fresh("g"), fresh("other")
    assert kgctl("topics", "create", other).exit_code == 0
    kgctl.commit(group, topic, p0=60, p1=5)
    kgctl.commit(group, other, p0=0)
    assert reset(kgctl, group, "--topic-match", "ord.*", "--to-latest", "--execute").exit_code == 0
    found = {(row["topic"], row["partition"]): row["current_offset"] for row in kgctl.rows("groups", "describe", group)}
    assert found == {(topic, 0): 100, (topic, 1): 50, (other, 0): 0}
    # The pattern matches whole names.
    for pattern in ("nope.*", "ord"):
        assert reset(kgctl, group, "--topic-match", pattern, "--to-latest").exit_code == 5


def test_offsets_of_another_group_are_copied(kgctl: Kgctl, topic: str) -> None:
    source, group = fresh("source"), fresh("g")
    kgctl.commit(source, topic, p0=70, p1=20)
    arguments = (group, "--all-topics", "--to-group", source)
    assert reset(kgctl, *arguments).exit_code == 5
    assert reset(kgctl, *arguments, "--create", "--execute").exit_code == 0
    assert offsets_of(kgctl, group) == {0: 70, 1: 20}
    lacking = reset(kgctl, group, "--topic", f"{topic}:0,2", "--to-group", source, "--execute")
    assert lacking.exit_code == 6
    assert f"Group '{source}' has no committed offset for partition {topic}-2" in lacking.stderr
    assert reset(kgctl, group, "--all-topics", "--to-group", fresh("absent")).exit_code == 5


def test_times_are_relative_or_milliseconds_since_1970(kgctl: Kgctl) -> None:
    topic, group, now = fresh("timed"), fresh("g"), int(time.time() * 1000)
    assert kgctl("topics", "create", topic, "--partitions", 1).exit_code == 0
    fill(kgctl, topic, [10], timestamp_ms=now - 3 * 3_600_000)
    fill(kgctl, topic, [5], timestamp_ms=now - 3_600_000)
    kgctl.commit(group, topic, p0=15)
    for option, value, offset in (
        ("--by-duration", "2h30m", 10),
        ("--by-duration", "4h", 0),
        ("--to-datetime", "now-2h", 10),
        ("--to-datetime", now - 2 * 3_600_000, 10),
        ("--to-datetime", "now", 15),
    ):
        (row,) = kgctl.rows("groups", "reset-offsets", group, "--topic", topic, option, value)
        assert row["new_offset"] == offset, (option, value)
    assert (row["old_timestamp"], row["new_timestamp"]) == (None, None)
    (row,) = kgctl.rows("groups", "reset-offsets", group, "--topic", topic, "--to-offset", 3)
    assert row["new_timestamp"] == now - 3 * 3_600_000 + 3


# --- plans as CSV ---


def test_a_plan_of_several_groups_names_them_and_is_executed_without_naming_them_again(
    kgctl: Kgctl, topic: str
) -> None:
    one, two = sorted([fresh("one"), fresh("two")])
    for group in (one, two):
        kgctl.commit(group, topic, p0=60)
    exported = reset(kgctl, one, two, "--all-topics", "--shift-by", -5, "--export")
    assert exported.stdout == f"{one},{topic},0,55\n{two},{topic},0,55\n"
    assert reset(kgctl, "--from-file", "-", "--execute", text=exported.stdout).exit_code == 0
    assert (offsets_of(kgctl, one), offsets_of(kgctl, two)) == ({0: 55}, {0: 55})
    partly = reset(kgctl, one, two, "--from-file", "-", "--execute", text=f"{one},{topic},0,7\n")
    assert partly.exit_code == 4
    assert f"No reset plan for group {two} found" in partly.stderr
    assert (offsets_of(kgctl, one), offsets_of(kgctl, two)) == ({0: 7}, {0: 55})
    nameless = reset(kgctl, one, two, "--from-file", "-", text=f"{topic},0,7\n")
    assert nameless.exit_code == 2
    assert "line 1: name the group" in " ".join(nameless.stderr.split())


# --- large plans ---


def test_a_large_plan_is_summarized_unless_it_is_asked_for(kgctl: Kgctl) -> None:
    topic, group = fresh("wide"), fresh("g")
    assert kgctl("topics", "create", topic, "--partitions", 101).exit_code == 0
    fill(kgctl, topic, [3])
    arguments = (group, "--topic", topic, "--to-earliest", "--create")
    summary = reset(kgctl, *arguments)
    assert summary.stdout.splitlines()[1].split()[:3] == [group, topic, "101"]
    assert "A summary of 101 partitions; --verbose shows each." in summary.stderr
    assert len(reset(kgctl, *arguments, "--verbose").stdout.splitlines()) == 102
    assert len(json.loads(reset(kgctl, *arguments, "-o", "json").stdout)["rows"]) == 101


# --- groups in use ---


def test_draining_is_planned_without_an_eviction(kgctl: Kgctl, topic: str) -> None:
    group = fresh("g")
    kgctl.commit(group, topic, p0=60)
    with member_of(kgctl, group, {topic: [0]}) as member:
        planned = reset(kgctl, group, "--all-topics", "--to-earliest", "--drain")
        assert planned.exit_code == 0
        assert "--execute --drain evicts its 1 member." in planned.stderr
        assert [row["consumer_id"] for row in kgctl.rows("groups", "describe", group, "--members")] == [member]


def test_draining_evicts_commits_and_lets_a_running_consumer_continue_from_there(kgctl: Kgctl, topic: str) -> None:
    group = fresh("g")
    kgctl.commit(group, topic, p0=60, p1=50)
    with running_consumer(kgctl.bootstrap, group, topic):
        done = reset(kgctl, group, "--all-topics", "--shift-by", -20, "--drain", "30s", "--execute")
        assert done.exit_code == 0, done.output
        assert f"Group '{group}': evicting 1 member: " in done.stderr
        assert offsets_of(kgctl, group) == {0: 40, 1: 30, **({2: None} if 2 in offsets_of(kgctl, group) else {})}


def test_nobody_is_evicted_for_a_plan_that_cannot_be_applied(kgctl: Kgctl, topic: str) -> None:
    group = fresh("g")
    kgctl.commit(group, topic, p0=60)
    with member_of(kgctl, group, {topic: [0]}) as member:
        refused = reset(kgctl, group, "--topic", f"{topic}:0,9", "--to-earliest", "--drain", "--execute")
        assert refused.exit_code == 5
        assert "evicting" not in refused.stderr
        assert [row["consumer_id"] for row in kgctl.rows("groups", "describe", group, "--members")] == [member]


def test_offsets_of_an_open_transaction_are_not_overwritten(kgctl: Kgctl, topic: str) -> None:
    group = fresh("g")
    kgctl.commit(group, topic, p0=60)
    reader = Consumer({"bootstrap.servers": kgctl.bootstrap, "group.id": group})
    with opened(kgctl, topic) as (_, producer):
        pending = TopicPartition(topic, 0, 90)
        producer.send_offsets_to_transaction([pending], reader.consumer_group_metadata(), 30)
        refused = reset(kgctl, group, "--all-topics", "--to-earliest", "--execute")
        assert refused.exit_code == 6
        assert f"{topic}-0: an open transaction may still commit its own offset" in refused.stderr
        late = reset(kgctl, group, "--all-topics", "--to-earliest", "--drain", "300ms", "--execute")
        assert late.exit_code == 3
        assert "still has offsets of open transactions" in late.stderr
        ending = threading.Timer(0.5, producer.commit_transaction, [30])
        ending.start()
        waited = reset(kgctl, group, "--all-topics", "--shift-by", -1, "--drain", "20s", "--execute")
        ending.join()
        assert waited.exit_code == 0, waited.output
        assert offsets_of(kgctl, group) == {0: 89}
    reader.close()
