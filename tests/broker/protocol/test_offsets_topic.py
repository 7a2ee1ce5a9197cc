"""Keys and values of __consumer_offsets, compared with bytes that a real Kafka wrote."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.protocol.codec import DecodeError, encode
from broker.protocol.offsets_topic import (
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
    decode_group_value,
    decode_key,
    decode_offset_value,
    encode_key,
    encode_value,
    partition_for,
)

GROUP = "y1265783keep"
TIME = "0000018bcfe56800"
TIME_MS = 1_700_000_000_000


def test_keys_match_kafka() -> None:
    assert encode_key(GroupMetadataKey(GROUP)).hex() == "0002000c" + GROUP.encode().hex()
    assert encode_key(OffsetCommitKey(GROUP, "pt", 0)).hex() == "0001000c" + GROUP.encode().hex() + "0002707400000000"


def test_the_value_of_a_new_group_matches_kafka() -> None:
    value = GroupMetadataValue(
        protocol_type="", generation=0, protocol=None, leader=None, current_state_timestamp=TIME_MS
    )
    assert encode_value(value).hex() == "0003000000000000ffffffff" + TIME + "00000000"


def test_the_value_of_an_offset_matches_kafka() -> None:
    value = OffsetCommitValue(offset=5, metadata="mm", commit_timestamp=TIME_MS)
    assert encode_value(value).hex() == "00030000000000000005ffffffff00026d6d" + TIME


def test_an_offset_with_an_expiry_is_written_in_version_1() -> None:
    value = OffsetCommitValue(offset=5, metadata="mm", commit_timestamp=TIME_MS, expire_timestamp=TIME_MS)
    assert encode_value(value).hex() == "0001000000000000000500026d6d" + TIME + TIME
    assert decode_offset_value(encode_value(value)) == value


@pytest.mark.parametrize("version", OffsetCommitValue.VERSIONS)
def test_offsets_of_every_version_are_read(version: int) -> None:
    value = OffsetCommitValue(offset=5, leader_epoch=3, metadata="m", commit_timestamp=7, expire_timestamp=9)
    found = decode_offset_value(version.to_bytes(2, "big") + encode(value, version))
    assert (found.offset, found.metadata, found.commit_timestamp) == (5, "m", 7)
    assert found.leader_epoch == (3 if version >= 3 else -1)
    assert found.expire_timestamp == (9 if version == 1 else -1)


@pytest.mark.parametrize("version", GroupMetadataValue.VERSIONS)
def test_groups_of_every_version_are_read(version: int) -> None:
    member = GroupMetadataValue.Member(
        member_id="m",
        group_instance_id="i",
        client_id="c",
        client_host="/127.0.0.1",
        rebalance_timeout=6,
        session_timeout=5,
        subscription=b"s",
        assignment=b"a",
    )
    value = GroupMetadataValue(
        protocol_type="consumer",
        generation=4,
        protocol="range",
        leader="m",
        current_state_timestamp=8,
        members=[member],
    )
    found = decode_group_value(version.to_bytes(2, "big") + encode(value, version))
    assert (found.protocol_type, found.generation, found.protocol, found.leader) == ("consumer", 4, "range", "m")
    assert found.current_state_timestamp == (8 if version >= 2 else -1)
    assert found.members[0].group_instance_id == ("i" if version >= 3 else None)
    assert found.members[0].rebalance_timeout == (6 if version >= 1 else -1)
    assert (found.members[0].session_timeout, found.members[0].subscription) == (5, b"s")
    if version == 3:
        assert found == value
        assert encode_value(value)[2:] == encode(value, 3)


@given(
    st.builds(OffsetCommitKey, st.text(), st.text(), st.integers(0, 2**31 - 1)) | st.builds(GroupMetadataKey, st.text())
)
def test_a_key_survives_a_round_trip(key: OffsetCommitKey | GroupMetadataKey) -> None:
    encoded = encode_key(key)
    assert decode_key(encoded) == key
    for length in range(min(len(encoded), 50)):
        with pytest.raises(DecodeError):
            decode_key(encoded[:length])


def test_the_oldest_offset_keys_are_read_too() -> None:
    key = OffsetCommitKey(GROUP, "pt", 0)
    assert decode_key(b"\0\0" + encode_key(key)[2:]) == key


@pytest.mark.parametrize("version", [3, 8, 14, 300, -1])
def test_keys_of_other_kinds_are_none(version: int) -> None:
    assert decode_key(version.to_bytes(2, "big", signed=True) + b"whatever") is None


@pytest.mark.parametrize("data", [b"", b"\0", b"\0\5" + bytes(60), b"\xff\xff" + bytes(60), b"\0\3"])
def test_malformed_values_are_refused(data: bytes) -> None:
    with pytest.raises(DecodeError):
        decode_offset_value(data)
    with pytest.raises(DecodeError):
        decode_group_value(data)


@pytest.mark.parametrize(
    ("group_id", "partition"),
    [
        (GROUP, 48),
        ("", 0),
        ("a", 97 % 50),
        # Its hash is -248731044: Kafka uses the absolute value and does not clear the sign bit.
        ("fraud-detection", 44),
        # Its hash is the smallest int, which has no absolute value.
        ("polygenelubricants", 0),
        # A character outside the basic plane is two UTF-16 units in Java.
        ("\U0001f600", (0xD83D * 31 + 0xDE00) % 50),
    ],
)
def test_a_group_has_the_same_partition_as_in_kafka(group_id: str, partition: int) -> None:
    assert partition_for(group_id) == partition


def test_a_negative_hash_is_made_positive() -> None:
    # In Java, "consumer-group-1".hashCode() is negative.
    assert all(0 <= partition_for(f"consumer-group-{n}", 7) < 7 for n in range(200))
