"""Requests in the form of the recordings: exactly the fields of the version, and bytes as text, one character per byte."""

from __future__ import annotations

import random
import struct
from typing import Any

from broker.protocol.api_keys import APIS
from broker.protocol.wire_types import ARRAY, REQUIRED, StructMeta

BY_NAME = {api.name: api for api in APIS.values()}
TOPICS = {"walk-a": 3, "walk-b": 1}
NO_TOPIC = "walk-none"
PROTOCOLS = ("range", "roundrobin", "sticky")


def complete(api: str, version: int, fields: dict[str, Any]) -> dict[str, Any]:
    """The fields that a request of this version can carry, with defaults for those not given."""
    return _completed(BY_NAME[api].request, version, fields)


def _completed(cls: StructMeta, version: int, given: dict[str, Any]) -> dict[str, Any]:
    out = {}
    for field in cls.FIELDS:
        if not field.is_in(version):
            continue
        value = given[field.name] if field.default is REQUIRED else given.get(field.name, field.absent())
        if isinstance(field.type, ARRAY) and isinstance(field.type.element, StructMeta) and value is not None:
            value = [_completed(field.type.element, version, item) for item in value]
        out[field.name] = value
    return out


def subscription(*topics: str, version: int = 0, user_data: bytes | None = None) -> str:
    """A consumer's metadata: topics and user data; from v1 owned partitions, v2 the generation, v3 the rack."""
    packed = struct.pack(">hi", version, len(topics))
    for topic in topics:
        packed += struct.pack(">h", len(topic)) + topic.encode()
    packed += struct.pack(">i", -1) if user_data is None else struct.pack(">i", len(user_data)) + user_data
    for since, more in ((1, struct.pack(">i", 0)), (2, struct.pack(">i", 4)), (3, struct.pack(">h", -1))):
        packed += more if version >= since else b""
    return packed.decode("latin-1")


# No count exceeds the topics that follow: a member with such metadata keeps a group of Kafka's in PreparingRebalance.
_METADATA = {
    "consumer": [
        *(subscription("walk-a", user_data=data) for data in (None, None, b"u")),
        *(subscription("walk-a", "walk-b", version=version) for version in (0, 1, 3)),
        *(subscription("walk-b", version=version) for version in (0, 2)),
        "\0\0",  # too short for a subscription
    ],
    "connect": ["one", "two", "three", ""],
}


def metadata_of(protocol_type: str, rng: random.Random) -> str:
    return rng.choice(_METADATA[protocol_type])
