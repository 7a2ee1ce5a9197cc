"""Writes files as Spark writes them to a checkpoint, and damages them."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from pathlib import Path

_PIECE = 512


def write(path: Path, content: bytes) -> None:
    """With its checksums, as Hadoop's local file system does."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    sums = (zlib.crc32(content[at : at + _PIECE]) for at in range(0, len(content), _PIECE))
    sums_of(path).write_bytes(b"crc\0" + struct.pack(">I", _PIECE) + b"".join(struct.pack(">I", one) for one in sums))


def sums_of(path: Path) -> Path:
    return path.with_name(f".{path.name}.crc")


def make_checkpoint(folder: Path, batches: int, *, committed: int | None = None) -> None:
    """A checkpoint whose last batch is committed or, if `committed` is one less, was killed."""
    write(folder / "metadata", b'{"id":"6bffa212-942f-4d5a-9f10-0046a5fdc78c"}')
    for number in range(batches):
        offsets = '{"t": {' + ", ".join(f'"{part}": {number}' for part in range(200)) + "}}"
        write(folder / "offsets" / str(number), f'v1\n{{"batchWatermarkMs":0}}\n{offsets}'.encode())
    for number in range(batches if committed is None else committed):
        write(folder / "commits" / str(number), b'v1\n{"nextBatchWatermarkMs":0}')


def _overwrite(path: Path) -> None:
    """Other bytes of the same length, as a disk returns them after a fault."""
    path.write_bytes(bytes(255 - byte for byte in path.read_bytes()))


DAMAGES: dict[str, Callable[[Path], None]] = {
    "truncated": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "empty": lambda path: path.write_bytes(b""),
    "garbage": _overwrite,
    "missing": Path.unlink,
}
