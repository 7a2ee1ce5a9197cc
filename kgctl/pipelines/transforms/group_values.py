"""The value of a group metadata record: an SQL expression validates it, a Python function decodes these few rows.

The values of newer group types become JSON, as `kgctl consume` shows them.
"""

from __future__ import annotations

import json
from typing import TypeAlias

from pyspark.sql import Column
from pyspark.sql import functions as f

from broker.protocol.codec import DecodeError
from broker.protocol.consumer_protocol import PROTOCOL_TYPE, decode_assignment
from broker.protocol.offsets_topic import TOPIC, GroupMetadataValue, decode_group_value
from broker.protocol.record_batch import Record
from kgctl.pipelines.schemas.groups import MEMBER_DDL
from kgctl.pipelines.transforms import wire
from kgctl.pipelines.transforms.wire import Step
from kgctl.render.internal_records import UNREAD, decoded

GROUP_DDL = (
    "protocol_type string, generation int, protocol string, leader string, state_ms bigint, "
    f"members array<{MEMBER_DDL}>"
)

Assigned: TypeAlias = list[tuple[str, list[int]]]
Member: TypeAlias = tuple[str, str | None, str, str, int | None, int, Assigned | None]
Group: TypeAlias = tuple[str, int, str | None, str | None, int, list[Member]]

_VERSION_BYTES = 2
# Fewer bytes than a member has in any version: a corrupt count must not create a huge array.
_MEMBER_BYTES = 8


def is_group_value(value: Column, version: Column) -> Column:
    """Whether the bytes after the version are a valid GroupMetadataValue v0-v4; null for other versions."""
    header = f.lit(None)
    member = f.lit(None)
    for number in GroupMetadataValue.VERSIONS:
        header = f.when(version == number, wire.steps(_header_steps(number))).otherwise(header)
        member = f.when(version == number, wire.steps(_member_steps(number))).otherwise(member)
    flexible = version >= GroupMetadataValue.FLEXIBLE_SINCE

    def counted(at: Column) -> Column:
        plain = f.struct((wire.int32(value, at).cast("bigint") + 1).alias("value"), (at + 4).alias("next"))
        return wire.bound(f.when(flexible, wire.uvarint(value, at)).otherwise(plain), walked)

    def walked(members: Column) -> Column:
        count = members["value"] - 1
        possible = (count >= 0) & (count * _MEMBER_BYTES <= f.octet_length(value) - members["next"] + 1)
        every = f.flatten(f.array_repeat(member, count.cast("int")))
        tags = f.when(flexible, wire.steps([Step.TAGGED_FIELDS])).otherwise(f.array().cast("array<int>"))
        return f.when(possible, wire.walk(value, f.concat(every, tags), members["next"])).isNotNull()

    start = f.lit(_VERSION_BYTES + 1).cast("bigint")
    return wire.bound(wire.walk(value, header, start), counted)


def read_group(value: Column) -> Column:
    """A struct of GROUP_DDL. `value` must satisfy `is_group_value` or be null. Only consumers have assignments."""
    return f.udf(_group, returnType=GROUP_DDL, useArrow=True)(value)


def read_newer(key: Column, value: Column) -> Column:
    """The value of a record of a consumer or share group as JSON; null for other kinds, tombstones and what cannot be read."""
    return f.udf(_newer, returnType="string", useArrow=True)(key, value)


def _newer(key: bytes | None, value: bytes | None) -> str | None:
    if key is None or value is None:
        return None
    found = decoded(TOPIC, Record(0, 0, bytes(key), bytes(value), ()))
    return None if found is None or UNREAD in found[2] else json.dumps(found[2], separators=(",", ":"))


def _header_steps(version: int) -> list[Step]:
    if version >= GroupMetadataValue.FLEXIBLE_SINCE:
        return [Step.COMPACT_TEXT, Step.INT32, Step.COMPACT_TEXT_OR_NULL, Step.COMPACT_TEXT_OR_NULL, Step.INT64]
    return [Step.TEXT, Step.INT32, Step.TEXT_OR_NULL, Step.TEXT_OR_NULL, *[Step.INT64] * (version >= 2)]


def _member_steps(version: int) -> list[Step]:
    if version >= GroupMetadataValue.FLEXIBLE_SINCE:
        return [
            *(Step.COMPACT_TEXT, Step.COMPACT_TEXT_OR_NULL, Step.COMPACT_TEXT, Step.COMPACT_TEXT),
            *(Step.INT32, Step.INT32, Step.COMPACT_BYTES, Step.COMPACT_BYTES, Step.TAGGED_FIELDS),
        ]
    return [
        *(Step.TEXT, *[Step.TEXT_OR_NULL] * (version >= 3), Step.TEXT, Step.TEXT),
        *(*[Step.INT32] * (version >= 1), Step.INT32, Step.BYTES, Step.BYTES),
    ]


def _group(value: bytes | None) -> Group | None:
    if value is None:
        return None
    found = decode_group_value(bytes(value))
    is_consumer = found.protocol_type == PROTOCOL_TYPE
    return (
        found.protocol_type,
        found.generation,
        found.protocol,
        found.leader,
        found.current_state_timestamp,
        [_member(member, is_consumer) for member in found.members],
    )


def _member(member: GroupMetadataValue.Member, is_consumer: bool) -> Member:
    return (
        member.member_id,
        member.group_instance_id,
        member.client_id,
        member.client_host,
        member.rebalance_timeout if member.rebalance_timeout >= 0 else None,
        member.session_timeout,
        _assigned(member.assignment) if is_consumer else None,
    )


def _assigned(blob: bytes) -> Assigned | None:
    """Partitions by topic; an empty blob means no partitions."""
    if not blob:
        return []
    try:
        found = decode_assignment(blob)
    except DecodeError:
        return None
    return [(topic.topic, topic.partitions) for topic in found.assigned_partitions]
