"""Subscriptions and assignments as the bytes that JoinGroup and SyncGroup carry. Decoding raises DecodeError."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from broker.protocol.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    encode_blob,
)
from broker.protocol.consumer_protocol import decode_assignment as decode_assignment_message
from broker.protocol.consumer_protocol import decode_subscription as decode_subscription_message
from kgctl.client.consumer.assignors.assignor import Assignment, Subscription, java_order
from kgctl.model.topic_partition import TopicPartition

Row = TypeVar("Row", ConsumerProtocolSubscription.TopicPartition, ConsumerProtocolAssignment.TopicPartition)


def encode_subscription(subscription: Subscription) -> bytes:
    """Version 3, as Java's clients send it; members that know less ignore the end."""
    owned = sorted(subscription.owned_partitions, key=lambda partition: (java_order(partition.topic), partition[1]))
    return encode_blob(
        ConsumerProtocolSubscription(
            topics=sorted(subscription.topics, key=java_order),
            user_data=subscription.user_data,
            owned_partitions=_rows(ConsumerProtocolSubscription.TopicPartition, owned),
            generation_id=subscription.generation_id,
            rack_id=subscription.rack_id,
        )
    )


def decode_subscription(blob: bytes, group_instance_id: str | None = None) -> Subscription:
    """The subscription of a member; its instance id comes with the member in the answer to JoinGroup."""
    message = decode_subscription_message(blob)
    return Subscription(
        topics=tuple(message.topics),
        user_data=message.user_data,
        owned_partitions=_partitions(message.owned_partitions),
        generation_id=message.generation_id,
        rack_id=message.rack_id or None,
        group_instance_id=group_instance_id,
    )


def encode_assignment(assignment: Assignment) -> bytes:
    rows = _rows(ConsumerProtocolAssignment.TopicPartition, assignment.partitions)
    return encode_blob(ConsumerProtocolAssignment(assigned_partitions=rows, user_data=assignment.user_data))


def decode_assignment(blob: bytes) -> Assignment:
    """An empty blob, which a member gets if the leader left it out, is an empty assignment."""
    if not blob:
        return Assignment(())
    message = decode_assignment_message(blob)
    return Assignment(_partitions(message.assigned_partitions), message.user_data)


def _rows(kind: type[Row], partitions: Iterable[TopicPartition]) -> list[Row]:
    rows: dict[str, Row] = {}
    for topic, number in partitions:
        row = rows.get(topic)
        if row is None:
            row = rows[topic] = kind(topic=topic, partitions=[])
        row.partitions.append(number)
    return list(rows.values())


def _partitions(rows: Iterable[Row]) -> tuple[TopicPartition, ...]:
    return tuple(TopicPartition(row.topic, number) for row in rows for number in row.partitions)
