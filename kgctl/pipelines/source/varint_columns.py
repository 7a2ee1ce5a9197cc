"""Decodes many varints at once: those of one or two bytes, which nearly all are, through a table."""

from __future__ import annotations

import numpy as np

from broker.protocol.wire_types import DecodeError


def _table() -> tuple[np.ndarray, np.ndarray]:
    """By the first two bytes, the first one lowest: the signed number, and the bytes that it takes; 0 if more than two."""
    both = np.arange(1 << 16)
    first, second = both & 255, both >> 8
    takes_one, takes_two = first < 128, (first > 127) & (second < 128)
    folded = np.where(takes_one, first, first & 127 | second << 7)
    values = np.where(takes_one | takes_two, folded >> 1 ^ -(folded & 1), 0)
    return values.astype(np.int16), (takes_one + 2 * takes_two).astype(np.uint8)


VALUES, WIDTHS = _table()


def varints(data: np.ndarray, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The signed varint at each position of the bytes, and the positions after them.

    Raises IndexError for a position outside, DecodeError for a varint of more than ten bytes or without an end.
    """
    first: np.ndarray = data.take(at)
    if not len(first) or first.max() < 128:
        return VALUES.take(first), at + 1
    both: np.ndarray = first.astype(np.uint16)
    both |= data.take(at + 1, mode="clip").astype(np.uint16) << np.uint16(8)
    values: np.ndarray = VALUES.take(both)
    widths: np.ndarray = WIDTHS.take(both)
    after: np.ndarray = at + widths
    long = np.flatnonzero(widths == 0)
    if len(long):
        values = values.astype(np.int64)
        values[long], after[long] = _long_varints(data, at[long])
    return values, after


def _long_varints(data: np.ndarray, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    folded: np.ndarray = np.zeros(len(at), np.uint64)
    after = at.copy()
    more = np.arange(len(at))
    shift = 0
    while len(more):
        if shift > 63:
            raise DecodeError("a varint is longer than ten bytes")
        byte: np.ndarray = data.take(after[more], mode="clip")
        folded[more] |= (byte & 127).astype(np.uint64) << np.uint64(shift)
        after[more] += 1
        more = more[byte > 127]
        shift += 7
    return ((folded >> np.uint64(1)) ^ -(folded & np.uint64(1))).view(np.int64), after
