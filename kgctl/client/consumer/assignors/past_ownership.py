"""What sticky members say about their last assignment: in user data (StickyAssignor) or in the subscription itself."""

from __future__ import annotations

from collections.abc import Sequence

from broker.light_dataclasses import dataclass
from broker.protocol.codec import decode, encode
from broker.protocol.wire_types import ARRAY, INT32, STRING, DecodeError, Message, Struct, wire
from kgctl.client.consumer.assignors.assignor import Subscription
from kgctl.model.topic_partition import TopicPartition

NO_GENERATION = -1


@dataclass(frozen=True, slots=True)
class MemberData:
    """The partitions that a member owned in a generation."""

    partitions: Sequence[TopicPartition] = ()
    generation_id: int = NO_GENERATION


class StickyUserData(Message):
    """User data of StickyAssignor: v1 adds the generation (KIP-341). Nothing in it says which version it is."""

    VERSIONS = range(2)

    class TopicPartitions(Struct):
        topic: str = wire(STRING)
        partitions: list[int] = wire(ARRAY(INT32))

    previous_assignment: list[TopicPartitions] = wire(ARRAY(TopicPartitions))
    generation: int = wire(INT32, default=NO_GENERATION, since=1)


class CooperativeUserData(Message):
    """User data of CooperativeStickyAssignor, for leaders that do not know KIP-792."""

    VERSIONS = range(1)

    generation: int = wire(INT32)


def encode_sticky(data: MemberData) -> bytes:
    topics: dict[str, StickyUserData.TopicPartitions] = {}
    for topic, number in data.partitions:
        row = topics.setdefault(topic, StickyUserData.TopicPartitions(topic=topic, partitions=[]))
        row.partitions.append(number)
    return encode(StickyUserData(previous_assignment=list(topics.values()), generation=data.generation_id), 1)


def decode_sticky(subscription: Subscription) -> MemberData:
    """What the user data says; nothing if it cannot be decoded."""
    for version in (1, 0):
        try:
            data = decode(StickyUserData, subscription.user_data or b"", version)
        except DecodeError:
            continue
        partitions = [
            TopicPartition(row.topic, number) for row in data.previous_assignment for number in row.partitions
        ]
        return MemberData(partitions, data.generation)
    return MemberData()


def encode_cooperative(generation_id: int) -> bytes:
    return encode(CooperativeUserData(generation=generation_id), 0)


def decode_cooperative(subscription: Subscription) -> MemberData:
    """The owned partitions with the generation of the subscription, or else that of the user data."""
    generation = subscription.generation_id
    if generation < 0:
        try:
            generation = decode(CooperativeUserData, subscription.user_data or b"", 0).generation
        except DecodeError:
            generation = NO_GENERATION
    return MemberData(subscription.owned_partitions, generation)
