"""Declared fields on the wire: limits, nulls, tags, records."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.protocol.codec import DecodeError, EncodeError, decode, encode, encode_parts
from broker.protocol.messages.create_topics import CreateTopicsResponse
from broker.protocol.messages.fetch import FetchResponse
from broker.protocol.messages.find_coordinator import FindCoordinatorRequest
from broker.protocol.messages.heartbeat import HeartbeatRequest
from broker.protocol.messages.join_group import JoinGroupResponse
from broker.protocol.messages.metadata import MetadataRequest
from broker.protocol.messages.produce import ProduceRequest
from broker.protocol.varints import read_uvarint, read_varint, uvarint, varint
from broker.protocol.wire_types import ARRAY, FLOAT64, INT16, INT32, STRING, UINT16, UINT32, UUID, Message, Struct, wire


class Everything(Message):
    """Kinds of fields that current messages use rarely or never."""

    VERSIONS, FLEXIBLE_SINCE = range(3), 1

    class Item(Struct):
        name: str = wire(STRING)

    small: int = wire(UINT16)
    large: int = wire(UINT32)
    ratio: float = wire(FLOAT64)
    old_style: str | None = wire(STRING, default=None, null_since=0, flexible=False)
    item: Item | None = wire(Item, default=None, null_since=0)
    items: list[Item] = wire(ARRAY(Item), default=[])
    extra: int = wire(INT32, default=7, since=2, tag=5)
    late: list[str] = wire(ARRAY(STRING), default=[], since=2, tag=200)


class Ids(Message):
    """An array whose elements are sliced without decoding."""

    ids: list[bytes] = wire(ARRAY(UUID))


class Empty(Message):
    """A message with only tagged fields."""

    VERSIONS, FLEXIBLE_SINCE = range(1), 0


@given(
    st.builds(
        Everything,
        small=st.integers(0, 2**16 - 1),
        large=st.integers(0, 2**32 - 1),
        ratio=st.floats(allow_nan=False),
        old_style=st.none() | st.text(max_size=300),
        item=st.none() | st.builds(Everything.Item, name=st.text()),
        extra=st.integers(-5, 9),
        late=st.lists(st.text(max_size=200), max_size=3),
    )
)
def test_every_kind_of_field_survives_a_round_trip(message: Everything) -> None:
    assert decode(Everything, encode(message, 2), 2) == message


def test_a_field_may_keep_its_fixed_width_length_in_flexible_versions() -> None:
    message = Everything(small=1, large=2, ratio=0.5, old_style="ab")
    assert encode(message, 1).hex() == "0001000000023fe000000000000000026162ff0100"


def test_a_tagged_field_is_omitted_at_its_default_and_in_earlier_versions() -> None:
    message = Everything(small=1, large=2, ratio=0.5)
    assert encode(message, 2) == encode(message, 1)
    message.extra = 8
    assert encode(message, 1)[-1:] == b"\0"
    assert encode(message, 2)[-7:].hex() == "01050400000008"
    assert decode(Everything, encode(message, 1), 1).extra == 7


def test_unknown_tagged_fields_are_skipped() -> None:
    known = encode(HeartbeatRequest(group_id="g", generation_id=1, member_id="m"), 4)
    unknown = known[:-1] + bytes([2, 9, 3]) + b"abc" + uvarint(1000) + bytes([1]) + b"x"
    assert decode(HeartbeatRequest, unknown, 4) == decode(HeartbeatRequest, known, 4)
    for length in range(len(known), len(unknown)):
        with pytest.raises(DecodeError):
            decode(HeartbeatRequest, unknown[:length], 4)


def test_a_tagged_field_must_have_its_declared_length() -> None:
    message = Everything(small=1, large=2, ratio=0.5, extra=8)
    encoded = bytearray(encode(message, 2))
    assert encoded[-5] == 4
    for length in (3, 5):
        encoded[-5] = length
        with pytest.raises(DecodeError):
            decode(Everything, bytes(encoded) + b"\0", 2)


def test_an_unknown_version_is_a_value_error() -> None:
    message = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
    for version in (-1, 5):
        with pytest.raises(ValueError, match="no version"):
            encode(message, version)
        with pytest.raises(ValueError, match="no version"):
            decode(HeartbeatRequest, b"", version)


@pytest.mark.parametrize("count", [4, 2**31 - 1, -2, -(2**31)])
def test_a_count_beyond_the_bytes_is_refused_before_allocation(count: int) -> None:
    topics = count.to_bytes(4, "big", signed=True) + bytes(6)
    tracemalloc.start()
    try:
        with pytest.raises(DecodeError):
            decode(MetadataRequest, topics, 1)
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("count", [3, 2**24])
def test_a_count_of_ids_beyond_the_bytes_is_refused(count: int) -> None:
    assert len(decode(Ids, (2).to_bytes(4, "big") + bytes(47), 0).ids) == 2
    with pytest.raises(DecodeError):
        decode(Ids, count.to_bytes(4, "big") + bytes(47), 0)


def test_a_count_that_uses_all_bytes_is_accepted() -> None:
    assert len(decode(MetadataRequest, (3).to_bytes(4, "big") + bytes(6), 1).topics or ()) == 3


def test_null_is_refused_in_versions_without_it() -> None:
    with pytest.raises(DecodeError):
        decode(MetadataRequest, b"\xff\xff\xff\xff", 0)
    assert decode(MetadataRequest, b"\xff\xff\xff\xff", 1).topics is None
    answer = JoinGroupResponse(protocol_name=None, leader="", member_id="m", members=[])
    assert decode(JoinGroupResponse, encode(answer, 7), 7).protocol_name is None
    with pytest.raises(EncodeError):
        encode(answer, 6)


def test_text_that_is_not_utf8_is_refused() -> None:
    with pytest.raises(DecodeError):
        decode(HeartbeatRequest, b"\0\x01\xff\0\0\0\x01\0\x01m", 0)


@pytest.mark.parametrize(
    "message",
    [
        HeartbeatRequest(group_id="g", generation_id=2**31, member_id="m"),
        HeartbeatRequest(group_id="g" * 32768, generation_id=1, member_id="m"),
        HeartbeatRequest(group_id=None, generation_id=1, member_id="m"),  # type: ignore[arg-type]
    ],
)
def test_a_value_that_does_not_fit_is_an_encode_error(message: HeartbeatRequest) -> None:
    with pytest.raises(EncodeError):
        encode(message, 0)


def test_the_longest_string_fits() -> None:
    message = HeartbeatRequest(group_id="g" * 32767, generation_id=1, member_id="m")
    assert decode(HeartbeatRequest, encode(message, 0), 0) == message


def test_compact_strings_have_the_same_maximum_length() -> None:
    longest = HeartbeatRequest(group_id="é" + "g" * 32765, generation_id=1, member_id="m")
    assert decode(HeartbeatRequest, encode(longest, 4), 4) == longest
    encoded = encode(longest, 4)
    too_long = encoded.replace(uvarint(32768), uvarint(32769), 1).replace(b"gg", b"ggg", 1)
    with pytest.raises(DecodeError, match="group_id is too long"):
        decode(HeartbeatRequest, too_long, 4)


@pytest.mark.parametrize("version", [0, 4])
@pytest.mark.parametrize("field", ["group_id", "member_id"])
def test_a_string_that_is_too_long_is_named_by_its_field_and_its_start(version: int, field: str) -> None:
    values: dict[str, Any] = {"group_id": "g", "generation_id": 1, "member_id": "m", field: "x" * 70_000}
    with pytest.raises(EncodeError, match=rf"^{field} 'x{{20}}\.\.\.' has 70000 bytes; a string has at most 32767$"):
        encode(HeartbeatRequest(**values), version)


def test_a_string_of_an_array_is_named_by_the_array() -> None:
    with pytest.raises(EncodeError, match=r"^coordinator_keys 'x"):
        encode(FindCoordinatorRequest(coordinator_keys=["g", "x" * 32768]), 6)


def test_an_error_message_is_cut_between_characters() -> None:
    topic = CreateTopicsResponse.Topic(name="t", error_code=1, error_message="e" + "é" * 20_000)
    for version in (2, 7):
        decoded = decode(CreateTopicsResponse, encode(CreateTopicsResponse(topics=[topic]), version), version)
        assert decoded.topics[0].error_message == "e" + "é" * 16383


def test_a_required_field_cannot_be_omitted() -> None:
    with pytest.raises(TypeError):
        HeartbeatRequest(group_id="g", member_id="m")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="default"):
        wire(INT16, since=1)


def test_default_lists_are_not_shared() -> None:
    first, second = Everything(small=1, large=1, ratio=0.0), Everything(small=1, large=1, ratio=0.0)
    first.items.append(Everything.Item(name="x"))
    assert second.items == []


def test_a_message_without_fields_is_an_empty_tag_buffer() -> None:
    assert encode(Empty(), 0) == b"\0"
    assert decode(Empty, b"\0", 0) == Empty()


class Slice:
    """A part of a file, of which the codec knows only the length."""

    def __init__(self, length: int) -> None:
        self.length = length

    def __len__(self) -> int:
        return self.length


@pytest.mark.parametrize("version", [11, 16])
def test_records_are_passed_through(version: int) -> None:
    slices = [Slice(1000), Slice(2**20)]
    partitions = [
        FetchResponse.Partition(partition_index=index, high_watermark=5, records=records)
        for index, records in enumerate([slices[0], b"", None, slices[1]])
    ]
    response = FetchResponse(responses=[FetchResponse.Topic(topic="t", partitions=partitions)])
    parts = encode_parts(response, version)
    assert [part for part in parts if not isinstance(part, bytes)] == slices
    whole = b"".join(part if isinstance(part, bytes) else bytes(len(part)) for part in parts)
    found = decode(FetchResponse, whole, version).responses[0].partitions
    assert [None if partition.records is None else len(partition.records) for partition in found] == [
        1000,
        0,
        None,
        2**20,
    ]


def test_decoded_records_are_a_view_of_the_frame() -> None:
    partition = ProduceRequest.Partition(index=0, records=b"batch")
    request = ProduceRequest(
        acks=-1, timeout_ms=1, topic_data=[ProduceRequest.Topic(name="t", partition_data=[partition])]
    )
    frame = encode(request, 9)
    records = decode(ProduceRequest, frame, 9).topic_data[0].partition_data[0].records
    assert isinstance(records, memoryview)
    assert records.obj is frame
    assert bytes(records) == b"batch"


@given(st.integers(0, 2**32 - 1))
def test_an_unsigned_varint_survives_a_round_trip(value: int) -> None:
    assert read_uvarint(b"." + uvarint(value), 1) == (value, 1 + len(uvarint(value)))


@given(st.integers(-(2**63), 2**63 - 1))
def test_a_signed_varint_survives_a_round_trip(value: int) -> None:
    assert read_varint(b"." + varint(value), 1) == (value, 1 + len(varint(value)))


@pytest.mark.parametrize("encoded", ["ffffffff10", "8080808080", "808080808001"])
def test_an_overlong_unsigned_varint_is_refused(encoded: str) -> None:
    with pytest.raises(DecodeError):
        read_uvarint(bytes.fromhex(encoded), 0)
    assert read_uvarint(bytes.fromhex("ffffffff0f"), 0) == (2**32 - 1, 5)


@pytest.mark.parametrize("encoded", ["ffffffffffffffffff02", "8080808080808080808000"])
def test_an_overlong_signed_varint_is_refused(encoded: str) -> None:
    with pytest.raises(DecodeError):
        read_varint(bytes.fromhex(encoded), 0)
    assert read_varint(bytes.fromhex("ffffffffffffffffff01"), 0) == (-(2**63), 10)
