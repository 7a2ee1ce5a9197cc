"""The ends and ranges of micro-batches when partitions appear, disappear and shrink."""

from __future__ import annotations

import re

import pytest

from kgctl.model.topic_partition import TopicPartition
from kgctl.pipelines.source.losses import DataLoss
from kgctl.pipelines.source.options import read_options
from kgctl.pipelines.source.planning import next_end, plan_micro_batch, to_tasks
from kgctl.pipelines.source.ranges import OffsetRange

A, B, C = (TopicPartition("t", number) for number in range(3))


def beginnings(first: int = 0):  # type: ignore[no-untyped-def]
    return lambda partitions: dict.fromkeys(partitions, first)


def test_without_a_limit_a_batch_ends_where_the_logs_end() -> None:
    assert next_end({A: 1}, {A: 5, B: 7}, beginnings(), None, fail_on_data_loss=True) == {A: 5, B: 7}


def test_a_limit_applies_to_new_partitions_too() -> None:
    ends = {A: 100, B: 300, C: 0}
    first = next_end({A: 0}, ends, beginnings(), 40, fail_on_data_loss=True)
    assert first == {A: 10, B: 30, C: 0}
    assert next_end(first, ends, beginnings(), 1000, fail_on_data_loss=True) == ends


def test_at_the_end_the_offsets_stay_the_same() -> None:
    assert next_end({A: 5}, {A: 5}, beginnings(), 3, fail_on_data_loss=True) == {A: 5}


def test_a_log_that_has_shrunk_is_data_loss() -> None:
    with pytest.raises(DataLoss, match=re.escape("t-0: the log ended before 9 and now ends before 4")):
        next_end({A: 9}, {A: 4}, beginnings(), 10, fail_on_data_loss=True)
    assert next_end({A: 9, B: 0}, {A: 4, B: 50}, beginnings(), 10, fail_on_data_loss=False) == {A: 4, B: 10}


def test_new_partitions_are_read_from_their_beginning() -> None:
    ranges = plan_micro_batch({A: 1}, {A: 5, B: 7}, beginnings(), fail_on_data_loss=True)
    assert ranges == [OffsetRange(A, 1, 5), OffsetRange(B, 0, 7)]


def test_a_new_partition_whose_beginning_is_gone_is_data_loss() -> None:
    with pytest.raises(DataLoss, match="t-1 is new, but its log already begins at 3"):
        plan_micro_batch({A: 1}, {A: 5, B: 7}, beginnings(3), fail_on_data_loss=True)
    ranges = plan_micro_batch({A: 1}, {A: 5, B: 7}, beginnings(3), fail_on_data_loss=False)
    assert ranges == [OffsetRange(A, 1, 5), OffsetRange(B, 3, 7)]


def test_a_partition_that_is_gone_is_data_loss() -> None:
    with pytest.raises(DataLoss, match="t-1 no longer exists"):
        plan_micro_batch({A: 1, B: 2}, {A: 5}, beginnings(), fail_on_data_loss=True)
    with pytest.raises(DataLoss, match="t-1 no longer exists"):
        next_end({A: 1, B: 2}, {A: 5}, beginnings(), None, fail_on_data_loss=True)
    assert next_end({A: 1, B: 2}, {A: 5}, beginnings(), None, fail_on_data_loss=False) == {A: 5}
    assert plan_micro_batch({A: 1, B: 2}, {A: 5}, beginnings(), fail_on_data_loss=False) == [OffsetRange(A, 1, 5)]


@pytest.mark.parametrize(("timeout_ms", "expected"), [(2000, (2.0, 2.0)), (30_000, (30.0, 10.0))])
def test_no_wait_for_records_is_longer_than_the_timeout_of_a_poll(
    timeout_ms: int, expected: tuple[float, float]
) -> None:
    given = {"kafka.bootstrap.servers": "a:1", "subscribe": "t", "kafkaConsumer.pollTimeoutMs": str(timeout_ms)}
    (task,) = to_tasks([OffsetRange(A, 0, 1)], read_options(given))
    assert (task.patience.outage, task.patience.no_progress) == expected
