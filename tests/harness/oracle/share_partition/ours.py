"""Plays the commands of a walk on our share partition, and shows the same as SharePartitionPlayer.java."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Collection
from typing import Any

from broker.cores.share.acknowledgement import Acknowledgement, acknowledge, expire, release
from broker.cores.share.acquisition import AbortedFrom, FetchedBatch, Wanted, acquire
from broker.cores.share.in_flight import Delivery
from broker.cores.share.partition import Limits, Refusal, SharePartition
from broker.cores.share.state import PartitionState, SharePartitionKey, StateSummary
from broker.cores.share.state_batches import StateBatch
from broker.protocol.control_records import read_marker
from broker.protocol.errors import ErrorCode
from broker.protocol.record_batch import batches

KEY = SharePartitionKey("g", bytes(16), 0)
FAILURE_MESSAGES = "refused"


class _Store:
    """A share coordinator that takes every write, or refuses it."""

    def __init__(self, state: PartitionState) -> None:
        self._state = state
        self.writes: list[Any] = []
        self.failure = ErrorCode.NONE

    def read(self, key: SharePartitionKey, leader_epoch: int) -> PartitionState | ErrorCode:
        return self._state

    def write(
        self,
        key: SharePartitionKey,
        state_epoch: int,
        leader_epoch: int,
        start_offset: int,
        batches: Collection[StateBatch],
    ) -> ErrorCode:
        self.writes.append([start_offset, [[*batch] for batch in batches]])
        return self.failure

    def initialize(self, key: SharePartitionKey, state_epoch: int, start_offset: int = -1) -> ErrorCode:
        raise NotImplementedError

    def delete(self, key: SharePartitionKey) -> ErrorCode:
        raise NotImplementedError

    def summary(self, key: SharePartitionKey) -> StateSummary:
        raise NotImplementedError


class Player:
    partition: SharePartition

    def __init__(self) -> None:
        self._now_ms = 0
        self._lock_ms = 0
        self._store = _Store(PartitionState(0, 0, ()))

    def play(self, line: str) -> dict[str, Any]:
        command, *words = line.split(" ")
        self._store.writes = []
        result = getattr(self, f"_{command}")(*words)
        partition = self.partition
        can = partition.can_acquire()
        return {
            "result": result,
            "can": can,
            "next": partition.next_fetch_offset(),
            "start": partition.start_offset,
            "end": partition.end_offset,
            "batches": [
                [
                    batch.first_offset,
                    batch.last_offset,
                    batch.whole is not None,
                    [_shown(delivery) for _, _, delivery in batch.runs()],
                ]
                for batch in partition.in_flight
            ],
            "writes": self._store.writes,
        }

    def _new(self, in_flight: str, deliveries: str, lock_ms: str, start: str, *states: str) -> list[Any]:
        stored = tuple(StateBatch(*map(int, state.split(":"))) for state in states)
        self._store = _Store(PartitionState(1, int(start), stored))
        self._lock_ms = int(lock_ms)
        self.partition = SharePartition(KEY, self._store, 0, Limits(int(in_flight), int(deliveries)))
        return _error(self.partition.load(lambda: 0))

    def _acquire(
        self, member: str, batch_size: str, most: str, offset: str, committed: str, aborted: str, records: str
    ) -> list[list[int]]:
        content = b64decode(records)
        read = []
        for position, header in batches(content):
            marker = read_marker(content, position) if header.is_control else None
            is_abort = marker is not None and not marker.is_commit
            place = header.base_offset, header.last_offset
            read.append(FetchedBatch(*place, header.producer_id, header.is_transactional, is_abort))
        wanted = Wanted(member, int(most), int(batch_size), self._now_ms + self._lock_ms)
        skipped = [] if aborted == "-" else [AbortedFrom(*map(int, word.split(":"))) for word in aborted.split(",")]
        found = acquire(self.partition, wanted, int(offset), read, skipped if committed == "1" else ())
        return [[*acquired] for acquired in found]

    def _ack(self, member: str, *given: str) -> list[Any]:
        parts = [word.split(":") for word in given]
        acknowledgements = [
            Acknowledgement(int(first), int(last), [int(type_) for type_ in types.split(",")])
            for first, last, types in parts
        ]
        return _error(acknowledge(self.partition, member, acknowledgements))

    def _release(self, member: str) -> list[Any]:
        return _error(release(self.partition, member))

    def _advance(self, ms: str) -> None:
        self._now_ms += int(ms)
        expire(self.partition, self._now_ms)

    def _start(self, log_start: str) -> None:
        self.partition.log_start_moved(int(log_start))

    def _fail(self, code: str) -> None:
        self._store.failure = ErrorCode(int(code))


def _shown(delivery: Delivery) -> list[Any]:
    return [int(delivery.state), delivery.count, delivery.member_id]


def _error(refusal: Refusal | None) -> list[Any]:
    return [0, None] if refusal is None else [int(refusal.code), refusal.message]


def comparable(line: str, shown: dict[str, Any]) -> dict[str, Any]:
    """Without what may differ: Kafka writes what times out in several parts, and its errors of writes have other words."""
    found = dict(shown)
    if line.startswith("advance"):
        written = [batch for _, batches in shown["writes"] for batch in batches]
        found["writes"] = sorted([at, *batch[2:]] for batch in written for at in range(batch[0], batch[1] + 1))
    result = found["result"]
    if shown["writes"] and isinstance(result, list) and result[:1] not in ([0], []) and not isinstance(result[0], list):
        found["result"] = result[:1]
    return found
