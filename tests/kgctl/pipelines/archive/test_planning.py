"""Tests of what an archive reads next, and of the logs with which it does not continue."""

from __future__ import annotations

from pathlib import Path

import pytest

from kgctl.exit_codes import WRONG_STATE, exit_code_of
from kgctl.model.topic_partition import TopicPartition
from kgctl.pipelines.archive.layout import Hole
from kgctl.pipelines.archive.manifest import Archive, read_archive
from kgctl.pipelines.archive.planning import (
    Log,
    NotTheSame,
    Plan,
    check_archive,
    check_epochs,
    check_topics,
    plan_next,
)
from kgctl.pipelines.source.ranges import OffsetRange
from tests.kgctl.pipelines.archive.making import add, facts

ZERO, ONE = TopicPartition("orders", 0), TopicPartition("orders", 1)
NOW_MS = 1000


def plan(archived: dict, logs: dict, begins: dict | None = None, until: dict | None = None, limit: int = 100) -> Plan:
    return plan_next(archived, logs, begins or {}, until or {}, limit, NOW_MS)


def test_a_new_partition_is_read_from_where_it_begins() -> None:
    found = plan({}, {ZERO: Log(5, 9), ONE: Log(0, 3)}, {ZERO: 5, ONE: 3})
    assert found == Plan((OffsetRange(ZERO, 5, 9), OffsetRange(ONE, 3, 3)))
    assert found.to_read == (OffsetRange(ZERO, 5, 9),)


def test_a_known_partition_continues_and_one_at_its_end_is_left_out() -> None:
    assert plan({ZERO: 7, ONE: 3}, {ZERO: Log(0, 9), ONE: Log(0, 3)}).ranges == (OffsetRange(ZERO, 7, 9),)
    assert not plan({ZERO: 9}, {ZERO: Log(0, 9)})


def test_the_limit_is_for_all_partitions_together() -> None:
    found = plan({ZERO: 0, ONE: 0}, {ZERO: Log(0, 300), ONE: Log(0, 100)}, limit=40)
    assert [one.size for one in found.ranges] == [30, 10]


def test_nothing_is_read_behind_the_end_that_was_asked_for() -> None:
    assert plan({ZERO: 2}, {ZERO: Log(0, 9)}, until={ZERO: 5}).ranges == (OffsetRange(ZERO, 2, 5),)
    assert not plan({ZERO: 7}, {ZERO: Log(0, 9)}, until={ZERO: 5})


def test_what_retention_has_overtaken_is_a_hole() -> None:
    found = plan({ZERO: 2}, {ZERO: Log(5, 9)})
    assert found == Plan((OffsetRange(ZERO, 5, 9),), (Hole("orders", 0, 2, 5, NOW_MS),))
    assert plan({ZERO: 2}, {ZERO: Log(9, 9)}).holes == (Hole("orders", 0, 2, 9, NOW_MS),)


def test_records_of_an_added_partition_that_are_gone_are_a_hole() -> None:
    assert plan({ZERO: 9}, {ZERO: Log(0, 9), ONE: Log(4, 4)}).holes == (Hole("orders", 1, 0, 4, NOW_MS),)


def test_a_log_that_ends_before_the_archive_is_refused() -> None:
    with pytest.raises(
        NotTheSame, match="orders-0: offsets up to 8 are archived, but the log now ends before 7"
    ) as raised:
        plan({ZERO: 9}, {ZERO: Log(0, 7)})
    assert exit_code_of(raised.value) == WRONG_STATE


def test_an_epoch_that_ends_before_the_archive_is_refused() -> None:
    check_epochs({ZERO: 9}, {ZERO: 9})
    check_epochs({ZERO: 9}, {ZERO: None})
    with pytest.raises(NotTheSame, match="the cluster has lost records"):
        check_epochs({ZERO: 9, ONE: 1}, {ZERO: 8, ONE: 1})


def test_a_topic_with_another_id_is_refused() -> None:
    known = {"orders": facts("orders", id="a")}
    check_topics(known, [facts("orders", id="a"), facts("new", id="b"), facts("orders", id="")])
    with pytest.raises(NotTheSame, match=r"topic 'orders' was deleted and created again .*its id was a and is b"):
        check_topics(known, [facts("orders", id="b")])


def test_another_cluster_or_isolation_level_is_refused(tmp_path: Path) -> None:
    check_archive(Archive(tmp_path, ()), "any", "read_committed")
    add(tmp_path, {}, {ZERO: (0, 0)}, topics=[facts("orders")], cluster_id="mine")
    archive = read_archive(tmp_path)
    check_archive(archive, "mine", "read_committed")
    with pytest.raises(NotTheSame, match=r"of another cluster \(mine, this one is yours\)"):
        check_archive(archive, "yours", "read_committed")
    with pytest.raises(NotTheSame, match="--isolation-level read_committed"):
        check_archive(archive, "mine", "read_uncommitted")
