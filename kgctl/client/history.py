"""The history of a group, read from the topic in which kgctl's own broker keeps it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from broker.protocol.errors import ErrorCode
from broker.protocol.messages.fetch import FetchRequest, FetchResponse
from kgctl.client.cluster import Ask, Batch, Cluster, Node
from kgctl.client.consumer.fetched import Damaged, Fetched
from kgctl.client.consumer.starting import Reset, log_ends, partition_counts
from kgctl.client.errors import BrokerError, KgctlError, NotFound, Precondition
from kgctl.client.steps import Steps
from kgctl.client.topic_partition import TopicPartition
from kgctl.model.groups import TopicPartitions
from kgctl.model.history import EMPTY, STABLE, STARTED, GroupEventRow

EVENTS_TOPIC = "__kgctl_group_events"
SCHEMA_VERSION = 1
FETCH_BYTES = 4 << 20
NAMED_TOPICS_UNTIL = 12


def group_history(cluster: Cluster, group: str, *, every_event: bool = False) -> Steps[list[GroupEventRow]]:
    """The kept events of the group, oldest first; `every_event` also gives the beginnings of rebalances that have ended.

    Precondition on a cluster that keeps no history. NotFound if there are no events of the group.
    """
    try:
        counts = yield from partition_counts(cluster, [EVENTS_TOPIC])
    except NotFound:
        raise Precondition(
            f"This cluster keeps no history of its groups: it has no topic {EVENTS_TOPIC}. kgctl's own broker does."
        ) from None
    partitions = [TopicPartition(EVENTS_TOPIC, number) for number in range(counts[EVENTS_TOPIC])]
    first = yield from log_ends(cluster, partitions, Reset.EARLIEST)
    last = yield from log_ends(cluster, partitions, Reset.LATEST)
    key, rows = group.encode(), list[GroupEventRow]()
    for partition in partitions:
        rows += yield from _events(cluster, partition, first[partition], last[partition], key)
    if not rows:
        raise NotFound(f"No events of consumer group '{group}' are kept.")
    return rows if every_event else _without_beginnings(rows)


def _events(
    cluster: Cluster, partition: TopicPartition, offset: int, end: int, key: bytes
) -> Steps[list[GroupEventRow]]:
    rows = []
    while offset < end:
        found = yield from _fetch(cluster, partition, offset)
        if isinstance(found, BrokerError) and found.code == ErrorCode.OFFSET_OUT_OF_RANGE:
            # Retention was faster.
            offset = (yield from log_ends(cluster, [partition], Reset.EARLIEST))[partition]
            continue
        if isinstance(found, KgctlError):
            raise found
        fetched = Fetched(partition, found, offset, end)
        for batch in fetched.batches():
            rows += [_row(record.offset, record.value) for record in batch.records if record.key == key]
        if fetched.next_offset() == offset:
            break
        offset = fetched.next_offset()
    return rows


def _fetch(cluster: Cluster, partition: TopicPartition, offset: int) -> Steps[bytes | KgctlError]:
    row = FetchRequest.Partition(partition=partition.partition, fetch_offset=offset, partition_max_bytes=FETCH_BYTES)
    request = FetchRequest(
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=FETCH_BYTES,
        topics=[FetchRequest.Topic(topic=partition.topic, partitions=[row])],
    )

    def read(answer: FetchResponse) -> dict[tuple[str, int], bytes | KgctlError]:
        return {
            (topic.topic, row.partition_index): BrokerError(row.error_code, str(partition))
            if row.error_code
            else bytes(row.records or b"")
            for topic in answer.responses
            for row in topic.partitions
        }

    def make(node: Node, keys: list[tuple[str, int]]) -> list[Batch[tuple[str, int]]]:
        return [Batch(Ask(node.endpoint, request, FetchResponse, max_version=NAMED_TOPICS_UNTIL), keys, read)]

    found = yield from cluster.at_leaders([partition], make)
    result: bytes | KgctlError = found[partition]
    return result


def _row(offset: int, value: bytes | None) -> GroupEventRow:
    try:
        told: dict[str, Any] = json.loads(value or b"")
        if told["version"] > SCHEMA_VERSION:
            raise KgctlError(f"{EVENTS_TOPIC}, offset {offset}: written by a newer broker; this kgctl cannot read it")
        return GroupEventRow(
            group=told["group"],
            timestamp=told["timestamp"],
            generation=told["generation"],
            event=told["event"],
            cause=told["cause"],
            reason=told["reason"],
            prepare_ms=told["prepare_ms"],
            complete_ms=told["complete_ms"],
            members=told["members"],
            joined_count=told["joined_count"],
            left_count=told["left_count"],
            partitions_moved=told["partitions_moved"],
            commits_rejected=told["commits_rejected"],
            joined=tuple(told["joined"]),
            left=tuple(told["left"]),
            left_causes=tuple(told.get("left_causes", ())),
            absent=tuple(told.get("absent", ())),
            absent_count=told.get("absent_count", 0),
            assignment=_assignment(told.get("assignment")),
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Damaged(f"{EVENTS_TOPIC}, offset {offset}: not an event of a group ({error!r})") from error


def _assignment(told: dict[str, dict[str, list[int]]] | None) -> dict[str, tuple[TopicPartitions, ...]] | None:
    if told is None:
        return None
    return {
        member: tuple(TopicPartitions(topic, tuple(partitions)) for topic, partitions in topics.items())
        for member, topics in told.items()
    }


def _without_beginnings(rows: Iterable[GroupEventRow]) -> list[GroupEventRow]:
    """What a rebalance ends with says all that its beginning did, but for the commits that were rejected before."""
    kept: list[GroupEventRow] = []
    for row in rows:
        if kept and kept[-1].event == STARTED and row.event in (STABLE, EMPTY):
            rejected = row.commits_rejected + kept.pop().commits_rejected
            row = replace(row, commits_rejected=rejected)
        kept.append(row)
    return kept
