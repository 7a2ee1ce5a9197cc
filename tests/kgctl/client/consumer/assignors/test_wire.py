"""Subscriptions and assignments survive the way through JoinGroup and SyncGroup."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.protocol.wire_types import DecodeError
from kgctl.client.consumer.assignors.assignor import Assignment, Subscription
from kgctl.client.consumer.assignors.wire import (
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from kgctl.model.topic_partition import TopicPartition

topics = st.sampled_from(["a", "b", "c"])
partitions = st.lists(st.builds(TopicPartition, topics, st.integers(0, 9)), unique=True)


@given(
    st.builds(
        Subscription,
        topics=st.lists(topics, unique=True),
        user_data=st.none() | st.binary(max_size=20),
        owned_partitions=partitions,
        generation_id=st.integers(-1, 2**31 - 1),
        rack_id=st.none() | st.text(min_size=1, max_size=5),
    )
)
def test_a_subscription_is_read_as_it_was_sent_in_order(sent: Subscription) -> None:
    read = decode_subscription(encode_subscription(sent), "i1")
    assert read == Subscription(
        topics=tuple(sorted(sent.topics)),
        user_data=sent.user_data,
        owned_partitions=tuple(sorted(sent.owned_partitions)),
        generation_id=sent.generation_id,
        rack_id=sent.rack_id,
        group_instance_id="i1",
    )


@given(partitions, st.none() | st.binary(max_size=20))
def test_an_assignment_is_read_as_it_was_sent(assigned: list[TopicPartition], user_data: bytes | None) -> None:
    read = decode_assignment(encode_assignment(Assignment(assigned, user_data)))
    assert sorted(read.partitions) == sorted(assigned)
    assert read.user_data == user_data


def test_a_member_that_the_leader_left_out_has_an_empty_assignment() -> None:
    assert decode_assignment(b"") == Assignment(())


def test_what_is_no_subscription_is_an_error() -> None:
    with pytest.raises(DecodeError):
        decode_subscription(b"\x00")
