"""Generates records of __consumer_offsets: valid ones of all kinds and versions, and damaged ones."""

from __future__ import annotations

import random
import struct

from hypothesis import strategies as st

from broker.protocol.codec import encode
from broker.protocol.consumer_protocol import ConsumerProtocolAssignment, encode_blob
from broker.protocol.offsets_topic import (
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
    encode_key,
)
from broker.protocol.varints import uvarint

Record = tuple[bytes | None, bytes | None]

INT32 = st.integers(-(2**31), 2**31 - 1)
TIME_MS = st.integers(0, 4_000_000_000_000) | st.integers(-(2**63), 2**63 - 1) | st.just(-1)
TEXT = st.text(max_size=12) | st.sampled_from(["", "orders", "grüße", "日本\u0000", "\U0001f600", "x" * 300])


@st.composite
def assignments(draw: st.DrawFn) -> bytes:
    topics = draw(st.dictionaries(TEXT, st.lists(INT32, max_size=4), max_size=2))
    row = ConsumerProtocolAssignment.TopicPartition
    return encode_blob(
        ConsumerProtocolAssignment(
            assigned_partitions=[row(topic=topic, partitions=parts) for topic, parts in topics.items()],
            user_data=draw(st.none() | st.binary(max_size=3)),
        ),
        draw(st.integers(0, 3)),
    )


MEMBERS = st.builds(
    GroupMetadataValue.Member,
    member_id=TEXT,
    group_instance_id=st.none() | TEXT,
    client_id=TEXT,
    client_host=TEXT,
    rebalance_timeout=st.just(-1) | INT32,
    session_timeout=INT32,
    subscription=st.binary(max_size=200),
    assignment=assignments() | st.binary(max_size=8),
)
GROUP_VALUES = st.builds(
    GroupMetadataValue,
    protocol_type=st.sampled_from(["consumer", "consumer", "connect", ""]),
    generation=INT32,
    protocol=st.none() | TEXT,
    leader=st.none() | TEXT,
    current_state_timestamp=TIME_MS,
    members=st.lists(MEMBERS, max_size=3),
)
COMMIT_VALUES = st.builds(
    OffsetCommitValue,
    offset=st.integers(-(2**63), 2**63 - 1),
    leader_epoch=st.just(-1) | INT32,
    metadata=TEXT | st.text(min_size=60, max_size=200),
    commit_timestamp=TIME_MS,
    expire_timestamp=TIME_MS,
)


@st.composite
def commits(draw: st.DrawFn) -> Record:
    key = encode_key(OffsetCommitKey(draw(TEXT), draw(TEXT), draw(INT32)))
    key = draw(st.sampled_from([0, 1])).to_bytes(2, "big") + key[2:]
    version = draw(st.sampled_from([3, 3, 0, 1, 2, 4]))
    value = version.to_bytes(2, "big") + encode(draw(COMMIT_VALUES), version)
    if version == 4:
        value = value[:-1] + draw(tagged_fields())
    return key, draw(st.sampled_from([value, value, value, None]))


@st.composite
def groups(draw: st.DrawFn) -> Record:
    version = draw(st.sampled_from([3, 3, 0, 1, 2, 4]))
    value = version.to_bytes(2, "big") + encode(draw(GROUP_VALUES), version)
    if version == 4:
        value = value[:-1] + draw(tagged_fields())
    return encode_key(GroupMetadataKey(draw(TEXT))), draw(st.sampled_from([value, value, value, None]))


@st.composite
def newer(draw: st.DrawFn) -> Record:
    """Kinds of the newer group types, and some that do not exist yet."""
    texts = [text.encode() for text in draw(st.lists(TEXT, min_size=1, max_size=2))]
    key = struct.pack(">h", draw(st.integers(-2, 30))) + b"".join(struct.pack(">h", len(t)) + t for t in texts)
    version = draw(st.sampled_from([0, 0, 0, 1, -1]))
    return key, draw(st.none() | st.builds(lambda body: struct.pack(">h", version) + body, st.binary(max_size=9)))


@st.composite
def tagged_fields(draw: st.DrawFn) -> bytes:
    fields = draw(st.lists(st.tuples(st.integers(0, 2**32 - 1), st.binary(max_size=150)), max_size=3))
    return uvarint(len(fields)) + b"".join(uvarint(tag) + uvarint(len(body)) + body for tag, body in fields)


RECORDS = commits() | groups() | newer()


def damaged(record: Record, randomness: random.Random) -> Record:
    """The record with its key or value truncated, extended, overwritten or removed."""
    key, value = record
    which = randomness.randrange(8)
    if which == 0:
        return None, value
    if which <= 2:
        return _hurt(key, randomness), value
    return key, _hurt(value, randomness)


def _hurt(part: bytes | None, randomness: random.Random) -> bytes | None:
    if not part:
        return part
    at = randomness.randrange(len(part))
    how = randomness.randrange(5)
    if how == 0:
        return part[:at]
    if how == 1:
        return part + randomness.randbytes(randomness.randrange(1, 5))
    if how == 2:
        return (
            part[:at] + bytes([randomness.choice([0, 1, 0x7F, 0x80, 0xFF, randomness.randrange(256)])]) + part[at + 1 :]
        )
    if how == 3:
        return part[:at] + b"\xff" * randomness.randrange(1, 9) + part[at:]
    return part[: at // 2] + part[at:]
