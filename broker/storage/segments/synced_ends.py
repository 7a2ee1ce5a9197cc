"""The file synced-ends: where the acknowledged bytes of each partition end.

Each partition has a pair of slots with a CRC, written in turn, so that a torn write leaves the older one. Every flush
writes them; they are synced about once a second, at a clean stop, and before the first commit that lists a partition.
After kill -9 they are exact, after a power cut at most a second old. An end beyond what a segment holds is evidence of
damage that a torn tail alone is not.

The first pair is the head: an epoch that grows with each sync, which the commit marker repeats. So a start notices a
file that is missing or older, and a database that is older than the file.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable, Iterator

import google_crc32c

from broker.light_named_tuples import NamedTuple
from broker.storage.files import Files, PinnedFile, guarded

NAME = "synced-ends"
SLOT_BYTES = 64
PAIR_BYTES = 2 * SLOT_BYTES
HEAD_ID = 0  # no partition has it

_crc = google_crc32c.value
_MAGIC = b"kgctlse2"
_HEAD = struct.Struct(">8sqq36xI")
_SLOT = struct.Struct(">I16sIqIqqIII")
_CRC = struct.Struct(">I")
_BLANK = bytes(SLOT_BYTES)


class SyncedEnd(NamedTuple):
    """Where the acknowledged bytes of one partition end: a segment, a position in it, the next offset."""

    topic_id: bytes
    partition: int
    base_offset: int
    position: int
    end_offset: int
    commit_seq: int = 0  # the last commit before it was written
    last_size: int = 0  # of the batch that ends at `position`; 0: unknown
    last_crc: int = 0


class Head(NamedTuple):
    epoch: int
    commit_seq: int


class SyncedEnds:
    """Two slots per partition, at a position given by the partition's number in the store."""

    def __init__(self, files: Files, directory: str) -> None:
        self.path = os.path.join(directory, NAME)
        self._files = files
        self._file = PinnedFile(files, self.path)
        self._turns = bytearray()  # by partition id: the slot to write next
        self._at_start: dict[int, SyncedEnd] = {}
        self.replaced_at_start: list[SyncedEnd] = []  # by slots that name no batch
        self._epoch = 0
        self.damaged: set[int] = set()  # partition ids with a slot that is neither valid nor blank
        self._damaged_slots: set[int] = set()  # their positions
        self.is_valid = False  # the file had a head at the start
        self.unsynced = False
        self.must_sync = False  # before the next commit

    # -- at the start

    def load(self) -> Head | None:
        """Read the file as the last run left it; None if it has no valid head. It is not created."""
        content = self.content()
        head: Head | None = None
        for turn in (0, 1):
            found = _unpack_head(content[turn * SLOT_BYTES : (turn + 1) * SLOT_BYTES])
            if found is not None and (head is None or found > head):
                head = found
                self._set_turn(HEAD_ID, 1 - turn)
        self._epoch = head.epoch if head is not None else 0
        self.is_valid = head is not None
        self._load_slots(content)
        return head

    def skip_to_epoch(self, epoch: int) -> None:
        """Another file reached this epoch."""
        self._epoch = max(self._epoch, epoch)

    def _load_slots(self, content: bytes) -> None:
        for partition_id in range(1, (len(content) + PAIR_BYTES - 1) // PAIR_BYTES):
            at = partition_id * PAIR_BYTES
            newest: SyncedEnd | None = None
            slots: list[SyncedEnd] = []
            for turn in (0, 1):
                slot = content[at + turn * SLOT_BYTES : at + (turn + 1) * SLOT_BYTES]
                found = _unpack(partition_id, slot)
                if found is None and slot.strip(b"\0"):
                    self.damaged.add(partition_id)
                    self._damaged_slots.add(at + turn * SLOT_BYTES)
                if found is None:
                    continue
                slots.append(found)
                if newest is None or _age(found) > _age(newest):
                    newest = found
                    self._set_turn(partition_id, 1 - turn)
            if newest is not None:
                self._at_start[partition_id] = newest
                if not newest.last_size:
                    self.replaced_at_start += slots

    def content(self) -> bytes:
        if not os.path.exists(self.path):
            return b""
        file = self._files.get(self.path)
        content = file.read(file.size(), 0)
        self._files.forget(self.path)
        return content

    def slots(self) -> Iterator[SyncedEnd]:
        """All valid slots, older ones included."""
        content = self.content()
        for at in range(PAIR_BYTES, len(content), SLOT_BYTES):
            found = _unpack(at // PAIR_BYTES, content[at : at + SLOT_BYTES])
            if found is not None:
                yield found

    @property
    def at_start(self) -> dict[int, SyncedEnd]:
        """The ends that the last run left, by partition id."""
        return self._at_start

    def forget_start(self) -> None:
        """The start is over: free what only it needs."""
        self._at_start = {}
        self.replaced_at_start = []

    def replace(self, ends: Iterable[tuple[int, SyncedEnd]]) -> None:
        """Write a new file with these ends in the place of one of an older format, or of one that is damaged.

        It is synced with durability "process" too: the older format may have promised to survive a power cut.
        """
        self._damaged_slots.clear()
        draft, directory = self.path + ".draft", os.path.dirname(self.path)
        content = bytearray(PAIR_BYTES)
        self._epoch += 1
        content[:SLOT_BYTES] = _pack_head(self._epoch, 0)
        self._turns = bytearray((1,))
        for partition_id, end in ends:
            at = partition_id * PAIR_BYTES
            content.extend(bytes(max(0, at + PAIR_BYTES - len(content))))
            content[at : at + SLOT_BYTES] = _pack(partition_id, end)
            self._set_turn(partition_id, 1)
            self._at_start[partition_id] = end
        self._files.unlink(draft)
        file = self._files.get(draft, create=True)
        file.write(content, 0)
        file.sync()
        self._files.forget(draft)
        guarded("rename", self.path, self._files.ops.rename, draft, self.path)
        guarded("sync directory", directory, self._files.ops.sync_directory, directory)

    # -- at each flush

    def announce(self, partition_id: int, topic_id: bytes, partition: int, commit_seq: int) -> None:
        """A partition without records begins; its slot must be on disk before the commit that lists the partition."""
        end = SyncedEnd(topic_id, partition, 0, 0, 0, commit_seq)
        self._file.get().write(_pack(partition_id, end) + _BLANK, partition_id * PAIR_BYTES)
        self._set_turn(partition_id, 1)
        self.unsynced = self.must_sync = True

    def write(self, partition_id: int, end: SyncedEnd) -> None:
        turn = self._turns[partition_id] if partition_id < len(self._turns) else 0
        at = partition_id * PAIR_BYTES + turn * SLOT_BYTES
        self._file.get().write(_pack(partition_id, end), at)
        self._damaged_slots.discard(at)
        self._set_turn(partition_id, 1 - turn)
        self.unsynced = True

    def clear_damaged(self) -> None:
        """Clear the slots that were damaged at the start and are not written since: the damage is known and accepted."""
        for at in self._damaged_slots:
            self._file.get().write(_BLANK, at)
            self.unsynced = True
        self._damaged_slots.clear()

    def clear(self, partition_id: int) -> None:
        """The store no longer lists the partition."""
        self._file.get().write(bytes(PAIR_BYTES), partition_id * PAIR_BYTES)
        self.unsynced = True

    def sync_slots(self) -> None:
        """Sync the file before a commit that needs its slots; the epoch stays."""
        self._files.sync(self._file.get())
        self.must_sync = False

    def sync(self, commit_seq: int) -> int:
        """Begin a new epoch and sync the file; return the epoch, which the commit marker then repeats."""
        turn = self._turns[HEAD_ID] if self._turns else 0
        file = self._file.get()
        file.write(_pack_head(self._epoch + 1, commit_seq), turn * SLOT_BYTES)
        self._files.sync(file)
        self._set_turn(HEAD_ID, 1 - turn)
        self._epoch += 1
        self.unsynced = self.must_sync = False
        return self._epoch

    def _set_turn(self, partition_id: int, turn: int) -> None:
        if partition_id >= len(self._turns):
            self._turns.extend(bytes(partition_id + 1024 - len(self._turns)))
        self._turns[partition_id] = turn


def _pack(partition_id: int, end: SyncedEnd) -> bytes:
    body = _SLOT.pack(
        partition_id,
        end.topic_id,
        end.partition,
        end.base_offset,
        end.position,
        end.end_offset,
        end.commit_seq,
        end.last_size,
        end.last_crc,
        0,
    )[:-4]
    return body + _CRC.pack(_crc(body))


def _unpack(partition_id: int, slot: bytes) -> SyncedEnd | None:
    if len(slot) != SLOT_BYTES:
        return None
    number, topic_id, partition, base_offset, position, end_offset, seq, size, last_crc, crc = _SLOT.unpack(slot)
    if number != partition_id or crc != _crc(slot[:-4]):
        return None
    return SyncedEnd(topic_id, partition, base_offset, position, end_offset, seq, size, last_crc)


def _age(end: SyncedEnd) -> tuple[int, int, bool]:
    return end.commit_seq, end.end_offset, end.last_size == 0


def _pack_head(epoch: int, commit_seq: int) -> bytes:
    body = _HEAD.pack(_MAGIC, epoch, commit_seq, 0)[:-4]
    return body + _CRC.pack(_crc(body))


def _unpack_head(slot: bytes) -> Head | None:
    if len(slot) != SLOT_BYTES:
        return None
    magic, epoch, commit_seq, crc = _HEAD.unpack(slot)
    return Head(epoch, commit_seq) if magic == _MAGIC and crc == _crc(slot[:-4]) else None
