"""Text to records: lines of values, keys and values with a separator, or JSON. Bad input is told with its line number."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from kgctl.client.net.errors import KgctlError
from kgctl.client.producer.records import Headers, OutgoingRecord

LineReader: TypeAlias = Callable[[bytes, int], OutgoingRecord]


class BadLine(KgctlError):
    """A line that is no record."""

    def __init__(self, line: int, reason: str) -> None:
        self.line = line
        super().__init__(f"line {line}: {reason}")


class LineSplitter:
    """Cuts a stream of bytes into lines; only the newline is cut off. Holds little more than one line."""

    def __init__(self, max_line_bytes: int) -> None:
        self._max_line_bytes = max_line_bytes
        self._rest = b""
        self._count = 0

    def feed(self, piece: bytes) -> list[tuple[int, bytes]]:
        """The lines that the piece completes, each with its number; BadLine if the one before grew too long."""
        # Only now, so that the lines before a long one are not lost with it.
        if len(self._rest) > self._max_line_bytes:
            raise BadLine(self._count + 1, f"longer than {self._max_line_bytes} bytes")
        lines = (self._rest + piece).split(b"\n")
        self._rest = lines.pop()
        numbered = list(enumerate(lines, self._count + 1))
        self._count += len(lines)
        return numbered

    def finish(self) -> list[tuple[int, bytes]]:
        """The last line, if it has no newline."""
        rest, self._rest = self._rest, b""
        return [(self._count + 1, rest)] if rest else []


def read_values(key_separator: bytes | None = None, null_marker: bytes | None = None) -> LineReader:
    """Lines that hold a value, or a key, the separator and a value. What equals the marker is null."""

    def read(text: bytes, line: int) -> OutgoingRecord:
        key: bytes | None = None
        if key_separator is not None:
            key, found, text = text.partition(key_separator)
            if not found:
                raise BadLine(line, f"the key separator {key_separator.decode(errors='replace')!r} is not in it")
            key = None if key == null_marker else key
        return OutgoingRecord(None if text == null_marker else text, key, line=line)

    return read


def read_json(text: bytes, line: int) -> OutgoingRecord:
    """One JSON object: value (or value_base64), and if wanted key (key_base64), headers, partition, timestamp.

    A string is taken as it is, null is null, anything else is written as compact JSON. `topic`, `offset` and
    `timestamp_type` are passed over, so that what `kgctl consume --json` prints can be read.
    """
    try:
        row = json.loads(text, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        raise BadLine(line, f"not JSON: {error.msg} (column {error.colno})") from error
    except UnicodeDecodeError as error:
        raise BadLine(line, "not JSON: not UTF-8") from error
    except (ValueError, RecursionError) as error:
        raise BadLine(line, f"not JSON: {error}") from error
    if not isinstance(row, dict):
        raise BadLine(line, "not a JSON object")
    unknown = sorted(row.keys() - _FIELDS)
    if unknown:
        raise BadLine(line, f"unknown field {unknown[0]!r}; known are {', '.join(sorted(_FIELDS))}")
    if "value" not in row and "value_base64" not in row:
        raise BadLine(line, "neither value nor value_base64 is there (null makes a tombstone)")
    return OutgoingRecord(
        value=_content(row, "value", line),
        key=_content(row, "key", line),
        headers=_headers(row.get("headers"), line),
        partition=_whole_number(row, "partition", line),
        timestamp_ms=_whole_number(row, "timestamp", line),
        line=line,
    )


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no number there")


_FIELDS = frozenset(
    [
        "value",
        "value_base64",
        "key",
        "key_base64",
        "headers",
        "partition",
        "timestamp",
        "topic",
        "offset",
        "timestamp_type",
    ]
)


def _content(row: Mapping[str, Any], name: str, line: int) -> bytes | None:
    encoded = row.get(f"{name}_base64")
    if encoded is not None:
        if row.get(name) is not None:
            raise BadLine(line, f"{name} and {name}_base64 are both there")
        try:
            return base64.b64decode(encoded, validate=True)
        except (binascii.Error, TypeError, ValueError) as error:
            raise BadLine(line, f"{name}_base64 is not base64") from error
    content = row.get(name)
    if content is None:
        return None
    if not isinstance(content, str):
        try:
            content = json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        except ValueError as error:
            raise BadLine(line, f"{name} holds a number that is too large; write it as text") from error
    return _utf8(content, name, line)


def _utf8(text: str, name: str, line: int) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise BadLine(line, f"{name} holds half of a surrogate pair; write it as {name}_base64") from error


def _headers(given: object, line: int) -> Headers:
    """{"name": "value"} or [{"key": "name", "value": "value"}, ...], the second where order or repetition matter."""
    if given is None:
        return ()
    if isinstance(given, dict):
        given = [{"key": name, "value": content} for name, content in given.items()]
    if not isinstance(given, list):
        raise BadLine(line, "headers is neither an object nor a list")
    headers = []
    for row in given:
        if (
            not isinstance(row, dict)
            or not isinstance(row.get("key"), str)
            or row.keys() - {"key", "value", "value_base64"}
        ):
            raise BadLine(line, 'a header is {"key": "name", "value": "text"} or has value_base64')
        _utf8(row["key"], "key", line)
        headers.append((row["key"], _content(row, "value", line)))
    return tuple(headers)


def _whole_number(row: Mapping[str, Any], name: str, line: int) -> int | None:
    number = row.get(name)
    if number is None:
        return None
    if not isinstance(number, int) or isinstance(number, bool) or number < 0 or number >= 1 << 63:
        raise BadLine(line, f"{name} is not a whole number from 0 on")
    return number
