"""Reads what coordinators store about groups in __consumer_offsets, on any cluster where it may be read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from broker.light_named_tuples import NamedTuple
from broker.protocol.newer_group_records import (
    ExpressionKey,
    GroupKey,
    MemberKey,
    decode_newer_key,
    decode_newer_value,
    kind_of,
)
from broker.protocol.offsets_topic import TOPIC, GroupMetadataKey, decode_group_value, decode_key, partition_for
from broker.protocol.wire_types import DecodeError, Message
from kgctl.client.admin.log_ends import log_ends, partition_counts
from kgctl.client.admin.log_reads import LogReads
from kgctl.client.admin.offsets import EARLIEST, LATEST
from kgctl.client.consumer.fetching.options import FetchOptions
from kgctl.client.net.cluster import Cluster
from kgctl.client.net.errors import NotFound
from kgctl.client.net.steps import Steps
from kgctl.model.topic_partition import TopicPartition

# Kafka limits no timestamp; later ones are no dates.
LAST_MS = 253_402_300_799_999
# How far back the first reading goes in each partition: most records are commits.
NEWEST = 5_000
# The same for the one partition of a group.
NEWEST_OF_ONE = 100_000
FETCH = FetchOptions(max_wait_ms=0, min_bytes=0, max_bytes=4 << 20, committed_only=True)
FETCH_ONE = FetchOptions(
    max_wait_ms=0, min_bytes=0, max_bytes=4 << 20, max_partition_bytes=4 << 20, committed_only=True
)

Offsets: TypeAlias = Mapping[TopicPartition, int]
# The key of a classic group; the others are in `newer_group_records`.
CLASSIC = 2
_OFFSET_KEYS = (b"\x00\x00", b"\x00\x01")


class GroupRecord(NamedTuple):
    """A record about a group itself. `kind` is the version of its key, `name` the member or the regular expression that it names.

    `value` is None if it is a tombstone, and bytes if its format is not known.
    """

    group: str
    kind: int
    name: str
    value: Message | bytes | None
    timestamp: int


# Receives a record, and whether the reading began at the start of its partition.
Take: TypeAlias = Callable[[GroupRecord, bool], None]


def read_group_records(
    cluster: Cluster, offsets: Offsets | None, take: Take, group: str | None = None
) -> Steps[Offsets]:
    """Pass on what was stored since `offsets` in the partition of the group, or in all; the next offsets.

    Without offsets, the newest NEWEST_OF_ONE or NEWEST records of each partition, commits included.
    """
    try:
        counts = yield from partition_counts(cluster, [TOPIC])
    except NotFound:
        return {}
    count = counts[TOPIC]
    numbers = range(count) if group is None else [partition_for(group, count)]
    newest, fetch = (NEWEST, FETCH) if group is None else (NEWEST_OF_ONE, FETCH_ONE)
    places = [TopicPartition(TOPIC, number) for number in numbers]
    starts = yield from log_ends(cluster, places, EARLIEST)
    ends = yield from log_ends(cluster, places, LATEST, committed_only=True)
    first = {
        place: min(ends[place], max(starts[place], ends[place] - newest if offsets is None else offsets.get(place, 0)))
        for place in places
    }
    whole = {place for place in places if first[place] <= starts[place]}
    reads = LogReads(cluster, fetch, {place: at for place, at in first.items() if at < ends[place]}, ends)
    while not reads.all_finished:
        for fetched in (yield from reads.fetch()):
            is_whole = fetched.partition in whole
            for batch in fetched.batches():
                for record in batch.records:
                    if record.key is None or bytes(record.key[:2]) in _OFFSET_KEYS:
                        continue
                    found = group_record(bytes(record.key), record.value, record.timestamp)
                    if found is not None and group in (None, found.group):
                        take(found, is_whole)
        for place in list(reads.out_of_range):
            reads.remove(place)
    return {place: max(first[place], ends[place]) for place in places}


def group_record(key: bytes, value: bytes | memoryview | None, timestamp: int) -> GroupRecord | None:
    """The record about a group; None for other kinds, and for one that cannot be read."""
    at_ms, body = _date(timestamp), None if value is None else bytes(value)
    try:
        found = decode_key(key)
        if isinstance(found, GroupMetadataKey):
            return GroupRecord(found.group, CLASSIC, "", None if body is None else decode_group_value(body), at_ms)
        newer = None if found is not None else decode_newer_key(key)
        if newer is None or not isinstance(named := newer[1], (GroupKey, MemberKey, ExpressionKey)):
            return None
        name = ""
        if isinstance(named, MemberKey):
            name = named.member_id
        elif isinstance(named, ExpressionKey):
            name = named.regular_expression
        decoded = None if body is None else decode_newer_value(key, body) or body
        return GroupRecord(named.group, kind_of(key), name, decoded, at_ms)
    except DecodeError:
        return None


def _date(ms: int) -> int:
    return min(max(ms, 0), LAST_MS)
