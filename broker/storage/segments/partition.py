"""One partition in segment files: append, read, look up by time, delete a prefix. An empty one has no row and no file."""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Iterator

from broker.protocol.errors import ErrorCode
from broker.protocol.record_batch import BatchHeader, parse_header, patch, set_log_append_time
from broker.storage.errors import OutOfDescriptors, StorageError
from broker.storage.files import FileSlice, OpenFile
from broker.storage.partition_log import LEADER_EPOCH, Appended
from broker.storage.segments.batch_fields import empty_batch, set_create_time
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
from broker.storage.segments.time_lookup import first_newest, first_not_older, newest_batch
from broker.storage.segments.validation import check_batch
from broker.storage.store.catalog import Topic

# A checkpoint follows after this much was written: it bounds what a start after a crash has to read.
CHECKPOINT_BYTES = 8 << 20
CHECKPOINT_BATCHES = 4000
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
        self.segments: list[Segment] = []
        self.deleted = False
        self._visible_position = 0  # of the high watermark, in the segment that holds it
        self._visible_base = 0
        self._visible_max = (-1, -1)
        self._beyond_checkpoint = False  # the store knows that the active segment may reach beyond its checkpoint
        self._changed_segments: dict[Segment, None] = {}
        self._bytes_since_checkpoint = 0
        self._batches_since_checkpoint = 0
        self._producers: Producers | None = None
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
        if self._producers is None:
            if self.partition_id:
                self._producers = Producers.load(self._shared.store, self.partition_id)
            else:
                self._producers = Producers()
        return self._producers

    def _load(self) -> None:
        store = self._shared.store
        row = load_partition(store, self.topic.topic_id, self.index)
        if row is None:
            return
        self.partition_id, self.log_start_offset = row.partition_id, row.log_start_offset
        self._beyond_checkpoint = row.beyond_checkpoint
        interval_bytes = self.policy.index_interval_bytes
        self.segments = load_segments(store, self.partition_id, self._shared.files, self.place, interval_bytes)
        self.advance()

    def advance(self) -> None:
        """Everything appended is durable: show it to readers."""
        if self.segments:
            active = self.active
            self.high_watermark = active.end_offset
            self._visible_base = active.base_offset
            self._visible_position = active.size_bytes
            self._visible_max = (active.max_timestamp, active.max_timestamp_offset)

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
            verdict = self.producers.check(checked)
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
            self.producers.note(header)
        return Appended(header.base_offset, wall_ms if log_append_time else -1, self.log_start_offset, duplicate=False)

    def restore(self, batch: bytes, header: BatchHeader) -> None:
        """Append a batch that has its offset already: the log end. Its producer is not noted."""
        self._shared.failure.check()
        self._write(batch, header)

    def start_segment(self, base_offset: int) -> None:
        """Begin a segment at this offset, which is not before the log end."""
        if not self._beyond_checkpoint:
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
            if not self._beyond_checkpoint:
                self._begin_writing()
            self.active.append(batch, header)
        except OutOfDescriptors:
            # Nothing is written yet, so this is no failure of the log.
            raise
        except StorageError as error:
            shared.failure.remember(error)
            raise
        shared.pending.touch(self, file)
        self._bytes_since_checkpoint += len(batch)
        self._batches_since_checkpoint += 1

    def _begin_writing(self) -> None:
        """Note in the store, before anything is acknowledged, that this partition has bytes beyond its checkpoint."""
        store = self._shared.store
        if self.partition_id == 0:
            self.partition_id = add_partition(store, self.topic.topic_id, self.index)
            self._shared.ends.announce(self.partition_id, self.topic.topic_id, self.index, store.evidence.last_commit)
        else:
            mark_beyond_checkpoint(store, self.partition_id, True)
        self._beyond_checkpoint = True

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
            self._changed_segments[sealed] = None
            self._shared.keep_index(sealed)
        self._shared.pending.touch(self, file)
        self._shared.pending.touch_directory(self.directory)
        self.segments.append(segment)
        self._changed_segments[segment] = None
        return file

    # -- flushing

    def synced(self) -> None:
        """The appended bytes are on disk: write a checkpoint if one is due."""
        if (
            self._changed_segments
            or self._bytes_since_checkpoint >= CHECKPOINT_BYTES
            or self._batches_since_checkpoint >= CHECKPOINT_BATCHES
        ):
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
        return self._beyond_checkpoint and not self.deleted

    def checkpoint(self, *, complete: bool = False) -> None:
        """Write ends and producers to the store. `complete`: no append is pending, so the store then lists everything."""
        store = self._shared.store
        self._changed_segments[self.active] = None
        for segment in self._changed_segments:
            segment.save_index()
        save_segments(store, self.partition_id, self._changed_segments)
        self._changed_segments.clear()
        self._bytes_since_checkpoint = 0
        self._batches_since_checkpoint = 0
        if self._producers is not None:
            self._producers.save(store, self.partition_id)
        if complete:
            mark_beyond_checkpoint(store, self.partition_id, False)
            self._beyond_checkpoint = False

    # -- reading

    def _visible_end(self, segment: Segment) -> int:
        """The position up to which readers may see this segment."""
        if segment.base_offset < self._visible_base:
            return segment.size_bytes
        return self._visible_position if segment.base_offset == self._visible_base else 0

    def _segment_at(self, offset: int) -> int:
        return max(0, bisect_right(self.segments, offset, key=lambda segment: segment.base_offset) - 1)

    def _use(self, segment: Segment) -> Segment:
        if segment is not self.active:
            self._shared.keep_index(segment)
        return segment

    def read(self, offset: int, max_bytes: int, *, at_least_one: bool) -> bytes | FileSlice | None:
        if self.deleted or not self.log_start_offset <= offset <= self.log_end_offset:
            return None
        if offset >= self.high_watermark:
            return b""
        for segment in self.segments[self._segment_at(offset) :]:
            visible = self._visible_end(segment)
            spot = self._use(segment).find_offset(offset, visible)
            if spot is None:
                continue
            if spot.size > max_bytes and not at_least_one:
                return b""
            return segment.slice(spot, min(visible, spot.position + max_bytes))
        # No file has these offsets, as if compaction had removed them: without a batch, readers would stay here.
        batch = empty_batch(offset, self.high_watermark)
        return batch if at_least_one or len(batch) <= max_bytes else b""

    def offset_for_timestamp(self, timestamp: int) -> tuple[int, int] | None:
        for segment, visible, newest in self._visible_segments():
            if newest[0] >= timestamp:
                found = first_not_older(segment, visible, self.log_start_offset, timestamp)
                if found is not None:
                    return found
        return None

    def offset_of_max_timestamp(self) -> tuple[int, int] | None:
        log_start = self.log_start_offset
        return first_newest(
            (
                (segment, visible, newest_batch(segment, visible, newest, log_start))
                for segment, visible, newest in self._visible_segments()
            ),
            log_start,
        )

    def _visible_segments(self) -> Iterator[tuple[Segment, int, tuple[int, int]]]:
        """Yield segments with visible records: (segment, end position, (max timestamp, base offset of its batch))."""
        for segment in self.segments:
            visible = self._visible_end(segment)
            if segment.end_offset > self.log_start_offset and visible:
                newest = (segment.max_timestamp, segment.max_timestamp_offset)
                if segment.base_offset == self._visible_base:
                    newest = self._visible_max
                yield self._use(segment), visible, newest

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

    def forget(self) -> None:
        """The topic was deleted. The caller removes its rows and files."""
        self.deleted = True
        self._shared.pending.forget(self)
        for segment in self.segments:
            self._shared.loaded_indexes.pop(segment, None)

    def forget_segment(self, segment: Segment) -> None:
        """Remove its files once the store no longer lists it."""
        self._shared.loaded_indexes.pop(segment, None)
        self._changed_segments.pop(segment, None)
        self._shared.pending.unlink_after(segment.path)
        self._shared.pending.unlink_after(segment.index_path)

    def segment_changed(self, segment: Segment) -> None:
        """Save a changed sealed segment to the store."""
        save_segments(self._shared.store, self.partition_id, [segment])

    def expire_producers(self, before_ms: int) -> None:
        if self._producers is not None:
            self._producers.expire(before_ms)

    def replace_segment(self, old: Segment, new: Segment | None) -> None:
        """Put `new` (synced, or None if nothing is left) in the place of a sealed segment."""
        at = self.segments.index(old)
        self.forget_segment(old)
        self.segments[at : at + 1] = [new] if new is not None else []
        if new is None:
            delete_segment(self._shared.store, self.partition_id, old.base_offset)
        else:
            save_segments(self._shared.store, self.partition_id, [new])
