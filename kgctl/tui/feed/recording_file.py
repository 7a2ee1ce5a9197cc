"""The file of a recording: gzip, one JSON object per line. docs/dashboard.md describes it.

The first line is the header. Each other line is a frame, and begins with the CRC-32 of the rest of the line, so that damage is
noticed where it is. A frame is flushed before the next one is written: a kill loses at most the last one.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from broker.light_dataclasses import dataclass
from kgctl.client.net.errors import BadValue

VERSION = 1
NAME = "kgctl_recording"
# A recording of a very large cluster has lines of some megabytes.
LONGEST_LINE = 1 << 30
_CHUNK = 1 << 16
_CRC = '{"crc":"%08x",'


class RecordingWriter:
    """Writes a new file that only its owner can read. Raises OSError."""

    def __init__(self, path: Path, header: dict[str, Any], *, force: bool = False) -> None:
        if force:
            # A new file, as the old one may be readable for others, or be a link to something else.
            path.unlink(missing_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        self._file = os.fdopen(descriptor, "wb", buffering=0)
        self._zip = zlib.compressobj(6, zlib.DEFLATED, 16 + zlib.MAX_WBITS)
        self.write({NAME: VERSION, **header})

    def write(self, line: dict[str, Any]) -> None:
        rest = json.dumps(line, separators=(",", ":"))[1:] + "\n"
        content = (_CRC % zlib.crc32(rest.encode())).encode() + rest.encode()
        self._put(self._zip.compress(content) + self._zip.flush(zlib.Z_SYNC_FLUSH))

    def close(self) -> None:
        try:
            self._put(self._zip.flush(zlib.Z_FINISH))
        finally:
            self._file.close()

    def _put(self, content: bytes) -> None:
        left = memoryview(content)
        while left:
            left = left[self._file.write(left) :]


@dataclass(frozen=True, slots=True)
class Lines:
    """The header and the frames of a recording, and why there are no more if the file does not end as it should."""

    header: dict[str, Any]
    damage: str | None


def read_lines(path: Path, add: Callable[[dict[str, Any], bytes], None]) -> Lines:
    """Call `add` with each frame up to the first damage, and with its line for `unpacked`.

    Raises BadValue if the file is no recording that this kgctl can read.
    """
    header: dict[str, Any] | None = None
    damage: str | None = None
    try:
        for line, text in _parsed(path):
            if header is None:
                header = _checked(line, path)
            else:
                # Parsed, an hour of hundreds of groups takes gigabytes.
                add(line, zlib.compress(text, 1))
    except _Damage as error:
        damage = str(error)
    except OSError as error:
        raise BadValue(f"cannot read {path}: {error.strerror or error}") from None
    if header is None:
        raise BadValue(f"{path} is not a recording of kgctl ui" + (f": {damage}" if damage else ""))
    return Lines(header, damage)


def unpacked(text: bytes) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(b"{" + zlib.decompress(text))
    return found


class _Damage(Exception):
    """Where reading stops, and why."""


def _checked(line: dict[str, Any], path: Path) -> dict[str, Any]:
    version = line.get(NAME)
    if version is None:
        raise BadValue(f"{path} is not a recording of kgctl ui")
    if version != VERSION:
        raise BadValue(f"{path} has version {version!r}; this kgctl reads version {VERSION}: use a newer kgctl")
    return line


def _parsed(path: Path) -> Iterator[tuple[dict[str, Any], bytes]]:
    head = len(_CRC % 0)
    for number, line in enumerate(_lines(path), 1):
        try:
            crc, rest = int(line[8:16], 16), line[head:]
            found = json.loads(b"{" + rest) if zlib.crc32(rest) == crc else None
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise _Damage(f"line {number} is damaged")
        yield found, rest


def _lines(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        if file.read(2) != b"\x1f\x8b":
            raise _Damage("it is not a gzip file")
        file.seek(0)
        unzip, rest = zlib.decompressobj(16 + zlib.MAX_WBITS), b""
        while chunk := file.read(_CHUNK):
            try:
                rest += unzip.decompress(chunk)
            except zlib.error:
                raise _Damage("its compressed data are damaged") from None
            *lines, rest = rest.split(b"\n")
            yield from (line + b"\n" for line in lines)
            if len(rest) > LONGEST_LINE:
                raise _Damage("a line is too long")
        if not unzip.eof:
            raise _Damage("it ends early, as after a kill of the dashboard that wrote it")
