"""Input lines of `kgctl produce` as records: values, keys and values with a separator, or JSON."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeAlias

from kgctl.client.net.errors import KgctlError
from kgctl.client.producer.records import Headers, OutgoingRecord
from kgctl.model.json_text import JsonText

LineReader: TypeAlias = Callable[[bytes, int], OutgoingRecord]


class BadLine(KgctlError):
    """A line that cannot be read as a record."""

    def __init__(self, line: int, reason: str) -> None:
        self.line = line
        super().__init__(f"line {line}: {reason}")


class LineSplitter:
    """Splits a stream of bytes at newlines. Buffers little more than one line."""

    def __init__(self, max_line_bytes: int) -> None:
        self._max_line_bytes = max_line_bytes
        self._rest = b""
        self._count = 0

    def feed(self, piece: bytes) -> list[tuple[int, bytes]]:
        """The lines that the piece completes, each with its number. Raises BadLine if the previous line grew too long."""
        # Checked late, so that the lines before the long one are written.
        if len(self._rest) > self._max_line_bytes:
            raise BadLine(self._count + 1, f"longer than {self._max_line_bytes} bytes")
        lines = (self._rest + piece).split(b"\n")
        self._rest = lines.pop()
        numbered = list(enumerate(lines, self._count + 1))
        self._count += len(lines)
        return numbered

    def finish(self) -> list[tuple[int, bytes]]:
        """The last line, if it does not end in a newline."""
        rest, self._rest = self._rest, b""
        return [(self._count + 1, rest)] if rest else []


def read_values(key_separator: bytes | None = None, null_marker: bytes | None = None) -> LineReader:
    """Reads lines that hold a value, or a key, the separator and a value. Text that equals the marker is null."""

    def read(text: bytes, line: int) -> OutgoingRecord:
        key: bytes | None = None
        if key_separator is not None:
            key, found, text = text.partition(key_separator)
            if not found:
                raise BadLine(line, f"no key separator {key_separator.decode(errors='replace')!r}")
            key = None if key == null_marker else key
        return OutgoingRecord(None if text == null_marker else text, key, number=line)

    return read


def read_json(text: bytes, line: int, *, as_json: Collection[str] = ()) -> OutgoingRecord:
    """Read one JSON object: value (or value_base64), optionally key (key_base64), headers, partition, timestamp.

    A string is used as it is, null is null, anything else is written as compact JSON. `topic`, `offset` and
    `timestamp_type` are ignored, so that the output of `kgctl consume --json` can be read. The fields `as_json` are JSON
    that is encoded later: strings, too, are written as JSON, and all but null is JsonText.
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
        raise BadLine(line, f"unknown field {unknown[0]!r}; known fields: {', '.join(sorted(_FIELDS))}")
    if "value" not in row and "value_base64" not in row:
        raise BadLine(line, "value or value_base64 is missing (null makes a tombstone)")
    return OutgoingRecord(
        value=_content(row, "value", line, "value" in as_json),
        key=_content(row, "key", line, "key" in as_json),
        headers=_headers(row.get("headers"), line),
        partition=_whole_number(row, "partition", line),
        timestamp_ms=_whole_number(row, "timestamp", line),
        number=line,
    )


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON number")


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


def _content(row: Mapping[str, Any], name: str, line: int, as_json: bool = False) -> bytes | None:
    encoded = row.get(f"{name}_base64")
    if encoded is not None:
        if row.get(name) is not None:
            raise BadLine(line, f"both {name} and {name}_base64 are given")
        try:
            return base64.b64decode(encoded, validate=True)
        except (binascii.Error, TypeError, ValueError) as error:
            raise BadLine(line, f"{name}_base64 is not base64") from error
    content = row.get(name)
    if content is None:
        return None
    if as_json or not isinstance(content, str):
        try:
            content = json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        except ValueError as error:
            raise BadLine(line, f"a number in {name} is too large; write it as text") from error
    return JsonText(_utf8(content, name, line)) if as_json else _utf8(content, name, line)


def _utf8(text: str, name: str, line: int) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise BadLine(line, f"{name} has half of a surrogate pair; use {name}_base64") from error


def _headers(given: object, line: int) -> Headers:
    """{"name": "value"}, or [{"key": "name", "value": "value"}, ...] where order or repetition matters."""
    if given is None:
        return ()
    if isinstance(given, dict):
        given = [{"key": name, "value": content} for name, content in given.items()]
    if not isinstance(given, list):
        raise BadLine(line, "headers must be an object or a list")
    headers = []
    for row in given:
        if (
            not isinstance(row, dict)
            or not isinstance(row.get("key"), str)
            or row.keys() - {"key", "value", "value_base64"}
        ):
            raise BadLine(line, 'a header must be {"key": "name", "value": "text"}, or have value_base64')
        _utf8(row["key"], "key", line)
        headers.append((row["key"], _content(row, "value", line)))
    return tuple(headers)


def _whole_number(row: Mapping[str, Any], name: str, line: int) -> int | None:
    number = row.get(name)
    if number is None:
        return None
    if not isinstance(number, int) or isinstance(number, bool) or number < 0 or number >= 1 << 63:
        raise BadLine(line, f"{name} must be a whole number, 0 or greater")
    return number
