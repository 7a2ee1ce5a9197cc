"""A micro-batch waits for enough records, but no longer than allowed."""

from __future__ import annotations

from kgctl.model.topic_partition import TopicPartition
from kgctl.pipelines.source.trigger_delay import TriggerDelay

ZERO, ONE = TopicPartition("t", 0), TopicPartition("t", 1)


def test_the_first_batch_starts_at_once() -> None:
    assert TriggerDelay(100, 60).is_over({ZERO: 0}, {ZERO: 1}, 0)


def test_a_batch_starts_when_enough_records_wait_in_all_partitions_together() -> None:
    delay = TriggerDelay(10, 60)
    delay.is_over({}, {}, 0)
    assert not delay.is_over({ZERO: 5, ONE: 5}, {ZERO: 9, ONE: 10}, 1)
    assert delay.is_over({ZERO: 5, ONE: 5}, {ZERO: 9, ONE: 11}, 2)
    assert not delay.is_over({ZERO: 9, ONE: 11}, {ZERO: 9, ONE: 12}, 61)


def test_a_few_records_wait_no_longer_than_the_delay_since_the_last_batch() -> None:
    delay = TriggerDelay(10, 60)
    delay.is_over({ZERO: 0}, {ZERO: 5}, 0)
    assert delay.is_over({ZERO: 5}, {ZERO: 5}, 70)
    assert delay.is_over({ZERO: 5}, {ZERO: 6}, 71)
    assert not delay.is_over({ZERO: 6}, {ZERO: 7}, 130)
    assert delay.is_over({ZERO: 6}, {ZERO: 7}, 131)


def test_records_that_a_log_lost_do_not_offset_others() -> None:
    delay = TriggerDelay(10, 60)
    delay.is_over({}, {}, 0)
    assert delay.is_over({ZERO: 100, ONE: 0}, {ZERO: 0, ONE: 10}, 1)
