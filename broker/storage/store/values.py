"""Values of SQLite rows, narrowed to the types that the schema promises."""

from __future__ import annotations

Value = int | str | bytes | float | None
Row = tuple[Value, ...]


def as_int(value: Value) -> int:
    assert isinstance(value, int)
    return value


def as_bytes(value: Value) -> bytes:
    assert isinstance(value, bytes)
    return value


def as_text(value: Value) -> str:
    assert isinstance(value, str)
    return value
