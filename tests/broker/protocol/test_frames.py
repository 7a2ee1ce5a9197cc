"""Splitting a stream into frames, and request and response headers."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.protocol.consumer import HeartbeatRequest as TheirHeartbeat
from kafka.protocol.consumer import HeartbeatResponse as TheirHeartbeatResponse
from kafka.protocol.metadata import ApiVersionsRequest as TheirApiVersions
from kafka.protocol.metadata import ApiVersionsResponse as TheirApiVersionsResponse

from broker.protocol.codec import DecodeError, decode, encode
from broker.protocol.errors import ErrorCode
from broker.protocol.frames import (
    FrameBuffer,
    RequestHeader,
    decode_request_header,
    decode_response,
    request_frame,
    response_frame,
    response_parts,
)
from broker.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from broker.protocol.messages.fetch import FetchResponse
from broker.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse

LIMIT = 5000


def prefixed(frame: bytes) -> bytes:
    return len(frame).to_bytes(4, "big") + frame


@given(
    st.lists(st.binary(max_size=40) | st.integers(100, LIMIT).map(bytes), max_size=12),
    st.lists(st.integers(1, 700), min_size=1, max_size=8),
)
def test_frames_are_complete_however_the_stream_is_split(frames: list[bytes], sizes: list[int]) -> None:
    stream = b"".join(prefixed(frame) for frame in frames)
    buffer, position, turn = FrameBuffer(LIMIT), 0, 0
    found: list[bytes] = []
    while position < len(stream):
        size = sizes[turn % len(sizes)]
        found += buffer.feed(stream[position : position + size])
        position, turn = position + size, turn + 1
    assert found == frames
    assert buffer.pending_bytes == 0


def test_several_frames_in_one_chunk_are_returned_and_the_rest_is_buffered() -> None:
    buffer = FrameBuffer(LIMIT)
    assert list(buffer.feed(prefixed(b"one") + prefixed(b"") + prefixed(b"three") + b"\0\0")) == [b"one", b"", b"three"]
    assert buffer.pending_bytes == 2
    assert list(buffer.feed(b"\0\4fou")) == []
    assert list(buffer.feed(memoryview(b"r"))) == [b"four"]


def test_a_frame_at_the_limit_is_accepted_and_one_byte_more_is_refused() -> None:
    assert list(FrameBuffer(LIMIT).feed(prefixed(bytes(LIMIT)))) == [bytes(LIMIT)]
    with pytest.raises(DecodeError):
        list(FrameBuffer(LIMIT).feed((LIMIT + 1).to_bytes(4, "big")))


@pytest.mark.parametrize("prefix", [b"\xff\xff\xff\xff", b"\x80\0\0\0", b"\x7f\xff\xff\xff"])
def test_a_wrong_length_is_refused_at_its_fourth_byte(prefix: bytes) -> None:
    buffer = FrameBuffer(LIMIT)
    assert list(buffer.feed(prefixed(b"fine") + prefix[:3])) == [b"fine"]
    with pytest.raises(DecodeError):
        list(buffer.feed(prefix[3:]))


def test_frames_before_a_wrong_length_are_returned() -> None:
    frames = FrameBuffer(LIMIT).feed(prefixed(b"fine") + b"\xff\xff\xff\xff")
    assert next(frames) == b"fine"
    with pytest.raises(DecodeError):
        next(frames)


def test_a_declared_length_allocates_nothing() -> None:
    buffer = FrameBuffer(2**31 - 1)
    tracemalloc.start()
    try:
        assert list(buffer.feed(b"\x7f\xff\xff\xff" + b"x" * 100)) == []
        assert tracemalloc.get_traced_memory()[1] < 100_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("version", HeartbeatRequest.VERSIONS)
@pytest.mark.parametrize("client_id", ["client-1", "", "é", None])
def test_a_request_frame_equals_that_of_kafka_python(version: int, client_id: str | None) -> None:
    theirs = TheirHeartbeat[version](group_id="g", generation_id=3, member_id="m")
    theirs.with_header(correlation_id=77, client_id=client_id)
    ours = request_frame(HeartbeatRequest(group_id="g", generation_id=3, member_id="m"), version, 77, client_id)
    assert ours == bytes(theirs.encode(header=True, framed=True))
    header = decode_request_header(ours[4:])
    assert header[:4] == (12, version, 77, client_id)
    assert decode(HeartbeatRequest, ours[4:], version, header.body_offset).group_id == "g"


@pytest.mark.parametrize("version", ApiVersionsRequest.VERSIONS)
def test_api_versions_has_a_flexible_request_header_and_a_plain_response_header(version: int) -> None:
    request = TheirApiVersions[version](client_software_name="x", client_software_version="1")
    request.with_header(correlation_id=1, client_id="c")
    ours = ApiVersionsRequest(client_software_name="x", client_software_version="1")
    assert request_frame(ours, version, 1, "c") == bytes(request.encode(header=True, framed=True))
    frame = response_frame(ApiVersionsResponse(api_keys=[]), version, 9)
    theirs = TheirApiVersionsResponse[version].decode(frame[4:], header=True)
    assert (theirs.header.correlation_id, list(theirs.api_keys)) == (9, [])
    assert decode_response(ApiVersionsResponse, frame[4:], version) == (9, ApiVersionsResponse(api_keys=[]))


@pytest.mark.parametrize("version", HeartbeatResponse.VERSIONS)
def test_kafka_python_reads_a_response_frame(version: int) -> None:
    frame = response_frame(HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS), version, -5)
    theirs = TheirHeartbeatResponse[version].decode(frame, header=True, framed=True)
    assert (theirs.header.correlation_id, theirs.error_code) == (-5, 27)
    assert decode_response(HeartbeatResponse, frame[4:], version) == (
        -5,
        HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS),
    )


def test_the_length_of_a_response_includes_its_records() -> None:
    partition = FetchResponse.Partition(partition_index=0, high_watermark=1, records=bytes(100_000))
    response = FetchResponse(responses=[FetchResponse.Topic(topic="t", partitions=[partition])])
    parts = response_parts(response, 12, 3)
    whole = b"".join(parts)  # type: ignore[arg-type]
    assert int.from_bytes(whole[:4], "big") == len(whole) - 4
    assert parts[1] is partition.records
    assert decode_response(FetchResponse, whole[4:], 12) == (3, response)


def test_the_header_of_an_unknown_api_is_read_up_to_its_client_id() -> None:
    assert decode_request_header(bytes.fromhex("4e20 0001 00000005 0001 63")) == RequestHeader(20000, 1, 5, "c", 11)


def test_the_header_of_a_future_version_is_read() -> None:
    frame = bytes.fromhex("0012 0063 00000005 0001 63 00")
    assert decode_request_header(frame) == RequestHeader(18, 99, 5, "c", 12)


def test_every_prefix_of_a_header_is_refused() -> None:
    frame = request_frame(HeartbeatRequest(group_id="g", generation_id=3, member_id="m"), 4, 7, "client")[4:]
    end = decode_request_header(frame).body_offset
    for length in range(end):
        with pytest.raises(DecodeError):
            decode_request_header(frame[:length])
    for length in range(5):
        with pytest.raises(DecodeError):
            decode_response(HeartbeatResponse, bytes(length), 4)


@given(st.binary(max_size=40))
def test_arbitrary_bytes_are_a_header_or_refused(data: bytes) -> None:
    try:
        header = decode_request_header(data)
    except DecodeError:
        return
    assert header.body_offset <= len(data)


def test_tagged_fields_of_a_header_are_skipped() -> None:
    body = encode(HeartbeatRequest(group_id="g", generation_id=3, member_id="m"), 4)
    frame = bytes.fromhex("000c 0004 00000005 ffff 01 07 02 abcd") + body
    header = decode_request_header(frame)
    assert header.client_id is None
    assert decode(HeartbeatRequest, frame, 4, header.body_offset).member_id == "m"
