"""Where share partitions differ from Kafka 4.1's, which loses its way there, and what the walks leave out."""

from __future__ import annotations

import pytest

from broker.cores.share.acknowledgement import Acknowledgement, acknowledge, expire, release
from broker.cores.share.acquisition import AbortedFrom, Acquired, FetchedBatch, Wanted, acquire
from broker.cores.share.coordinator import ShareCoordinator, ShareStateRecord
from broker.cores.share.partition import Limits, SharePartition
from broker.cores.share.state import PartitionState, SharePartitionKey, StateSummary
from broker.cores.share.state_batches import StateBatch
from broker.protocol.errors import ErrorCode

KEY = SharePartitionKey("g", bytes(16), 0)
ACCEPT, RELEASE = 1, 2
LOCK_MS = 100


class Direct:
    """The share coordinator without a log."""

    def __init__(self) -> None:
        self.coordinator = ShareCoordinator(500)
        self.records: list[ShareStateRecord] = []

    def initialize(self, key: SharePartitionKey, state_epoch: int, start_offset: int = -1) -> ErrorCode:
        return self.coordinator.initialize(key, state_epoch, start_offset, 0).error

    def read(self, key: SharePartitionKey, leader_epoch: int) -> PartitionState | ErrorCode:
        return self.coordinator.read(key, leader_epoch, 0)[0]

    def write(self, key: SharePartitionKey, *change: object) -> ErrorCode:
        return self.coordinator.write(key, *change, 0).error  # type: ignore[arg-type]

    def delete(self, key: SharePartitionKey) -> ErrorCode:
        return self.coordinator.delete(key).error

    def summary(self, key: SharePartitionKey) -> StateSummary:
        return self.coordinator.summary(key)


@pytest.fixture
def state() -> Direct:
    direct = Direct()
    direct.initialize(KEY, 1, 0)
    return direct


def loaded(state: Direct, in_flight: int = 2000) -> SharePartition:
    partition = SharePartition(KEY, state, 0, Limits(in_flight))
    assert partition.load(lambda: 0) is None
    return partition


def take(partition: SharePartition, *batches: tuple[int, int], member: str = "m1", most: int = 500) -> list[Acquired]:
    read = [FetchedBatch(*batch) for batch in batches]
    return acquire(partition, Wanted(member, most, 1, LOCK_MS), partition.next_fetch_offset(), read)


def said(partition: SharePartition, first: int, last: int, type_: int, member: str = "m1") -> ErrorCode:
    refusal = acknowledge(partition, member, [Acknowledgement(first, last, [type_])])
    return ErrorCode.NONE if refusal is None else refusal.code


def test_the_log_start_archives_all_available_batches_that_it_passes(state: Direct) -> None:
    partition = loaded(state)
    assert len(take(partition, (0, 4), (5, 9), (10, 14), (15, 19))) == 4
    assert said(partition, 0, 19, RELEASE) is ErrorCode.NONE
    assert partition.log_start_moved(12)
    assert (partition.start_offset, partition.next_fetch_offset()) == (12, 12)
    assert not partition.log_start_moved(11)
    # The rest of the batch, and no record below the log start.
    assert [each[:2] for each in take(partition, (10, 14), (15, 19))] == [(12, 12), (13, 13), (14, 14), (15, 19)]


@pytest.mark.parametrize("how", ["expire", "release", "acknowledge"])
def test_acquired_records_below_the_log_start_are_archived_when_they_are_released(state: Direct, how: str) -> None:
    partition = loaded(state)
    take(partition, (0, 4), (5, 9), (10, 14))
    partition.log_start_moved(7)
    if how == "expire":
        assert expire(partition, LOCK_MS)
    elif how == "release":
        assert release(partition, "m1") is None
    else:
        # What is below is skipped, whatever is said of it.
        assert said(partition, 0, 14, RELEASE) is ErrorCode.NONE
    assert partition.next_fetch_offset() == 7
    assert partition.start_offset == 7
    counts = {"expire": 2, "release": 1, "acknowledge": 2}
    assert [each[:2] for each in take(partition, (5, 9), (10, 14))] == [(7, 7), (8, 8), (9, 9), (10, 14)]
    assert partition.in_flight.last.at(10).count == counts[how]
    assert said(partition, 7, 14, ACCEPT) is ErrorCode.NONE
    # As in Kafka, what was acquired below the log start stays in flight until its lock ends.
    expire(partition, LOCK_MS)
    assert (partition.start_offset, partition.end_offset) == (15, 15)


def test_the_start_offset_never_moves_back(state: Direct) -> None:
    partition = loaded(state)
    take(partition, (0, 0), (1, 1), (2, 9))
    partition.log_start_moved(5)
    # Kafka goes back to 1 here: the records from there on are still in flight.
    assert said(partition, 0, 0, ACCEPT) is ErrorCode.NONE
    assert expire(partition, LOCK_MS)
    assert partition.start_offset == 5
    assert said(partition, 9, 9, ACCEPT) is ErrorCode.INVALID_RECORD_STATE


def test_a_partition_full_of_aborted_records_reads_on(state: Direct) -> None:
    partition = loaded(state, in_flight=10)
    aborted = [FetchedBatch(at, at + 4, 7, is_transactional=True) for at in (0, 5)]
    assert acquire(partition, Wanted("m1", 500, 500, LOCK_MS), 0, aborted, [AbortedFrom(7, 0)]) == []
    assert partition.can_acquire()
    assert (partition.start_offset, partition.next_fetch_offset()) == (10, 10)


def test_a_gap_from_before_a_restart_is_acquired_without_what_follows_it(state: Direct) -> None:
    partition = loaded(state)
    take(partition, (0, 4), (5, 9))
    assert said(partition, 3, 9, ACCEPT) is ErrorCode.NONE
    partition = loaded(state)
    assert partition.next_fetch_offset() == 0
    # Kafka acquires all of the record batch, with the records 3 and 4, which are acknowledged.
    assert take(partition, (0, 4), (5, 9), most=1) == [Acquired(0, 2, 1)]
    assert said(partition, 0, 2, ACCEPT) is ErrorCode.NONE
    # What follows may have gaps, too, until it has been read.
    assert partition.start_offset == 3
    # Kafka acquires 0 to 2 again, as the batch has them.
    assert take(partition, (0, 4), (5, 9), (10, 14)) == [Acquired(10, 14, 1)]
    assert said(partition, 10, 14, ACCEPT) is ErrorCode.NONE
    assert partition.start_offset == 15


def test_a_partition_whose_last_gap_was_acknowledged_reads_on(state: Direct) -> None:
    partition = loaded(state)
    take(partition, (0, 4), (5, 9))
    assert said(partition, 3, 9, ACCEPT) is ErrorCode.NONE
    partition = loaded(state, in_flight=7)
    take(partition, (0, 2), (3, 9), most=1)
    assert said(partition, 0, 2, ACCEPT) is ErrorCode.NONE
    # As many records as are allowed seem to be in flight, and no member has them. With Kafka it stays so.
    assert partition.start_offset == 3
    assert partition.can_acquire()
    assert (partition.start_offset, partition.next_fetch_offset()) == (10, 10)


def test_a_fenced_partition_neither_acquires_nor_acknowledges(state: Direct) -> None:
    partition = loaded(state)
    take(partition, (0, 4))
    partition.is_fenced = True
    assert take(partition, (5, 9)) == []
    assert said(partition, 0, 4, ACCEPT) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert release(partition, "m1") is not None


def test_a_newer_state_epoch_fences_and_undoes_the_acknowledgement(state: Direct) -> None:
    partition = loaded(state)
    take(partition, (0, 4))
    state.initialize(KEY, 2, 3)
    assert said(partition, 0, 4, ACCEPT) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert partition.in_flight.first.at(0).member_id == "m1"
    # The locks end all the same.
    assert expire(partition, LOCK_MS)
    assert partition.next_fetch_offset() == 0
    assert loaded(state).start_offset == 3


def test_a_partition_that_cannot_be_loaded_says_why(state: Direct) -> None:
    other = SharePartition(KEY._replace(partition=1), state, 0, Limits())
    refusal = other.load(lambda: 0)
    assert refusal is not None
    assert refusal.code is ErrorCode.UNKNOWN_SERVER_ERROR
    stale = SharePartition(KEY, state, -1, Limits())
    refusal = stale.load(lambda: 0)
    assert refusal is not None
    assert refusal.code is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_batches_in_flight_are_stored_with_their_states(state: Direct) -> None:
    partition = loaded(state)
    take(partition, (0, 4), (5, 9))
    assert said(partition, 5, 9, RELEASE) is ErrorCode.NONE
    assert said(partition, 2, 2, ACCEPT) is ErrorCode.NONE
    found = state.read(KEY, 0)
    assert isinstance(found, PartitionState)
    assert found.batches == (StateBatch(2, 2, 2, 1), StateBatch(5, 9, 0, 1))
