"""Finds where each record of some batches ends.

A record starts with its length, so the records of one batch can only be found one after the other. The batches can be
walked side by side: each step of NumPy advances all of them by one record.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence

import numpy as np

from broker.light_named_tuples import NamedTuple
from broker.protocol.varints import read_varint
from broker.protocol.wire_types import DecodeError
from kgctl.pipelines.source.varint_columns import VALUES, WIDTHS

# A step of NumPy takes as long as this many steps of Python.
_MIN_SIDE_BY_SIDE = 16
_TWO_BYTES = np.dtype("<u2")
# How far the next record is, by the first two bytes of this one; 0 if its length is negative or takes more bytes.
_DISTANCES = np.where((WIDTHS > 0) & (VALUES >= 0), WIDTHS + VALUES.astype(np.int64), 0)


class Span(NamedTuple):
    """The positions of the records of one batch in a buffer, and their number."""

    start: int
    stop: int
    records: int


def record_ends(data: bytes | memoryview, spans: Sequence[Span]) -> np.ndarray:
    """The position behind each record. Raises DecodeError or IndexError if the records do not fill their spans."""
    starts, stops, counts = np.array(spans, np.int64).T
    ends: np.ndarray = np.empty(int(counts.sum()), np.int64)
    firsts = np.cumsum(counts) - counts
    positions, steps = _walk_side_by_side(np.frombuffer(data, np.uint8), starts, counts, firsts, ends)
    for number in np.flatnonzero((counts > steps) | (positions != stops)).tolist():
        first, count = int(firsts[number]), int(counts[number])
        done = min(steps, count)
        rest = _walk(data, int(positions[number]), count - done)
        if not rest or rest[-1] != stops[number]:
            # A length of three bytes or more stopped the walk side by side.
            done, rest = 0, _walk(data, int(starts[number]), count)
        if rest[-1] != stops[number]:
            raise DecodeError("the records do not fill their batch")
        ends[first + done : first + count] = rest
    return ends


def _walk_side_by_side(
    data: np.ndarray, starts: np.ndarray, counts: np.ndarray, firsts: np.ndarray, ends: np.ndarray
) -> tuple[np.ndarray, int]:
    """Fill `ends` as long as enough batches have records left. Return the position of each batch and the steps done."""
    order = np.argsort(-counts, kind="stable")
    # The step after which fewer batches than worth it are left.
    steps = int(counts[order[_MIN_SIDE_BY_SIDE - 1]]) if len(counts) >= _MIN_SIDE_BY_SIDE else 0
    if not steps:
        return starts, 0
    # For each step, how many batches take part, and where their results lie.
    rounds: np.ndarray = np.arange(steps)
    active: np.ndarray = np.asarray(np.searchsorted(-counts[order], -rounds, side="left"))
    offsets = np.cumsum(active) - active
    found: np.ndarray = np.empty(int(active.sum()), np.int64)
    # Each batch's position and the one after it: their bytes, side by side, are one number of 16 bits.
    positions = np.stack((starts[order], starts[order] + 1), axis=1)
    byte_at, distance_of = data.take, _DISTANCES.take
    at = 0
    for count in active.tolist():
        some = positions[:count]
        some += distance_of(byte_at(some).view(_TWO_BYTES))
        found[at : at + count] = some[:, 0]
        at += count
    lanes: np.ndarray = np.empty(len(counts), np.int64)
    lanes[order] = np.arange(len(counts))
    taken = np.minimum(counts, steps)
    step = np.arange(int(taken.sum())) - np.repeat(np.cumsum(taken) - taken, taken)
    ends[np.repeat(firsts, taken) + step] = found.take(offsets.take(step) + np.repeat(lanes, taken))
    return positions[lanes, 0], steps


def _walk(data: bytes | memoryview, position: int, count: int) -> array[int]:
    """The ends of the next `count` records."""
    ends = array("q")
    add = ends.append
    for _ in range(count):
        length = data[position]
        position += 1
        if length > 127:
            byte = data[position]
            position += 1
            length += (byte << 7) - 128
            if byte > 127:
                half, position = read_varint(data, position - 2)
                length = half << 1
        position += length >> 1
        add(position)
    return ends
