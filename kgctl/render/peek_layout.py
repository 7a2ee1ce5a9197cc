"""The table of records around committed offsets."""

from __future__ import annotations

from datetime import UTC, datetime

from kgctl.model.peek import ABORTED, NEXT, OPEN, PeekRow
from kgctl.render.columns import Column, Layout, Shown, Tone
from kgctl.render.parts import ERROR, ID, NAME

LONGEST = 100


def _mark(row: PeekRow) -> str:
    return ">" if row.position == NEXT else ""


def _content(text: str | None, in_base64: str | None) -> str:
    if in_base64 is not None:
        return _cut(f"base64:{in_base64}")
    if text is None:
        return "null"
    return _cut(text) if text else '""'


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}... ({len(text)} characters)"


def _key(row: PeekRow) -> str | None:
    return None if row.offset is None else _content(row.key, row.key_base64)


def _value(row: PeekRow) -> str | None:
    if row.offset is not None:
        return _content(row.value, row.value_base64)
    # Without a record, why there is none: the end of the sentence that is also on stderr.
    return f"({row.note.rpartition(': ')[2]})" if row.note else None


def _headers(row: PeekRow) -> str | None:
    return ",".join(f"{one.key}={_content(one.value, one.value_base64)}" for one in row.headers) or None


def _time(row: PeekRow) -> str | None:
    text = None if row.timestamp is None else _at(row.timestamp).isoformat(timespec="milliseconds")
    return text and text.replace("+00:00", "Z")


def _brief_time(row: PeekRow) -> str | None:
    return None if row.timestamp is None else f"{_at(row.timestamp):%m-%d %H:%M:%S}Z"


def _at(ms: int) -> datetime:
    try:
        return datetime.fromtimestamp(ms / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return datetime.max.replace(tzinfo=UTC)


PEEK_LAYOUTS: dict[str, Layout] = {
    "group-peek": Layout(
        PeekRow,
        (
            NAME("TOPIC", "topic", 20),
            Column("PARTITION", "partition", 9),
            Column("NEXT", _mark, 4, tones={">": Tone.CHANGING}),
            Column("OFFSET", "offset", 8),
            Column("TIME", _time, 24, rank=1, brief=_brief_time),
            Column("TRANSACTION", "transaction", 11, Shown.IF_ANY, rank=3, tones={ABORTED: Tone.QUIET, OPEN: Tone.BAD}),
            ID("KEY", _key, 8),
            ID("VALUE", _value, 15, share=3),
            ID("HEADERS", _headers, 8, Shown.IF_ANY, rank=2),
            ERROR,
        ),
        name="offset",
    ),
}
