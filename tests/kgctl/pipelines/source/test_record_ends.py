"""Walking batches side by side finds the same records as walking them one by one."""

from __future__ import annotations

from itertools import accumulate

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.protocol.varints import read_varint, varint
from broker.protocol.wire_types import DecodeError
from kgctl.pipelines.source import record_ends as record_ends_module
from kgctl.pipelines.source.record_ends import Span, record_ends
from kgctl.pipelines.source.varint_columns import varints

# Lengths of records whose length takes one, two and three bytes.
lengths = st.sampled_from((6, 62, 63, 64, 100, 8191, 8192, 8193))


def laid_out(batches: list[list[int]], gap: int) -> tuple[bytes, list[Span], list[int]]:
    """Records of these lengths, `gap` bytes before each batch; the true ends."""
    data, spans, ends = b"", [], []
    for batch in batches:
        data += b"\xff" * gap
        records = [varint(length) + bytes(length) for length in batch]
        ends += list(accumulate((len(one) for one in records), initial=len(data)))[1:]
        spans.append(Span(len(data), ends[-1], len(batch)))
        data += b"".join(records)
    return data, spans, ends


@given(batches=st.lists(st.lists(lengths, min_size=1, max_size=30), min_size=1, max_size=40), gap=st.integers(0, 3))
def test_every_end_is_found_whatever_the_sizes(batches: list[list[int]], gap: int) -> None:
    data, spans, ends = laid_out(batches, gap)
    for one in (data, memoryview(data)):
        assert record_ends(one, spans).tolist() == ends


def test_few_long_batches_among_many_short_ones() -> None:
    data, spans, ends = laid_out([[6] * 300, *([[100]] * 40), [64] * 200, [9000, 6] * 50], 61)
    assert record_ends(data, spans).tolist() == ends


@pytest.mark.parametrize("batches", [1, 20])
def test_records_that_do_not_fill_their_batch_are_refused(batches: int) -> None:
    data, spans, _ = laid_out([[6, 100, 6]] * batches, 0)
    for wrong in (-1, 1):
        with pytest.raises((DecodeError, IndexError)):
            record_ends(data, [*spans[:-1], spans[-1]._replace(stop=spans[-1].stop + wrong)])


numbers = st.integers(-(2**63), 2**63 - 1) | st.sampled_from((0, -1, 63, 64, -64, -65, 8191, 8192, -8192, -8193))


@given(st.lists(numbers, max_size=30))
def test_varints_equal_those_read_one_by_one(values: list[int]) -> None:
    parts = [varint(value) for value in values]
    data = b"".join(parts)
    at = np.array([0, *accumulate(map(len, parts))][: len(parts)], np.int64)
    found, after = varints(np.frombuffer(data, np.uint8), at)
    wanted = [read_varint(data, position) for position in at.tolist()]
    assert (
        list(zip(found.tolist(), after.tolist(), strict=True))
        == wanted
        == list(zip(values, accumulate(map(len, parts)), strict=True))
    )


@pytest.mark.parametrize("data", [b"\x80" * 11, b"\xff" * 16, b"\x80", b"\xff\xff"])
def test_a_varint_of_more_than_ten_bytes_or_without_an_end_is_refused(data: bytes) -> None:
    with pytest.raises(DecodeError):
        varints(np.frombuffer(data, np.uint8), np.zeros(1, np.int64))


def test_batches_of_short_records_are_walked_side_by_side_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    data, spans, ends = laid_out([[6, 62, 63, 8000] * 5] * 20, 61)
    monkeypatch.setattr(record_ends_module, "_walk", None)
    assert record_ends(data, spans).tolist() == ends
