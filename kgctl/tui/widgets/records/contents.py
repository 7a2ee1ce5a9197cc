"""Keys, values and headers as text: what clients wrote cannot command the terminal."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from enum import StrEnum

from kgctl.model.browsed import Payload
from kgctl.render.table import printable
from kgctl.tui import cells
from kgctl.tui.widgets.frame import glyphs

NULL, EMPTY = "null", "(empty)"
BYTES_PER_LINE = 16
# What a text may have beside printable characters.
_BREAKS = frozenset("\n\r\t")
_BRIEF_BYTES = 24


class Form(StrEnum):
    """How to show contents. AUTO indents JSON, shows other text as it is, and dumps the rest."""

    AUTO = "auto"
    TEXT = "text"
    HEX = "hex"


def data_of(payload: Payload) -> bytes:
    return base64.b64decode(payload.base64)


def brief(payload: Payload | None) -> str:
    """One line; its reader cuts it."""
    if payload is None:
        return NULL
    if payload.decoded is not None:
        return printable(payload.decoded)
    data = data_of(payload)
    if not data:
        return EMPTY
    text = text_of(payload)
    if text is not None:
        return printable(" ".join(text.split()) if set(text) & _BREAKS else text)
    number = _number(data)
    return (f"{number:,} = " if number is not None else "") + f"0x{data[:_BRIEF_BYTES].hex()}"


def text_of(payload: Payload) -> str | None:
    """The text if it is UTF-8 without control characters; where the contents are cut, the last character may be, too."""
    data = data_of(payload)
    lost = 3 if len(data) < payload.size else 0
    for end in range(len(data), len(data) - lost - 1, -1):
        try:
            text = data[:end].decode()
        except UnicodeDecodeError:
            continue
        is_text = all(char.isprintable() or char in _BREAKS or ord(char) > 0x9F for char in text)
        return text if is_text else None
    return None


def lines(payload: Payload | None, form: Form) -> Iterator[str]:
    """All that is known of the contents."""
    if payload is None:
        yield NULL
        return
    data = data_of(payload)
    if payload.decoded is not None and form is Form.AUTO:
        yield from _lines(_indented(payload.decoded) or payload.decoded)
        return
    text = text_of(payload)
    if form is Form.HEX or (form is Form.AUTO and text is None):
        yield from hex_dump(data)
    elif not data:
        yield EMPTY
    else:
        shown = data.decode(errors="backslashreplace") if text is None else text
        yield from _lines((_indented(shown) if form is Form.AUTO else None) or shown)
    if len(data) < payload.size:
        yield f"{glyphs.ELLIPSIS} {cells.size(payload.size - len(data))} more"


def kind_of(payload: Payload | None) -> str:
    """What the contents are, in a word or two."""
    if payload is None:
        return NULL
    if payload.decoded is not None:
        return "decoded"
    text, data = text_of(payload), data_of(payload)
    if text is not None:
        return "JSON" if _indented(text) else "text"
    number = _number(data)
    return "binary" if number is None else f"binary, as a number {number:,}"


def hex_dump(data: bytes) -> Iterator[str]:
    """Lines of offset, bytes, and ASCII characters."""
    for start in range(0, len(data), BYTES_PER_LINE):
        row = data[start : start + BYTES_PER_LINE]
        codes = row.hex(" ").ljust(3 * BYTES_PER_LINE - 1)
        text = "".join(chr(one) if 0x20 <= one < 0x7F else "." for one in row)
        yield f"{start:06x}  {codes}  {text}"


def _indented(text: str) -> str | None:
    """A JSON object or list with a line for each entry; None for anything else."""
    if text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return None


def _lines(text: str) -> Iterator[str]:
    for line in text.replace("\r\n", "\n").split("\n"):
        yield printable(line.replace("\t", "    "))


def _number(data: bytes) -> int | None:
    """What serializers of Java write for a number."""
    return int.from_bytes(data, signed=True) if len(data) in (4, 8) else None
