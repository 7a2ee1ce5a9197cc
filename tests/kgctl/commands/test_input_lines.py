"""How `kgctl produce` reads its input."""

from __future__ import annotations

import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.protocol.record_batch import Record
from kgctl.commands.records.input_lines import BadLine, LineSplitter, read_json, read_values
from kgctl.exit_codes import exit_code_of
from kgctl.model.topic_partition import TopicPartition
from kgctl.render.records import as_json_lines


@given(st.binary(max_size=60), st.lists(st.integers(0, 60)))
def test_input_in_pieces_of_any_size_gives_the_same_lines(text: bytes, cuts: list[int]) -> None:
    splitter = LineSplitter(100)
    places = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    lines = [line for start, end in itertools.pairwise(places) for line in splitter.feed(text[start:end])]
    lines += splitter.finish()
    whole = text.split(b"\n")
    assert [line for _, line in lines] == (whole if whole[-1] else whole[:-1])
    assert [number for number, _ in lines] == list(range(1, len(lines) + 1))


def test_only_the_newline_is_removed() -> None:
    assert LineSplitter(100).feed(b" a\r\n\n") == [(1, b" a\r"), (2, b"")]


def test_a_line_may_have_the_maximum_length_and_lines_before_a_longer_one_are_read() -> None:
    splitter = LineSplitter(10)
    assert splitter.feed(b"a\n" + b"x" * 10) == [(1, b"a")]
    assert splitter.feed(b"\nb\n" + b"x" * 11) == [(2, b"x" * 10), (3, b"b")]
    with pytest.raises(BadLine, match="line 4: longer than 10 bytes"):
        splitter.feed(b"x")


def test_a_line_is_a_value() -> None:
    record = read_values()(b"a\tb \xff", 7)
    assert (record.key, record.value, record.number) == (None, b"a\tb \xff", 7)


def test_the_first_separator_ends_the_key() -> None:
    record = read_values(b"::")(b"k::v::w", 1)
    assert (record.key, record.value) == (b"k", b"v::w")
    assert read_values(b"::")(b"::", 1).key == b""


def test_a_line_without_the_separator_is_an_error() -> None:
    with pytest.raises(BadLine, match="line 3: no key separator '::'"):
        read_values(b"::")(b"k:v", 3)


def test_the_null_marker_replaces_a_whole_value_or_key_only() -> None:
    read = read_values(b":", b"NULL")
    assert read(b"k:NULL", 1).value is None
    assert read(b"NULL:v", 1).key is None
    assert read(b"k:NULL ", 1).value == b"NULL "
    assert read_values()(b"NULL", 1).value == b"NULL"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"value": "text"}', b"text"),
        ('{"value": ""}', b""),
        ('{"value": null}', None),
        ('{"value": "\\u00fc\\n"}', "ü\n".encode()),
        ('{"value": {"a": [1, "ü"]}}', '{"a":[1,"ü"]}'.encode()),
        ('{"value": 5}', b"5"),
        ('{"value": false}', b"false"),
        ('{"value_base64": "/wA="}', b"\xff\x00"),
        ('{"value_base64": ""}', b""),
        ('{"value": null, "value_base64": "AA=="}', b"\x00"),
    ],
)
def test_a_json_value_is_text_bytes_null_or_json(text: str, value: bytes | None) -> None:
    assert read_json(text.encode(), 1).value == value


def test_a_json_line_may_set_every_field_of_a_record() -> None:
    record = read_json(
        b'{"value":"v","key":"k","headers":{"a":"1","b":null},"partition":3,"timestamp":1700000000000}', 4
    )
    assert (record.key, record.partition, record.timestamp_ms, record.number) == (b"k", 3, 1700000000000, 4)
    assert record.headers == (("a", b"1"), ("b", None))


def test_headers_as_a_list_keep_order_and_repetition() -> None:
    text = b'{"value":"v","headers":[{"key":"a","value":"1"},{"key":"a","value_base64":"/w=="},{"key":"b"}]}'
    assert read_json(text, 1).headers == (("a", b"1"), ("a", b"\xff"), ("b", None))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"x", "line 12: not JSON: Expecting value (column 1)"),
        (b"{", "not JSON"),
        (b"\xff", "not JSON"),
        (b'{"value": NaN}', "not JSON: NaN is not a JSON number"),
        (b'{"value": 1e999}', "a number in value is too large"),
        (b"[]", "not a JSON object"),
        (b"[" * 100_000, "not JSON"),
        (b'{"key": "k"}', "value or value_base64 is missing"),
        (b'{"value": "v", "vlaue": 1}', "unknown field 'vlaue'"),
        (b'{"value": "v", "value_base64": "AA=="}', "both value and value_base64 are given"),
        (b'{"value_base64": "A"}', "not base64"),
        (b'{"value_base64": 5}', "not base64"),
        (b'{"value_base64": "AA=!="}', "not base64"),
        (b'{"value": "\\ud800"}', "surrogate"),
        (b'{"value": "v", "partition": -1}', "partition must be a whole number"),
        (b'{"value": "v", "partition": 1.5}', "partition must be a whole number"),
        (b'{"value": "v", "partition": true}', "partition must be a whole number"),
        (b'{"value": "v", "timestamp": "now"}', "timestamp must be a whole number"),
        (b'{"value": "v", "timestamp": 9223372036854775808}', "timestamp must be a whole number"),
        (b'{"value": "v", "headers": "a"}', "headers must be an object or a list"),
        (b'{"value": "v", "headers": [["a", "b"]]}', "a header must be"),
        (b'{"value": "v", "headers": [{"key": 1}]}', "a header must be"),
        (b'{"value": "v", "headers": {"\\ud800": "a"}}', "surrogate"),
    ],
)
def test_a_bad_json_line_is_reported_with_its_number(text: bytes, reason: str) -> None:
    with pytest.raises(BadLine, match=r"^line 12: ") as caught:
        read_json(text, 12)
    assert reason in str(caught.value)
    assert exit_code_of(caught.value) == 1


contents = st.none() | st.binary(max_size=20) | st.text(max_size=20).map(str.encode)


@given(contents, contents, st.lists(st.tuples(st.text(max_size=5), contents), max_size=3), st.integers(0, 2**63 - 1))
def test_what_consume_prints_as_json_produce_reads_as_the_same_record(
    key: bytes | None, value: bytes | None, headers: list[tuple[str, bytes | None]], timestamp: int
) -> None:
    record = Record(5, timestamp, key, value, tuple(headers))
    line = as_json_lines(TopicPartition("t", 2), [record], False)
    assert json.loads(line)["offset"] == 5
    back = read_json(line.rstrip(b"\n"), 1)
    assert (back.key, back.value, back.headers, back.timestamp_ms) == (key, value, tuple(headers), timestamp)
    assert back.partition == 2
