"""Logs for tests: small batches, reading a whole partition back, file operations that fail on request."""

from __future__ import annotations

import errno
import os
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import apsw
import google_crc32c

from broker.protocol.compression import Codec, compress
from broker.protocol.errors import ErrorCode
from broker.protocol.record_batch import Record, batches, build_batch, check_crc, decode_records
from broker.protocol.varints import varint
from broker.storage import FileOps, FileSlice, Log, LogSettings, PartitionLog

NOW = 1_700_000_000_000


def open_log(path: Path, *, accept_loss: bool = False, file_ops: FileOps | None = None, **settings: Any) -> Log:
    return Log.open(path, LogSettings(**settings), wall_ms=NOW, accept_loss=accept_loss, file_ops=file_ops)


def topic_log(log: Log, name: str = "t", index: int = 0, **configs: str) -> PartitionLog:
    """A partition of a topic, which is created if it does not exist."""
    if name not in log.topics:
        log.create_topic(name, max(1, index + 1), {key.replace("_", "."): value for key, value in configs.items()})
    partition = log.partition(name, index)
    assert partition is not None
    return partition


def batch(*values: bytes | tuple[bytes | None, bytes | None], ts: int | Sequence[int] = NOW, **header: Any) -> bytes:
    """A batch as a producer sends it, with base offset 0. A value may be a (key, value) pair."""
    stamps = [ts] * len(values) if isinstance(ts, int) else ts
    records = [
        Record(i, stamps[i], *(value if isinstance(value, tuple) else (None, value))) for i, value in enumerate(values)
    ]
    return build_batch(records, **header)


def odd_batch(*records: tuple[int, int, bytes], max_timestamp: int = NOW, codec: Codec = Codec.NONE) -> bytes:
    """A batch with a valid checksum of any records (timestamp delta to NOW, offset delta, key)."""
    bodies = [
        b"\0" + varint(stamp) + varint(offset) + varint(len(key)) + key + b"\x02v\0" for stamp, offset, key in records
    ]
    return framed(b"".join(varint(len(body)) + body for body in bodies), len(records), max_timestamp, codec)


def framed(plain: bytes, count: int, max_timestamp: int = NOW, codec: Codec = Codec.NONE) -> bytes:
    """A batch with a valid header around any records."""
    checked = struct.pack(">hiqqqhii", codec, count - 1, NOW, max_timestamp, -1, -1, -1, count) + compress(codec, plain)
    return struct.pack(">qiibI", 0, 9 + len(checked), -1, 2, google_crc32c.value(checked)) + checked


def append(partition: PartitionLog, *values: bytes | tuple[bytes | None, bytes | None], **header: Any) -> int:
    """Append one batch that must be accepted; return its base offset."""
    appended = partition.append(batch(*values, **header), wall_ms=NOW)
    assert not isinstance(appended, ErrorCode), appended
    return appended.base_offset


def raw(found: bytes | FileSlice | None) -> bytes:
    assert found is not None
    return found if isinstance(found, bytes) else found.tobytes()


def stored(partition: PartitionLog, start: int | None = None, max_bytes: int = 4096) -> Iterator[Record]:
    """Yield every visible record, read in small steps; check CRCs and ascending offsets."""
    offset = partition.log_start_offset if start is None else start
    while True:
        content = raw(partition.read(offset, max_bytes, at_least_one=True))
        if not content:
            return
        for position, header in batches(content):
            assert check_crc(content, position, header)
            for record in decode_records(content, position):
                if record.offset >= offset:
                    yield record
            assert header.next_offset > offset
            offset = header.next_offset


def values(partition: PartitionLog) -> list[tuple[int, bytes | None]]:
    return [(record.offset, record.value) for record in stored(partition)]


def sweep(log: Log, wall_ms: int = NOW) -> None:
    """Do all housekeeping that is due, as the server does: a flush before and after each slice."""
    log.flush()
    while log.sweep(wall_ms) is not None:
        log.flush()


def segment_files(path: Path) -> list[Path]:
    return sorted((path / "segments").rglob("*.log"))


def used(file: Path) -> int:
    """Size of the whole batches, without preallocated zeros or a trailer behind them."""
    content = file.read_bytes()
    end = 0
    while end + 61 <= len(content) and content[end + 16] == 2:
        end += 12 + int.from_bytes(content[end + 8 : end + 12], "big")
    return end


class Fault(OSError):
    """The error of a faulty disk."""


class FaultyOps(FileOps):
    """Fails the Nth operation that changes the disk, and all later ones, SQLite's included. 0: counts only.

    Syncs do nothing: a killed broker leaves the page cache.
    """

    syncs_at_once = 1

    def __init__(self, fail_at: int = 0, number: int = errno.EIO) -> None:
        self.fail_at = fail_at
        self.number = number
        self.count = 0
        self.log: list[str] = []
        self._vfs = _FaultyVFS(self)
        self.sqlite_vfs = self._vfs.vfs_name

    def step(self, name: str) -> None:
        self.count += 1
        self.log.append(name)
        if self.fail_at and self.count >= self.fail_at:
            raise Fault(self.number, os.strerror(self.number))

    def pwrite(self, fd: int, content: Any, position: int) -> int:
        self.step("pwrite")
        return super().pwrite(fd, content, position)

    def sync(self, fd: int) -> None:
        self.step("sync")

    def sync_directory(self, path: str) -> None:
        self.step("sync_directory")

    def truncate(self, fd: int, size: int) -> None:
        self.step("truncate")
        super().truncate(fd, size)

    def mkdir(self, path: str) -> None:
        self.step("mkdir")
        super().mkdir(path)

    def unlink(self, path: str) -> None:
        self.step("unlink")
        super().unlink(path)


class _FaultyFile(apsw.VFSFile):
    def __init__(self, ops: FaultyOps, name: Any, flags: list[int]) -> None:
        super().__init__("", name, flags)
        self._ops = ops

    def xWrite(self, content: bytes, offset: int) -> None:
        self._step("sqlite write", apsw.IOError)
        super().xWrite(content, offset)

    def xSync(self, flags: int) -> None:
        self._step("sqlite sync", apsw.IOError)

    def _step(self, name: str, error: type[Exception]) -> None:
        try:
            self._ops.step(name)
        except Fault as fault:
            raise error(str(fault)) from None


class _FaultyVFS(apsw.VFS):
    def __init__(self, ops: FaultyOps) -> None:
        self._ops = ops
        self.vfs_name = f"faulty-{id(self):x}"
        super().__init__(self.vfs_name, "")

    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:
        return _FaultyFile(self._ops, name, flags)
