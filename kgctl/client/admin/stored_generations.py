"""Reads the generations of groups that coordinators store in __consumer_offsets, on any cluster where they may be read."""

from __future__ import annotations

from collections.abc import Mapping

from broker.protocol.consumer_protocol import decode_assignment
from broker.protocol.offsets_topic import TOPIC, GroupMetadataKey, decode_group_value, decode_key
from broker.protocol.record_batch import Record
from broker.protocol.wire_types import DecodeError
from kgctl.client.admin.consumer_group_records import ConsumerGroups, Take
from kgctl.client.admin.log_ends import log_ends, partition_counts
from kgctl.client.admin.log_reads import LogReads
from kgctl.client.admin.offsets import EARLIEST, LATEST
from kgctl.client.consumer.fetching.options import FetchOptions
from kgctl.client.net.cluster import Cluster
from kgctl.client.net.errors import NotFound
from kgctl.client.net.steps import Steps
from kgctl.model.groups import TopicPartitions, by_topic
from kgctl.model.topic_partition import TopicPartition

# Kafka limits no timestamp; later ones are no dates.
LAST_MS = 253_402_300_799_999
# How far back the first reading goes in each partition: most records are commits.
NEWEST = 5_000
FETCH = FetchOptions(max_wait_ms=0, min_bytes=0, max_bytes=4 << 20, committed_only=True)

Offsets = Mapping[TopicPartition, int]


def read_generations(cluster: Cluster, offsets: Offsets | None, newer: ConsumerGroups, take: Take) -> Steps[Offsets]:
    """Pass on what was stored since `offsets`, the newest NEWEST records of each partition without; the next offsets.

    `newer` puts together the generations of KIP-848 groups over several calls.
    """
    try:
        counts = yield from partition_counts(cluster, [TOPIC])
    except NotFound:
        return {}
    places = [TopicPartition(TOPIC, number) for number in range(counts[TOPIC])]
    starts = yield from log_ends(cluster, places, EARLIEST)
    ends = yield from log_ends(cluster, places, LATEST, committed_only=True)
    first = {
        place: min(ends[place], max(starts[place], ends[place] - NEWEST if offsets is None else offsets.get(place, 0)))
        for place in places
    }
    whole = {place for place in places if first[place] <= starts[place]}
    reads = LogReads(cluster, FETCH, {place: at for place, at in first.items() if at < ends[place]}, ends)
    while not reads.all_finished:
        for fetched in (yield from reads.fetch()):
            for batch in fetched.batches():
                for record in batch.records:
                    pass_on(record, newer, take, is_whole=fetched.partition in whole)
        for place in list(reads.out_of_range):
            reads.remove(place)
    return {place: max(first[place], ends[place]) for place in places}


def pass_on(record: Record, newer: ConsumerGroups, take: Take, *, is_whole: bool) -> None:
    """Records of other kinds, and those that cannot be read, are skipped."""
    try:
        key = None if record.key is None else decode_key(bytes(record.key))
        if key is None and record.key is not None:
            newer.add(record, _date(record.timestamp), take, is_whole=is_whole)
        if not isinstance(key, GroupMetadataKey):
            return
        if record.value is None:
            take(key.group, _date(record.timestamp), None, {})
            return
        value = decode_group_value(bytes(record.value))
    except DecodeError:
        return
    is_consumer = value.protocol_type == "consumer"
    members = {one.member_id: _owned(one.assignment) if is_consumer else None for one in value.members}
    at_ms = value.current_state_timestamp
    take(key.group, _date(at_ms if 0 <= at_ms <= LAST_MS else record.timestamp), value.generation, members)


def _date(ms: int) -> int:
    return min(max(ms, 0), LAST_MS)


def _owned(blob: bytes) -> tuple[TopicPartitions, ...] | None:
    try:
        decoded = decode_assignment(blob)
    except DecodeError:
        return None
    return by_topic(
        TopicPartition(topic.topic, number) for topic in decoded.assigned_partitions for number in topic.partitions
    )
