"""One partition in segment files: append, read, look up by time, delete a prefix. An empty one has no row and no file."""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Iterator

from broker.protocol.control_records import Marker, build_marker_batch
from broker.protocol.errors import ErrorCode
from broker.protocol.record_batch import BatchHeader, parse_header, patch, set_log_append_time
from broker.storage.errors import OutOfDescriptors, StorageError
from broker.storage.files import FileSlice, OpenFile
from broker.storage.partition_log import LEADER_EPOCH, AbortedTransaction, Appended, ProducerState
from broker.storage.segments.batch_fields import empty_batch, set_create_time
from broker.storage.segments.checkpoint import Checkpoint
from broker.storage.segments.partition_table import (
    add_partition,
    delete_segment,
    load_partition,
    load_segments,
    mark_beyond_checkpoint,
    save_segments,
    set_log_start,
)
from broker.storage.segments.producers import Producers
from broker.storage.segments.segment import Segment
from broker.storage.segments.segment_file import Place
from broker.storage.segments.shared import Shared
from broker.storage.segments.synced_ends import SyncedEnd
from broker.storage.segments.time_lookup import first_newest, first_since
from broker.storage.segments.transactions import Transactions
from broker.storage.segments.validation import check_batch
from broker.storage.segments.visible import Visible
from broker.storage.store.catalog import Topic

MAX_RELATIVE_OFFSET = 2**31 - 1


class SegmentPartition:
    """A PartitionLog in segment files."""

    leader_epoch = LEADER_EPOCH

    def __init__(self, shared: Shared, topic: Topic, index: int) -> None:
        self._shared = shared
        self.topic = topic
        self.index = index
        self.policy = shared.policy_of(topic)
        self.partition_id = 0  # 0: no row in the store yet
        self.log_start_offset = 0
        self.high_watermark = 0
        self.last_stable_offset = 0
        self.segments: list[Segment] = []
        self.deleted = False
        self._visible = Visible()
        self._load()

    # -- state

    @property
    def directory(self) -> str:
        return os.path.join(self._shared.root, self.topic.topic_id.hex(), str(self.index))

    @property
    def place(self) -> Place:
        return Place(self.directory, self.topic.topic_id, self.index)

    @property
    def name(self) -> str:
        return f"{self.topic.name}-{self.index}"

    @property
    def active(self) -> Segment:
        return self.segments[-1]

    @property
    def log_end_offset(self) -> int:
        return self.segments[-1].end_offset if self.segments else 0

    @property
    def size_bytes(self) -> int:
        return sum(segment.size_bytes for segment in self.segments)

    @property
    def producers(self) -> Producers:
        return self.transactions.producers

    def _load(self) -> None:
        store = self._shared.store
        row = load_partition(store, self.topic.topic_id, self.index)
        self.transactions = Transactions(store, row.partition_id if row is not None else 0)
        is_passed = row is not None and row.beyond_checkpoint
        self._checkpoint = Checkpoint(store, self.transactions, is_passed=is_passed)
        if row is None:
            return
        self.partition_id, self.log_start_offset = row.partition_id, row.log_start_offset
        interval_bytes = self.policy.index_interval_bytes
        self.segments = load_segments(store, self.partition_id, self._shared.files, self.place, interval_bytes)
        if row.has_open_transactions:
            _ = self.producers
        self.advance()

    def advance(self) -> None:
        """Everything appended is durable: show it to readers."""
        if self.segments:
            visible = self._visible
            visible.advance(self.segments, self.transactions.first_open_offset, self.log_start_offset)
            self.high_watermark, self.last_stable_offset = visible.high_watermark, visible.last_stable_offset

    def policy_changed(self) -> None:
        self.policy = self._shared.policy_of(self.topic)
        for segment in self.segments:
            segment.interval_bytes = self.policy.index_interval_bytes

    # -- appending

    def append(self, records: memoryview | bytes, *, wall_ms: int) -> Appended | ErrorCode:
        self._shared.failure.check()
        if self.deleted:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        checked = check_batch(records, self.policy, wall_ms)
        if isinstance(checked, ErrorCode):
            return checked
        log_append_time = self.policy.log_append_time
        if checked.producer_id >= 0:
            verdict = self.producers.check(checked, wall_ms)
            if isinstance(verdict, ErrorCode):
                if verdict is not ErrorCode.NONE:
                    return verdict
            else:
                return Appended(verdict.base_offset, verdict.timestamp, self.log_start_offset, duplicate=True)
        batch = bytearray(records[: checked.size_bytes])
        patch(batch, 0, base_offset=self.log_end_offset, leader_epoch=LEADER_EPOCH)
        if log_append_time:
            set_log_append_time(batch, 0, wall_ms)
        elif checked.has_log_append_time:
            set_create_time(batch)
        header = parse_header(batch)
        self._write(batch, header)
        if header.producer_id >= 0:
            self.transactions.note(header)
        return Appended(header.base_offset, wall_ms if log_append_time else -1, self.log_start_offset, duplicate=False)

    def append_marker(self, marker: Marker, *, wall_ms: int) -> Appended | ErrorCode:
        self._shared.failure.check()
        if self.deleted:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        error = self.producers.check_marker(marker)
        if error is not ErrorCode.NONE:
            return error
        offset = self.log_end_offset
        batch = build_marker_batch(marker, timestamp_ms=wall_ms, base_offset=offset, leader_epoch=LEADER_EPOCH)
        header = parse_header(batch)
        self._write(batch, header)
        self.transactions.note_marker(marker, header)
        return Appended(offset, -1, self.log_start_offset, duplicate=False)

    def restore(self, batch: bytes, header: BatchHeader) -> None:
        """Append a batch that has its offset already: the log end."""
        self._shared.failure.check()
        self._write(batch, header)
        self.transactions.replay(header, batch)

    def start_segment(self, base_offset: int) -> None:
        """Begin a segment at this offset, which is not before the log end."""
        if not self._checkpoint.is_passed:
            self._begin_writing()
        self.roll(base_offset)

    def _write(self, batch: bytes | bytearray, header: BatchHeader) -> None:
        shared = self._shared
        # Damage that is found here stops no other partition: nothing is written yet.
        file = self.active.prepare() if self.segments else None
        try:
            shared.files.hold_spares()
            if file is None or self._is_full(len(batch), header):
                file = self.roll()
            if not self._checkpoint.is_passed:
                self._begin_writing()
            self.active.append(batch, header)
        except OutOfDescriptors:
            # Nothing is written yet, so this is no failure of the log.
            raise
        except StorageError as error:
            shared.failure.remember(error)
            raise
        shared.pending.touch(self, file)
        self._checkpoint.count(len(batch))

    def _begin_writing(self) -> None:
        """Note in the store, before anything is acknowledged, that this partition has bytes beyond its checkpoint."""
        store = self._shared.store
        if self.partition_id == 0:
            self.partition_id = add_partition(store, self.topic.topic_id, self.index)
            self.transactions.partition_id = self.partition_id
            self._shared.ends.announce(self.partition_id, self.topic.topic_id, self.index, store.evidence.last_commit)
        else:
            mark_beyond_checkpoint(store, self.partition_id, True)
        self._checkpoint.is_passed = True

    def _is_full(self, size: int, header: BatchHeader) -> bool:
        active, policy = self.active, self.policy
        if active.size_bytes == 0:
            return False
        return (
            active.size_bytes + size > policy.segment_bytes
            or header.last_offset - active.base_offset > MAX_RELATIVE_OFFSET
            or (active.first_timestamp >= 0 and header.max_timestamp - active.first_timestamp > policy.roll_ms)
        )

    def roll(self, base_offset: int | None = None) -> OpenFile:
        """Seal the active segment and start a new one at this offset; by default, at the log end. Return its file."""
        if base_offset is None:
            base_offset = self.log_end_offset
        segment = Segment(self._shared.files, self.place, base_offset, interval_bytes=self.policy.index_interval_bytes)
        # Both files are open before anything changes: there may be no descriptor for one of them.
        sealed_file = self.active.prepare() if self.segments else None
        if sealed_file is None:
            self._shared.pending.make_directories(self.topic, self.directory)
        file = segment.create()
        if sealed_file is not None:
            sealed = self.active
            self._shared.pending.touch(self, sealed.seal())
            sealed.save_index()
            self._checkpoint.changed[sealed] = None
            self._shared.keep_index(sealed)
        self._shared.pending.touch(self, file)
        self._shared.pending.touch_directory(self.directory)
        self.segments.append(segment)
        self._checkpoint.changed[segment] = None
        return file

    # -- transactions

    def has_open_transaction(self, producer_id: int, producer_epoch: int) -> bool:
        return self.producers.has_open_transaction(producer_id, producer_epoch)

    def start_verification(self, records: memoryview | bytes, *, adds_partition: bool, wall_ms: int) -> ErrorCode:
        return self.producers.start_verification(parse_header(records), adds_partition, wall_ms)

    def aborted_transactions(self, start: int, end: int) -> list[AbortedTransaction]:
        return self.transactions.aborted_between(start, end)

    def producer_states(self) -> list[ProducerState]:
        return list(self.producers.states())

    # -- flushing

    def synced(self) -> None:
        """The appended bytes are on disk: write a checkpoint if one is due."""
        if self._checkpoint.is_due:
            self.checkpoint()

    def flushed(self) -> tuple[int, SyncedEnd]:
        self.advance()
        return self.partition_id, self.synced_end()

    def synced_end(self) -> SyncedEnd:
        """The end of the active segment, all of which is on disk."""
        active = self.active
        return SyncedEnd(
            self.topic.topic_id,
            self.index,
            active.base_offset,
            active.size_bytes,
            active.end_offset,
            self._shared.store.evidence.last_commit,
            active.last_size,
            active.last_crc,
        )

    @property
    def is_beyond_checkpoint(self) -> bool:
        """Bytes are on disk that the store does not list yet."""
        return self._checkpoint.is_passed and not self.deleted

    def checkpoint(self, *, complete: bool = False) -> None:
        """Write ends and producers to the store. `complete`: no append is pending, so the store then lists everything."""
        self._checkpoint.write(self.active, complete=complete)

    # -- reading

    def _segment_at(self, offset: int) -> int:
        return max(0, bisect_right(self.segments, offset, key=lambda segment: segment.base_offset) - 1)

    def _use(self, segment: Segment) -> Segment:
        if segment is not self.active:
            self._shared.keep_index(segment)
        return segment

    def read(
        self, offset: int, max_bytes: int, *, at_least_one: bool, committed: bool = False
    ) -> bytes | FileSlice | None:
        if self.deleted or not self.log_start_offset <= offset <= self.log_end_offset:
            return None
        until = self.last_stable_offset if committed else self.high_watermark
        if offset >= until:
            return b""
        end_in = self._visible.stable_end_in if committed else self._visible.end_in
        for segment in self.segments[self._segment_at(offset) :]:
            visible = end_in(segment)
            spot = self._use(segment).find_offset(offset, visible)
            if spot is None:
                continue
            if spot.size > max_bytes and not at_least_one:
                return b""
            found = segment.slice(spot, min(visible, spot.position + max_bytes))
            found.is_cut |= found.end_offset < until and found.position + found.length == visible
            return found
        # No file has these offsets, as if compaction had removed them: without a batch, readers would stay here.
        batch = empty_batch(offset, until)
        return batch if at_least_one or len(batch) <= max_bytes else b""

    def offset_for_timestamp(self, timestamp: int) -> tuple[int, int] | None:
        return first_since(self._visible_segments(), self.log_start_offset, timestamp)

    def offset_of_max_timestamp(self) -> tuple[int, int] | None:
        return first_newest(self._visible_segments(), self.log_start_offset)

    def _visible_segments(self) -> Iterator[tuple[Segment, int, tuple[int, int]]]:
        """Yield segments with visible records: (segment, end position, (max timestamp, base offset of its batch))."""
        for segment in self.segments:
            visible = self._visible.end_in(segment)
            if segment.end_offset > self.log_start_offset and visible:
                yield self._use(segment), visible, self._visible.newest_in(segment)

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        return (LEADER_EPOCH, self.high_watermark) if epoch == LEADER_EPOCH else (-1, -1)

    # -- deleting

    def delete_records(self, before_offset: int) -> int | ErrorCode:
        if not self.policy.delete:
            return ErrorCode.POLICY_VIOLATION
        if before_offset == -1:
            before_offset = self.high_watermark
        if not 0 <= before_offset <= self.high_watermark:
            return ErrorCode.OFFSET_OUT_OF_RANGE
        if before_offset > self.log_start_offset:
            count = 0
            while count + 1 < len(self.segments) and self.segments[count + 1].base_offset <= before_offset:
                count += 1
            self.drop_segments(count, before_offset)
        return self.log_start_offset

    def drop_segments(self, count: int, log_start: int) -> None:
        """Remove the first `count` segments (never the active one) and move the log start to `log_start`."""
        shared = self._shared
        shared.failure.check()
        self.log_start_offset = max(self.log_start_offset, log_start)
        set_log_start(shared.store, self.partition_id, self.log_start_offset)
        for segment in self.segments[:count]:
            delete_segment(shared.store, self.partition_id, segment.base_offset)
            self.forget_segment(segment)
        del self.segments[:count]
        self.transactions.drop_before(self.log_start_offset)
        self._visible.stabilize(self.segments, self.log_start_offset)
        self.last_stable_offset = self._visible.last_stable_offset

    def forget(self) -> None:
        """The topic was deleted. The caller removes its rows and files."""
        self.deleted = True
        self._shared.pending.forget(self)
        for segment in self.segments:
            self._shared.loaded_indexes.pop(segment, None)

    def forget_segment(self, segment: Segment) -> None:
        """Remove its files once the store no longer lists it."""
        self._shared.loaded_indexes.pop(segment, None)
        self._checkpoint.changed.pop(segment, None)
        self._shared.pending.unlink_after(segment.path)
        self._shared.pending.unlink_after(segment.index_path)

    def segment_changed(self, segment: Segment) -> None:
        """Save a changed sealed segment to the store."""
        save_segments(self._shared.store, self.partition_id, [segment])

    def replace_segment(self, old: Segment, new: Segment | None) -> None:
        """Put `new` (synced, or None if nothing is left) in the place of a sealed segment."""
        at = self.segments.index(old)
        self.forget_segment(old)
        self.segments[at : at + 1] = [new] if new is not None else []
        if new is None:
            delete_segment(self._shared.store, self.partition_id, old.base_offset)
        else:
            save_segments(self._shared.store, self.partition_id, [new])
