"""A log in memory that keeps what was flushed, loses what was not, and fails on demand."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from broker.cores.groups.hard_state import HardState
from broker.cores.groups.records import GenerationFloor, OffsetCommitRecord, OffsetsRow, StateRecord, from_row
from broker.protocol.newer_group_records import GROUP_METADATA, encode_newer_key
from broker.protocol.offsets_topic import GroupMetadataKey, encode_key
from broker.storage import EVENTS_TOPIC, OFFSETS_TOPIC, RowLike, StorageError, StoredPendingOffset
from tests.harness.simulation.chronicle import Change, EventRow


@dataclass
class Content:
    """The content of a disk, or of the open transaction over it."""

    rows: dict[bytes, OffsetsRow] = field(default_factory=dict)  # the newest row of each key
    floors: dict[str, int] = field(default_factory=dict)
    deaths: dict[bytes, int] = field(default_factory=dict)  # how many tombstones each key has had
    events: list[EventRow] = field(default_factory=list)

    def write(self, change: Change) -> None:
        if isinstance(change, EventRow):
            self.events.append(change)
        elif isinstance(change, GenerationFloor):
            self.floors.pop(change.group_id, None)
            if change.generation is not None:
                self.floors[change.group_id] = change.generation
        elif change.value is None:
            self.rows.pop(change.key, None)
            self.deaths[change.key] = self.deaths.get(change.key, 0) + 1
        else:
            self.rows[change.key] = change

    def copy(self) -> Content:
        return Content(dict(self.rows), dict(self.floors), dict(self.deaths), list(self.events))

    def records(self) -> Iterator[StateRecord]:
        yield from _records(self.rows.values())
        for group_id, generation in self.floors.items():
            yield GenerationFloor(group_id, generation)


@dataclass(frozen=True)
class OffsetsTopic:
    partition_count: int = 50


class Disk:
    """Replaces broker.storage.Log for the runner and the flusher; it survives the brokers.

    `failing` is called at each flush: None if it succeeds, otherwise whether the failed flush is found after a restart.
    """

    topics = {OFFSETS_TOPIC: OffsetsTopic()}

    def __init__(self, failing: Callable[[], bool | None], committing: Callable[[], None]) -> None:
        self._failing = failing
        self._committing = committing
        self._pending: list[Change] = []
        self.failed = False
        self.written = 0  # changes ever written, of which `synced` are durable
        self.synced = 0
        self.durable = Content()
        self.live = Content()
        self.journal: list[list[Change]] = []  # every durable transaction, never compacted

    # ---- for the runner and the flusher ------------------------------------------------------------------------------

    @property
    def dirty(self) -> bool:
        return bool(self._pending)

    def flush(self) -> None:
        self._committing()
        comes_back = self._failing()
        if comes_back is not None:
            self.failed = True
            if comes_back:
                self._keep()
            raise StorageError("the disk fails on demand")
        self._keep()

    def append_rows(self, topic: str, rows: Sequence[RowLike]) -> None:
        for row in rows:
            if topic == EVENTS_TOPIC:
                assert row.value is not None
                self._write(EventRow(row.key, row.value, row.timestamp_ms))
            else:
                self._write(OffsetsRow(row.partition, row.key, row.value, row.timestamp_ms))

    @property
    def groups(self) -> DiskGroups:
        return DiskGroups(self.live, self._write)

    @property
    def pending_offsets(self) -> NoPendingOffsets:
        return NoPendingOffsets()

    # ---- for the world -----------------------------------------------------------------------------------------------

    def crash(self) -> None:
        """Drop what was never flushed."""
        self._pending.clear()
        self.written = self.synced
        self.live = self.durable.copy()
        self.failed = False

    def life(self, group_id: str) -> int:
        """How often the group has been deleted; its generations may start again with each life."""
        classic, consumer = encode_key(GroupMetadataKey(group_id)), encode_newer_key(GROUP_METADATA, group_id)
        return self.live.deaths.get(classic, 0) + self.live.deaths.get(consumer, 0)

    def replayed(self) -> tuple[HardState, HardState]:
        """The hard state of the durable log: from every change ever written, and from the newest row of each key."""
        whole, compacted = HardState(), HardState()
        for change in (change for transaction in self.journal for change in transaction):
            if isinstance(change, GenerationFloor):
                whole.apply(change)
            elif isinstance(change, OffsetsRow):
                for record in _records([change]):
                    whole.apply(record)
        for record in self.durable.records():
            compacted.apply(record)
        return whole, compacted

    def offsets(self) -> dict[tuple[str, str, int], int]:
        """The durable committed offsets by (group, topic, partition)."""
        found = _records(row for row in self.durable.rows.values() if _is_offset(row))
        return {(r.group_id, r.topic, r.partition): r.offset for r in found if isinstance(r, OffsetCommitRecord)}

    def _write(self, change: Change) -> None:
        self._pending.append(change)
        self.live.write(change)
        self.written += 1

    def _keep(self) -> None:
        for change in self._pending:
            self.durable.write(change)
        self.journal.append(self._pending)
        self._pending = []
        self.synced = self.written


class NoPendingOffsets:
    """Replaces broker.storage.StoredPendingOffsets: no client of these worlds has transactions."""

    def all(self) -> list[StoredPendingOffset]:
        return []


class DiskGroups:
    """Replaces broker.storage.StoredGroups for the runner."""

    def __init__(self, live: Content, write: Callable[[Change], None]) -> None:
        self._live = live
        self._write = write

    def set_generation_floor(self, group_id: str, generation: int | None) -> None:
        self._write(GenerationFloor(group_id, generation))

    def generation_floors(self) -> dict[str, int]:
        return dict(self._live.floors)

    def metadata_rows(self) -> list[OffsetsRow]:
        """In the order of their keys, as from the store."""
        return sorted((row for row in self._live.rows.values() if not _is_offset(row)), key=lambda row: row.key)

    def ids_with_offsets(self) -> list[str]:
        return list(dict.fromkeys(record.group_id for record in self._offsets()))

    def offset_pages(self, group_id: str) -> Iterator[list[OffsetsRow]]:
        yield self._rows_of(group_id)

    def remove_group(self, group_id: str) -> None:
        """Write all tombstones at once."""
        for row in self._rows_of(group_id):
            self._write(row._replace(value=None))

    has_removals = False

    def settle_slice(self) -> bool:
        return False

    def resolve_doubts(self) -> Iterator[None]:
        yield from ()

    def _rows_of(self, group_id: str) -> list[OffsetsRow]:
        rows = self._live.rows.values()
        return [row for row in rows if _is_offset(row) and next(iter(_records([row]))).group_id == group_id]

    def _offsets(self) -> Iterator[OffsetCommitRecord]:
        for record in _records(row for row in self._live.rows.values() if _is_offset(row)):
            assert isinstance(record, OffsetCommitRecord)
            yield record


def _is_offset(row: OffsetsRow) -> bool:
    return row.key[:2] in (b"\x00\x00", b"\x00\x01")


def _records(rows: Iterable[OffsetsRow]) -> Iterator[StateRecord]:
    for row in rows:
        record = from_row(row.key, row.value, row.timestamp_ms)
        assert record is not None
        yield record
