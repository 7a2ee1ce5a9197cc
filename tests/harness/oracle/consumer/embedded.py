"""Subscriptions and assignments of classic members, which hold names of topics: as JSON in the recordings."""

from __future__ import annotations

import json
from typing import Any

from broker.protocol.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    decode_assignment,
    decode_subscription,
    encode_blob,
)
from broker.protocol.wire_types import DecodeError
from tests.harness.oracle.consumer.names import Names

SUBSCRIPTIONS = {"metadata", "subscription", "member_metadata"}
ASSIGNMENTS = {"assignment", "member_assignment"}


def subscription(version: int, topics: list[str], owned: dict[str, list[int]], generation: int) -> str:
    """A subscription in the form of the recordings; older versions leave out owned partitions and generation."""
    shown: dict[str, Any] = {"v": version, "topics": topics}
    shown |= {"owned": owned} if version >= 1 else {}
    return _text(shown | ({"generation": generation} if version >= 2 else {}))


def assignment(version: int, partitions: dict[str, list[int]]) -> str:
    return _text({"v": version, "assigned": partitions})


def encoded(text: str, names: Names) -> bytes:
    """The bytes of a form that `subscription` or `assignment` has made; of another text, one byte for each character."""
    if not text.startswith("{"):
        return text.encode("latin-1")
    form = json.loads(text)
    if "assigned" in form:
        partitions = [
            ConsumerProtocolAssignment.TopicPartition(topic=names.living(topic), partitions=found)
            for topic, found in form["assigned"].items()
        ]
        return encode_blob(ConsumerProtocolAssignment(assigned_partitions=partitions), form["v"])
    message = ConsumerProtocolSubscription(
        topics=names.living(form["topics"]),
        owned_partitions=[
            ConsumerProtocolSubscription.TopicPartition(topic=names.living(topic), partitions=found)
            for topic, found in form.get("owned", {}).items()
        ],
        generation_id=form.get("generation", -1),
    )
    return encode_blob(message, form["v"])


def read(name: str, data: bytes, names: Names) -> str:
    """The form of bytes in a field of this name."""
    version = int.from_bytes(data[:2], "big")
    try:
        if name in SUBSCRIPTIONS:
            message = decode_subscription(data)
            owned = {names.text(one.topic): sorted(one.partitions) for one in message.owned_partitions}
            return subscription(version, sorted(map(names.text, message.topics)), owned, message.generation_id)
        if name in ASSIGNMENTS:
            found = decode_assignment(data).assigned_partitions
            return assignment(version, {names.text(one.topic): sorted(one.partitions) for one in found})
    except DecodeError:
        pass
    return data.decode("latin-1")


def _text(form: dict[str, Any]) -> str:
    return json.dumps(form, separators=(",", ":"), sort_keys=True)
