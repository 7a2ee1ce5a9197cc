"""Transactions in one partition: producers, the last stable offset, aborted transactions, before and after a restart."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from broker.protocol.control_records import Marker
from broker.protocol.errors import ErrorCode
from broker.protocol.record_batch import BatchHeader, batches
from broker.storage import AbortedTransaction, Appended, Log, PartitionLog, ProducerState
from broker.storage.settings import DAY_MS
from tests.broker.storage.test_rescue import rescued
from tests.harness.committed_reader import committed, uncommitted
from tests.harness.stores import NOW, append, batch, open_log, raw, sweep, topic_log

A, B = 31, 32
SMALL: dict[str, Any] = {"segment_bytes": 300, "index_interval_bytes": 100}
COMPACTED = {"cleanup_policy": "compact", "min_cleanable_dirty_ratio": "0", "delete_retention_ms": "100"}
HOWS = ("same", "stopped", "killed")


def send(
    partition: PartitionLog,
    producer: int,
    sequence: int,
    *values: bytes | tuple[bytes | None, bytes | None],
    epoch: int = 0,
    plain: bool = False,
) -> int | ErrorCode:
    """The base offset, or the error."""
    content = batch(
        *(values or (b"x",)),
        producer_id=producer,
        producer_epoch=epoch,
        base_sequence=sequence,
        is_transactional=not plain,
    )
    appended = partition.append(content, wall_ms=NOW)
    return appended.base_offset if isinstance(appended, Appended) else appended


def end(
    partition: PartitionLog, producer: int, *, commit: bool = True, epoch: int = 0, coordinator: int = 0
) -> int | ErrorCode:
    appended = partition.append_marker(Marker(producer, epoch, coordinator, commit), wall_ms=NOW)
    return appended.base_offset if isinstance(appended, Appended) else appended


def again(log: Log, path: Path, how: str, **settings: Any) -> tuple[Log, PartitionLog]:
    log.flush()
    if how != "same":
        log.close(clean=how == "stopped")
        log = open_log(path, **settings)
    return log, topic_log(log)


def read(partition: PartitionLog) -> list[bytes | None]:
    return [record.value for record in committed(partition)]


def headers(partition: PartitionLog) -> list[BatchHeader]:
    found: list[BatchHeader] = []
    while content := raw(partition.read(found[-1].next_offset if found else 0, 1 << 20, at_least_one=True)):
        found += [header for _, header in batches(content)]
    return found


# -- the last stable offset


def test_the_oldest_open_transaction_holds_the_last_stable_offset(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    partition = topic_log(log)
    append(partition, b"plain")
    log.flush()
    assert partition.last_stable_offset == 1
    send(partition, A, 0, b"a")
    send(partition, B, 0, b"b", b"b")
    append(partition, b"behind")
    assert (partition.high_watermark, partition.last_stable_offset) == (1, 1)
    log.flush()
    assert (partition.high_watermark, partition.last_stable_offset) == (5, 1)
    assert read(partition) == [b"plain"]
    assert end(partition, A) == 5
    # Only a flush moves it.
    assert partition.last_stable_offset == 1
    log.flush()
    assert partition.last_stable_offset == 2
    assert read(partition) == [b"plain", b"a"]
    assert end(partition, B, commit=False) == 6
    log.flush()
    assert (partition.high_watermark, partition.last_stable_offset) == (7, 7)
    assert read(partition) == [b"plain", b"a", b"behind"]
    assert [record.value for record in uncommitted(partition)] == [b"plain", b"a", b"b", b"b", b"behind"]
    log.close()


def test_delete_records_passes_an_open_transaction(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    partition = topic_log(log)
    send(partition, A, 0, b"a")
    append(partition, b"1", b"2", b"3")
    log.flush()
    assert partition.delete_records(2) == 2
    assert partition.last_stable_offset == 1
    assert read(partition) == []
    assert partition.delete_records(4) == 4
    assert partition.last_stable_offset == 4
    end(partition, A, commit=False)
    log.flush()
    assert partition.last_stable_offset == 5
    log.close()


def test_retention_drops_segments_of_an_open_transaction(tmp_path: Path) -> None:
    log = open_log(tmp_path, **SMALL, retention_check_interval_ms=0)
    partition = topic_log(log, retention_bytes="600")
    send(partition, A, 0, b"a")
    for _ in range(20):
        append(partition, b"plain" * 10)
    sweep(log)
    assert partition.log_start_offset > 0
    assert partition.last_stable_offset == partition.log_start_offset
    assert partition.has_open_transaction(A, 0)
    log.close()


# -- producers


@pytest.mark.parametrize("how", HOWS)
def test_a_marker_fences_older_epochs_and_restarts_the_sequence(tmp_path: Path, how: str) -> None:
    log = open_log(tmp_path)
    partition = topic_log(log)
    for sequence in range(3):
        send(partition, A, sequence)
    end(partition, A)
    log, partition = again(log, tmp_path, how)
    # With the same epoch, the sequence goes on; KIP-890 bumps the epoch with each marker.
    assert send(partition, A, 3) == 4
    assert end(partition, A, epoch=1) == 5
    log, partition = again(log, tmp_path, how)
    assert send(partition, A, 4) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert end(partition, A) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert send(partition, A, 4, epoch=1) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert send(partition, A, 0, epoch=1) == 6
    assert partition.producer_states() == [ProducerState(A, 1, 0, NOW, 0, 6)]
    log.close()


@pytest.mark.parametrize("how", HOWS)
def test_an_older_coordinator_is_fenced_also_after_an_empty_transaction(tmp_path: Path, how: str) -> None:
    log = open_log(tmp_path)
    partition = topic_log(log)
    assert end(partition, A, coordinator=5) == 0
    log, partition = again(log, tmp_path, how)
    assert end(partition, A, coordinator=4) is ErrorCode.TRANSACTION_COORDINATOR_FENCED
    assert end(partition, A, epoch=1, coordinator=4) is ErrorCode.TRANSACTION_COORDINATOR_FENCED
    assert end(partition, A, coordinator=5) == 1
    assert end(partition, A, coordinator=6, commit=False) == 2
    log, partition = again(log, tmp_path, how)
    assert partition.producer_states() == [ProducerState(A, 0, -1, NOW, 6, -1)]
    assert partition.aborted_transactions(0, 9) == []
    log.close()


def test_a_plain_batch_of_a_producer_in_a_transaction_is_refused(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    partition = topic_log(log)
    assert send(partition, A, 0) == 0
    assert send(partition, A, 1, plain=True) is ErrorCode.INVALID_TXN_STATE
    assert send(partition, A, 1) == 1
    end(partition, A)
    assert send(partition, A, 2, plain=True) == 3
    log.close()


def test_a_producer_in_a_transaction_does_not_expire(tmp_path: Path) -> None:
    log = open_log(tmp_path, retention_ms=-1)
    partition = topic_log(log)
    send(partition, A, 0)
    send(partition, B, 0)
    end(partition, B)
    for how in ("same", "killed"):
        sweep(log, NOW + 2 * DAY_MS)
        assert [state.producer_id for state in partition.producer_states()] == [A]
        log, partition = again(log, tmp_path, how)
    end(partition, A)
    sweep(log, NOW + 4 * DAY_MS)
    assert partition.producer_states() == []
    log.close()


def test_no_batch_overtakes_one_whose_verification_failed(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    partition = topic_log(log)
    early = batch(b"x", producer_id=A, producer_epoch=0, base_sequence=4, is_transactional=True)
    assert partition.start_verification(early, adds_partition=False, wall_ms=NOW) is ErrorCode.NONE
    assert send(partition, A, 5) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    # A newer epoch starts anew, and a fenced one stops nobody.
    assert send(partition, A, 0, epoch=1) == 0
    assert send(partition, A, 0) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert send(partition, A, 1, epoch=1) == 1
    # As in Kafka, a batch with a newer epoch stops the transaction, although no producer has that epoch.
    late = batch(b"x", producer_id=A, producer_epoch=2, base_sequence=0, is_transactional=True)
    assert partition.start_verification(late, adds_partition=False, wall_ms=NOW) is ErrorCode.NONE
    assert send(partition, A, 2, epoch=1) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    log.close()


@pytest.mark.parametrize("adds_partition", [False, True])
def test_a_marker_forgets_an_unverified_batch_unless_it_ended_an_earlier_transaction(
    tmp_path: Path, adds_partition: bool
) -> None:
    log = open_log(tmp_path)
    partition = topic_log(log)
    early = batch(b"x", producer_id=A, producer_epoch=0, base_sequence=-1, is_transactional=True)
    assert partition.start_verification(early, adds_partition=adds_partition, wall_ms=NOW) is ErrorCode.NONE
    end(partition, A)
    assert send(partition, A, 0) == (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER if adds_partition else 1)
    end(partition, A, epoch=1)
    assert send(partition, A, 0, epoch=1) == 3 - adds_partition
    log.close()


# -- aborted transactions


def test_aborted_transactions_are_found_over_segments(tmp_path: Path) -> None:
    log = open_log(tmp_path, **SMALL)
    partition = topic_log(log)
    offsets = []
    for number in range(6):
        first = send(partition, A, 0, b"a" * 100, epoch=number)
        other = send(partition, B, number, b"b" * 100)
        send(partition, A, 1, b"a" * 100, epoch=number)
        marker = end(partition, A, commit=number % 2 == 1, epoch=number + 1)
        offsets.append((first, other, marker))
    assert end(partition, B, commit=False) == 24
    log.flush()
    for again_ in (False, True):
        if again_:
            log.close(clean=False)
            log = open_log(tmp_path, **SMALL)
            partition = topic_log(log)
        of_a = [AbortedTransaction(A, 4 * number) for number in (0, 2, 4)]
        assert partition.aborted_transactions(0, 25) == [*of_a, AbortedTransaction(B, 1)]
        assert partition.aborted_transactions(0, 1) == of_a[:1]
        assert partition.aborted_transactions(3, 4) == [of_a[0], AbortedTransaction(B, 1)]
        assert partition.aborted_transactions(4, 8) == [AbortedTransaction(B, 1)]
        assert partition.aborted_transactions(24, 25) == [AbortedTransaction(B, 1)]
        assert partition.aborted_transactions(25, 99) == []
        assert read(partition) == [b"a" * 100] * 6
    partition.delete_records(13)
    log.flush()
    assert partition.aborted_transactions(0, 25) == [of_a[2], AbortedTransaction(B, 1)]
    log.close()


# -- repairs


def lose_the_store(path: Path) -> Log:
    for name in ("store.db", "store.db-wal"):
        (path / name).unlink(missing_ok=True)
    return open_log(path, accept_loss=True, **SMALL)


def rescue_the_records(path: Path) -> Log:
    (path / "store.db").write_bytes(b"")
    plan, log = rescued(path)
    assert any("transactional ids" in warning for warning in plan.warnings)
    return log


@pytest.mark.parametrize("repair", [lose_the_store, rescue_the_records])
def test_transactions_are_rebuilt_from_batches(tmp_path: Path, repair: Callable[[Path], Log]) -> None:
    path = tmp_path / "data"
    log = open_log(path, **SMALL)
    partition = topic_log(log)
    append(partition, b"plain")
    for number in range(4):
        send(partition, A, 0, b"%d" % number * 50, b"y", epoch=number)
        end(partition, A, commit=number % 2 == 0, epoch=number + 1, coordinator=3)
    send(partition, B, 7, b"open", epoch=2)
    append(partition, b"waits")
    log.flush()
    expected = (
        partition.high_watermark,
        partition.last_stable_offset,
        sorted(partition.producer_states()),
        partition.aborted_transactions(0, 99),
        read(partition),
    )
    assert expected[1] < expected[0]
    assert len(expected[3]) == 2
    log.close(clean=False)
    log = repair(path)
    for _ in range(2):
        partition = topic_log(log)
        assert list(log.open_transactions()) == [("t", 0, B, 2)]
        assert expected == (
            partition.high_watermark,
            partition.last_stable_offset,
            sorted(partition.producer_states()),
            partition.aborted_transactions(0, 99),
            read(partition),
        )
        directory = log.data_dir
        log.close(clean=False)
        log = open_log(directory, **SMALL)
    log.close()


@pytest.mark.parametrize("repair", [lose_the_store, rescue_the_records])
def test_a_transaction_that_is_committed_in_one_partition_is_committed_in_all(
    tmp_path: Path, repair: Callable[[Path], Log]
) -> None:
    path = tmp_path / "data"
    log = open_log(path, **SMALL)
    partitions = [topic_log(log, "t", 1), topic_log(log, "t", 0)]
    for partition in partitions:
        send(partition, A, 0, b"a", epoch=4)
        send(partition, B, 0, b"b", epoch=4)
    end(partitions[0], A, epoch=5)
    # Without an epoch for each transaction, this may be an earlier one.
    end(partitions[0], B, epoch=4)
    log.flush()
    log.close(clean=False)
    log = repair(path)
    for _ in range(2):
        assert list(log.open_transactions()) == [("t", 0, B, 4)]
        assert topic_log(log, "t", 0).has_open_transaction(B, 4)
        assert [read(topic_log(log, "t", index)) for index in (0, 1)] == [[b"a"], [b"a", b"b"]]
        directory = log.data_dir
        log.close(clean=False)
        log = open_log(directory, **SMALL)
    log.close()


# -- compaction


def compacted(path: Path) -> tuple[Log, PartitionLog]:
    log = open_log(path, **SMALL, compaction_interval_ms=0)
    return log, topic_log(log, **COMPACTED)


def fill(partition: PartitionLog, key: bytes, count: int = 3) -> None:
    """Enough plain records to seal what is before them."""
    for number in range(count):
        append(partition, (key, b"%d" % number * 150))


def test_compaction_drops_records_of_aborted_transactions_and_then_their_markers(tmp_path: Path) -> None:
    log, partition = compacted(tmp_path)
    append(partition, (b"k", b"kept"))
    send(partition, A, 0, (b"k", b"aborted"), (b"other", b"aborted"))
    end(partition, A, commit=False)
    send(partition, A, 2, (b"last", b"of the producer"))
    end(partition, A)
    fill(partition, b"1")
    sweep(log, NOW)
    assert read(partition)[:2] == [b"kept", b"of the producer"]
    assert b"aborted" not in [record.value for record in uncommitted(partition)]
    assert partition.aborted_transactions(0, 9) == [AbortedTransaction(A, 1)]
    # This pass finds no batch of the transaction, and sets the horizon of the marker.
    fill(partition, b"2")
    sweep(log, NOW)
    marker = next(header for header in headers(partition) if header.base_offset == 3)
    assert (marker.is_control, marker.delete_horizon_ms) == (True, NOW + 100)
    assert partition.aborted_transactions(0, 9) == []
    fill(partition, b"3")
    sweep(log, NOW + 99)
    assert 3 in [header.base_offset for header in headers(partition) if header.is_control]
    fill(partition, b"4")
    sweep(log, NOW + 100)
    assert 3 not in [header.base_offset for header in headers(partition) if header.is_control]
    # The marker of a transaction with records stays.
    assert 5 in [header.base_offset for header in headers(partition) if header.is_control]
    assert read(partition)[:2] == [b"kept", b"of the producer"]
    log.close()


def test_compaction_keeps_the_last_sequence_of_an_active_producer(tmp_path: Path) -> None:
    log, partition = compacted(tmp_path)
    send(partition, A, 5, (b"k", b"aborted"), (b"k", b"too"))
    end(partition, A, commit=False)
    send(partition, B, 0, (b"k", b"superseded"))
    end(partition, B)
    append(partition, (b"k", b"new"))
    fill(partition, b"1")
    sweep(log)
    kept = {header.producer_id: header for header in headers(partition) if not header.record_count}
    assert {(p, h.base_sequence, h.last_offset_delta) for p, h in kept.items() if p >= 0} == {(A, 5, 1), (B, 0, 0)}
    states = sorted(partition.producer_states())
    log.close()
    for _ in range(2):
        log = lose_the_store(tmp_path)
        assert sorted(topic_log(log).producer_states()) == states
        log.close()


def test_compaction_waits_for_open_transactions(tmp_path: Path) -> None:
    log, partition = compacted(tmp_path)
    append(partition, (b"k", b"old"))
    fill(partition, b"1")
    send(partition, A, 0, (b"k", b"in the transaction"))
    fill(partition, b"1", 6)
    sweep(log)
    everything = [record.value for record in uncommitted(partition)]
    assert b"old" in everything
    assert len(everything) == 9
    end(partition, A)
    fill(partition, b"2")
    sweep(log)
    assert b"old" not in read(partition)
    assert b"in the transaction" in read(partition)
    log.close()
