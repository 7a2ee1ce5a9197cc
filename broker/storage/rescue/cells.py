"""Rows in the pages of a damaged SQLite database, without SQLite: it refuses a file whose pages do not add up.

The file format: https://www.sqlite.org/fileformat2.html
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from broker.light_named_tuples import NamedTuple
from broker.storage.store.checked_pages import HEADER_BYTES, PAGE_BYTES, RESERVED_BYTES
from broker.storage.store.values import Value

TABLE_LEAF, INDEX_LEAF, INDEX_INTERIOR = 0x0D, 0x0A, 0x02
_USABLE = PAGE_BYTES - RESERVED_BYTES
_TABLE_LOCAL = _USABLE - 35
_INDEX_LOCAL = (_USABLE - 12) * 64 // 255 - 23
_LEAST_LOCAL = (_USABLE - 12) * 32 // 255 - 23
_INTEGER_BYTES = {0: 0, 8: 0, 9: 0, 1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}
MAX_PAYLOAD_BYTES = 1 << 24
# Types of long keys and values take several bytes each.
MOST_TYPE_BYTES = 6

ReadPage = Callable[[int], bytes | None]


class Cell(NamedTuple):
    """A row. Tables WITHOUT ROWID have no rowid."""

    rowid: int | None
    values: tuple[Value, ...]


class Malformed(Exception):
    """The bytes are no row, or part of it lies on a page that cannot be read."""


def cells(number: int, content: bytes, read_page: ReadPage) -> Iterator[Cell | None]:
    """Yield the rows of a page; None for one that cannot be read."""
    start = HEADER_BYTES if number == 1 else 0
    kind = content[start]
    if kind not in (TABLE_LEAF, INDEX_LEAF, INDEX_INTERIOR):
        return
    pointers = start + (12 if kind == INDEX_INTERIOR else 8)
    count = int.from_bytes(content[start + 3 : start + 5], "big")
    for index in range(min(count, (_USABLE - pointers) // 2)):
        at = int.from_bytes(content[pointers + 2 * index : pointers + 2 * index + 2], "big")
        try:
            yield _cell(content, at + 4 if kind == INDEX_INTERIOR else at, kind == TABLE_LEAF, read_page)
        except Malformed:
            yield None


def possible_rows(content: bytes, columns: int, read_page: ReadPage) -> Iterator[tuple[Value, ...]]:
    """Yield everything in a damaged page that could be a row of a rowid table with this number of columns.

    A record begins with the size of its header and then has a type per column, of which the first is NULL.
    """
    for found in re.finditer(b"(?=[%c-%c]\0)" % (columns + 1, columns + 1 + MOST_TYPE_BYTES), content[:_USABLE]):
        at = found.start()
        try:
            size = _record_bytes(content, at)
            values = _record(_payload(content, at, size, True, read_page))
        except Malformed:
            continue
        if len(values) == columns:
            yield values


def _record_bytes(content: bytes, start: int) -> int:
    """The size of the record that begins here, as its types say."""
    header_bytes, at = _varint(content, start)
    size, end = header_bytes, start + header_bytes
    while at < end:
        kind, at = _varint(content, at)
        size += _size_of(kind)
    return size


def _cell(content: bytes, at: int, is_table: bool, read_page: ReadPage) -> Cell:
    payload_bytes, at = _varint(content, at)
    rowid = None
    if is_table:
        rowid, at = _varint(content, at)
    return Cell(rowid, _record(_payload(content, at, payload_bytes, is_table, read_page)))


def _payload(content: bytes, at: int, size: int, is_table: bool, read_page: ReadPage) -> bytes:
    """The whole payload of a cell, with its overflow pages."""
    if size > MAX_PAYLOAD_BYTES:
        raise Malformed
    most = _TABLE_LOCAL if is_table else _INDEX_LOCAL
    local = size
    if size > most:
        local = _LEAST_LOCAL + (size - _LEAST_LOCAL) % (_USABLE - 4)
        local = local if local <= most else _LEAST_LOCAL
    if at + local > _USABLE:
        raise Malformed
    payload = content[at : at + local]
    if local == size:
        return payload
    pieces, missing = [payload], size - local
    following = int.from_bytes(content[at + local : at + local + 4], "big")
    while missing:
        page = read_page(following)
        if page is None:
            raise Malformed
        piece = page[4 : 4 + min(missing, _USABLE - 4)]
        pieces.append(piece)
        missing -= len(piece)
        following = int.from_bytes(page[:4], "big")
    return b"".join(pieces)


def _record(payload: bytes) -> tuple[Value, ...]:
    header_bytes, at = _varint(payload, 0)
    if header_bytes > len(payload):
        raise Malformed
    body = header_bytes
    values: list[Value] = []
    while at < header_bytes:
        kind, at = _varint(payload, at)
        value, body = _value(payload, body, kind)
        values.append(value)
    if at != header_bytes or body != len(payload):
        raise Malformed
    return tuple(values)


def _value(payload: bytes, at: int, kind: int) -> tuple[Value, int]:
    if kind == 0:
        return None, at
    if kind in (8, 9):
        return kind - 8, at
    size = _size_of(kind)
    content = payload[at : at + size]
    if len(content) < size:
        raise Malformed
    if kind < 12:
        return int.from_bytes(content, "big", signed=True), at + size
    if kind % 2 == 0:
        return content, at + size
    try:
        return content.decode(), at + size
    except UnicodeDecodeError:
        raise Malformed from None


def _size_of(kind: int) -> int:
    """The bytes of a value of this type. The store has no floats, and other types are reserved."""
    if kind >= 12:
        return (kind - 12) // 2
    if kind not in _INTEGER_BYTES:
        raise Malformed
    return _INTEGER_BYTES[kind]


def _varint(content: bytes, at: int) -> tuple[int, int]:
    """SQLite's variable-length integer: up to nine bytes, big-endian."""
    value = 0
    for index in range(9):
        if at >= len(content):
            raise Malformed
        byte = content[at]
        at += 1
        if index == 8:
            return value << 8 | byte, at
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            break
    return value, at
