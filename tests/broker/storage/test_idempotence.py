"""Idempotent producers: a retry is recognised, and a gap or an old epoch is refused, before and after a restart."""

from __future__ import annotations

from pathlib import Path

import pytest

from broker.protocol.errors import ErrorCode
from broker.storage import Appended, Log, PartitionLog
from broker.storage.settings import DAY_MS
from tests.harness.stores import NOW, batch, open_log, sweep, topic_log

MAX = 2**31 - 1


def send(
    partition: PartitionLog, sequence: int, count: int = 1, *, epoch: int = 0, producer: int = 5
) -> tuple[int, bool] | ErrorCode:
    """(base offset, duplicate), or the error."""
    content = batch(*[b"x"] * count, producer_id=producer, producer_epoch=epoch, base_sequence=sequence)
    appended = partition.append(content, wall_ms=NOW)
    return (appended.base_offset, appended.duplicate) if isinstance(appended, Appended) else appended


def in_use(path: Path) -> tuple[Log, PartitionLog]:
    """A partition with a checkpoint, so that what the test appends is in its tail only."""
    log = open_log(path)
    partition = topic_log(log)
    for _ in range(2):
        send(partition, 0, producer=-1)
        log.flush()
    return log, partition


def reopened(log: Log, path: Path, how: str) -> tuple[Log, PartitionLog]:
    log.flush()
    if how == "same":
        return log, topic_log(log)
    log.close(clean=how == "stopped")
    log = open_log(path)
    return log, topic_log(log)


@pytest.mark.parametrize("how", ["same", "stopped", "killed"])
def test_the_last_five_batches_are_recognised_as_duplicates(tmp_path: Path, how: str) -> None:
    log, partition = in_use(tmp_path)
    for sequence in range(0, 14, 2):
        assert send(partition, sequence, 2) == (2 + sequence, False)
    log, partition = reopened(log, tmp_path, how)
    for sequence in range(4, 14, 2):
        assert send(partition, sequence, 2) == (2 + sequence, True)
    assert send(partition, 2, 2) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert send(partition, 12, 1) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert send(partition, 14, 2) == (16, False)
    log.close()


@pytest.mark.parametrize("how", ["same", "stopped", "killed"])
def test_a_gap_in_the_sequence_is_refused(tmp_path: Path, how: str) -> None:
    log, partition = in_use(tmp_path)
    assert send(partition, 0, 3) == (2, False)
    log, partition = reopened(log, tmp_path, how)
    assert send(partition, 4) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert send(partition, 3) == (5, False)
    log.close()


@pytest.mark.parametrize("how", ["same", "stopped", "killed"])
def test_a_newer_epoch_starts_at_0_and_fences_the_old_one(tmp_path: Path, how: str) -> None:
    log, partition = in_use(tmp_path)
    assert send(partition, 0, epoch=3) == (2, False)
    log, partition = reopened(log, tmp_path, how)
    assert send(partition, 1, epoch=2) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert send(partition, 1, epoch=4) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert send(partition, 0, epoch=4) == (3, False)
    assert send(partition, 1, epoch=3) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert send(partition, 0, epoch=4) == (3, True)
    log.close()


def test_an_unknown_producer_may_start_anywhere(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    assert send(topic_log(log), 1000, epoch=9) == (0, False)
    log.close()


def test_sequences_wrap_around_to_zero(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    partition = topic_log(log)
    assert send(partition, MAX - 1, 1) == (0, False)
    assert send(partition, MAX, 3) == (1, False)
    assert send(partition, MAX, 3) == (1, True)
    assert send(partition, 2) == (4, False)
    log.close()


def test_producers_are_independent(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    partition, other = topic_log(log), topic_log(log, "u")
    assert send(partition, 0, producer=1) == (0, False)
    assert send(partition, 0, producer=2) == (1, False)
    assert send(other, 0, producer=1) == (0, False)
    assert send(partition, 1, producer=1) == (2, False)
    log.close()


@pytest.mark.parametrize("how", ["same", "stopped"])
def test_an_idle_producer_expires(tmp_path: Path, how: str) -> None:
    log = open_log(tmp_path)
    assert send(topic_log(log), 0) == (0, False)
    log, partition = reopened(log, tmp_path, how)
    sweep(log, NOW + DAY_MS - 1)
    assert send(partition, 0) == (0, True)
    sweep(log, NOW + 2 * DAY_MS)
    assert send(partition, 5) == (1, False)
    log.close()


def test_a_duplicate_returns_the_time_of_the_first_append(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    partition = topic_log(log, message_timestamp_type="LogAppendTime")
    content = batch(b"x", producer_id=5, producer_epoch=0, base_sequence=0)
    first = partition.append(content, wall_ms=NOW + 5)
    again = partition.append(content, wall_ms=NOW + 90)
    assert isinstance(first, Appended)
    assert isinstance(again, Appended)
    assert (first.log_append_time_ms, again.log_append_time_ms) == (NOW + 5, NOW + 5)
    # With CreateTime, Kafka returns the time of the batch for duplicates only.
    other = topic_log(log, "u")
    assert other.append(content, wall_ms=NOW + 5) == Appended(0, -1, 0, duplicate=False)
    assert other.append(content, wall_ms=NOW + 9) == Appended(0, NOW, 0, duplicate=True)
    log.close()


def test_producer_ids_are_never_reused(tmp_path: Path) -> None:
    given = []
    for clean in (True, False, True):
        log = open_log(tmp_path)
        given += [log.next_producer_id() for _ in range(3)]
        log.flush()
        log.close(clean=clean)
    assert given == sorted(set(given))
