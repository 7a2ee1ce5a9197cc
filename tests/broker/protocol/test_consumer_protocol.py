"""Subscriptions and assignments, compared with kafka-python."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment as TheirAssignment
from kafka.protocol.consumer.metadata import ConsumerProtocolSubscription as TheirSubscription

from broker.protocol.codec import DecodeError
from broker.protocol.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    decode_assignment,
    decode_subscription,
    encode_blob,
)

partitions = st.lists(st.integers(0, 2**31 - 1), max_size=4)
owned = st.builds(ConsumerProtocolSubscription.TopicPartition, topic=st.text(max_size=20), partitions=partitions)
assigned = st.builds(ConsumerProtocolAssignment.TopicPartition, topic=st.text(max_size=20), partitions=partitions)
subscriptions = st.builds(
    ConsumerProtocolSubscription,
    topics=st.lists(st.text(max_size=20), max_size=4),
    user_data=st.none() | st.binary(max_size=20),
    owned_partitions=st.lists(owned, max_size=3),
    generation_id=st.integers(-1, 2**31 - 1),
    rack_id=st.none() | st.text(max_size=10),
)
assignments = st.builds(
    ConsumerProtocolAssignment,
    assigned_partitions=st.lists(assigned, max_size=3),
    user_data=st.none() | st.binary(max_size=20),
)


@given(subscriptions)
def test_a_subscription_survives_a_round_trip(subscription: ConsumerProtocolSubscription) -> None:
    assert decode_subscription(encode_blob(subscription)) == subscription


@given(assignments)
def test_an_assignment_survives_a_round_trip(assignment: ConsumerProtocolAssignment) -> None:
    assert decode_assignment(encode_blob(assignment)) == assignment


@pytest.mark.parametrize("version", range(4))
def test_kafka_python_reads_the_same(version: int) -> None:
    part = ConsumerProtocolSubscription.TopicPartition(topic="t", partitions=[1, 2])
    ours = ConsumerProtocolSubscription(
        topics=["t", "u"], user_data=b"x", owned_partitions=[part], generation_id=4, rack_id="r"
    )
    blob = encode_blob(ours, version)
    theirs = TheirSubscription.decode(blob)
    assert (list(theirs.topics), bytes(theirs.user_data)) == (["t", "u"], b"x")
    if version >= 1:
        assert [(owned.topic, list(owned.partitions)) for owned in theirs.owned_partitions] == [("t", [1, 2])]
    assert bytes(theirs.encode()) == blob
    given_out = ConsumerProtocolAssignment.TopicPartition(topic="t", partitions=[1])
    blob = encode_blob(ConsumerProtocolAssignment(assigned_partitions=[given_out]), version)
    assert bytes(TheirAssignment.decode(blob).encode()) == blob


def test_a_future_version_is_read_as_the_last_known_one() -> None:
    subscription = ConsumerProtocolSubscription(topics=["t"], generation_id=4, rack_id="r")
    later = b"\0\x09" + encode_blob(subscription)[2:] + b"more"
    assert decode_subscription(later) == subscription


def test_fields_that_a_version_lacks_have_their_defaults() -> None:
    subscription = ConsumerProtocolSubscription(topics=["t"], generation_id=4, rack_id="r")
    assert decode_subscription(encode_blob(subscription, 0)) == ConsumerProtocolSubscription(topics=["t"])
    assert decode_subscription(encode_blob(subscription, 2)).generation_id == 4


@pytest.mark.parametrize(
    "blob", [b"", b"\0", b"\0\0", b"\xff\xff\0\0\0\0\xff\xff\xff\xff", b"range", b"\0\1" + b"\x7f" * 9]
)
def test_a_malformed_blob_is_refused(blob: bytes) -> None:
    with pytest.raises(DecodeError):
        decode_subscription(blob)
    with pytest.raises(DecodeError):
        decode_assignment(blob)
