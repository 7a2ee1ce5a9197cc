"""The events of a group, read from the topic in which kgctl's broker keeps them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from broker.light_dataclasses import dataclass
from broker.protocol.record_batch import Record
from kgctl.client.admin.log_ends import log_ends, partition_counts
from kgctl.client.admin.log_reads import LogReads
from kgctl.client.admin.offsets import EARLIEST, LATEST
from kgctl.client.consumer.fetched import Damaged
from kgctl.client.consumer.fetching.options import FetchOptions
from kgctl.client.net.cluster import Cluster
from kgctl.client.net.errors import KgctlError, NotFound, Precondition, Refused, Unreachable
from kgctl.client.net.steps import Steps
from kgctl.model.groups import TopicPartitions
from kgctl.model.history import UNREADABLE, GroupEventRow, MemberClient
from kgctl.model.topic_partition import TopicPartition

EVENTS_TOPIC = "__kgctl_group_events"
SCHEMA_VERSION = 1
FETCH = FetchOptions(max_wait_ms=0, min_bytes=0, max_bytes=4 << 20, max_partition_bytes=4 << 20)
LARGEST = 1 << 53
LAST_MS = 253_402_300_799_999  # the end of the year 9999


@dataclass(frozen=True, slots=True)
class Bookmark:
    """How far the events of a group, or of all (None), have been read: the next offsets, in the cluster of that id."""

    group: str | None
    cluster_id: str | None
    offsets: Mapping[TopicPartition, int]


def group_history(cluster: Cluster, group: str) -> Steps[list[GroupEventRow]]:
    """All events of the group that the cluster keeps, oldest first.

    Raises Precondition on a cluster that keeps no history, NotFound if it has no events of the group.
    """
    rows, _ = yield from new_events(cluster, group, None, is_strict=True)
    if not rows:
        raise NotFound(f"No events of consumer group '{group}' are kept.")
    return list(rows)


def new_events(
    cluster: Cluster,
    group: str | None,
    bookmark: Bookmark | None,
    *,
    is_strict: bool = False,
    newest: int | None = None,
) -> Steps[tuple[tuple[GroupEventRow, ...], Bookmark]]:
    """Every event of the group since the bookmark, oldest first, and the next bookmark; all events without a bookmark.

    Without a group, the events of all groups. Without a bookmark, only the `newest` of each partition.

    An event that cannot be read is an UNREADABLE row, or with `is_strict` an error: Damaged, or a KgctlError for an event
    of a newer broker. A bookmark of another group or cluster is ignored. Raises Precondition on a cluster that keeps no
    history.
    """
    try:
        partitions = yield from _partitions(cluster)
    except Refused:
        raise
    except Unreachable:
        # The connection may be older than a restart of the node; the second attempt opens a new one.
        partitions = yield from _partitions(cluster)
    # Noted before reading: if another cluster takes over the address meanwhile, the next call notices it.
    cluster_id, key = cluster.cluster_id, None if group is None else group.encode()
    if bookmark is None or (bookmark.group, bookmark.cluster_id) != (group, cluster_id):
        bookmark = Bookmark(group, cluster_id, {})
    offsets = dict(bookmark.offsets)
    unread = [one for one in partitions if one not in offsets]
    offsets |= yield from log_ends(cluster, unread, EARLIEST)
    if newest is not None and unread:
        ends = yield from log_ends(cluster, unread, LATEST)
        offsets |= {one: max(offsets[one], ends[one] - newest) for one in unread}
    offsets = {partition: offsets[partition] for partition in partitions}
    records = yield from _records(cluster, offsets, key)
    read = _row if is_strict else _row_or_unreadable
    rows = [
        read(record.key or b"", record.offset, record.value)
        for partition in partitions
        for record in records[partition]
    ]
    return tuple(rows), Bookmark(group, cluster_id, offsets)


def _partitions(cluster: Cluster) -> Steps[list[TopicPartition]]:
    try:
        counts = yield from partition_counts(cluster, [EVENTS_TOPIC])
    except NotFound:
        raise Precondition(
            f"This cluster keeps no history of its groups: it has no topic {EVENTS_TOPIC}. kgctl's broker does."
        ) from None
    return [TopicPartition(EVENTS_TOPIC, number) for number in range(counts[EVENTS_TOPIC])]


def _records(
    cluster: Cluster, offsets: dict[TopicPartition, int], key: bytes | None
) -> Steps[dict[TopicPartition, list[Record]]]:
    """The records with the key (None: all) between the offsets and the current log ends; moves the offsets to where reading stops."""
    reads = LogReads(cluster, FETCH, offsets)
    records: dict[TopicPartition, list[Record]] = {partition: [] for partition in offsets}
    while not reads.all_finished:
        for fetched in (yield from reads.fetch()):
            for batch in fetched.batches():
                records[batch.partition] += [record for record in batch.records if key in (None, record.key)]
        if reads.out_of_range:
            # Retention was faster, or the topic was recreated and is shorter.
            first = yield from log_ends(cluster, sorted(reads.out_of_range), EARLIEST)
            for partition, offset in first.items():
                reads.seek(partition, offset)
    offsets |= reads.positions
    return records


def _row_or_unreadable(key: bytes, offset: int, value: bytes | None) -> GroupEventRow:
    try:
        return _row(key, offset, value)
    except KgctlError as error:
        return GroupEventRow(
            group=key.decode(errors="replace"),
            timestamp=0,
            generation=-1,
            event=UNREADABLE,
            cause=None,
            reason=str(error),
            prepare_ms=None,
            complete_ms=None,
            members=0,
            joined_count=0,
            left_count=0,
            partitions_moved=None,
            commits_rejected=0,
        )


def _row(_: bytes, offset: int, value: bytes | None) -> GroupEventRow:
    try:
        event: dict[str, Any] = json.loads(value or b"")
        if event["version"] > SCHEMA_VERSION:
            raise KgctlError(f"{EVENTS_TOPIC}, offset {offset}: written by a newer broker; this kgctl cannot read it")
        row = GroupEventRow(
            group=event["group"],
            timestamp=event["timestamp"],
            generation=event["generation"],
            event=event["event"],
            cause=event["cause"],
            reason=event["reason"],
            prepare_ms=event["prepare_ms"],
            complete_ms=event["complete_ms"],
            members=event["members"],
            joined_count=event["joined_count"],
            left_count=event["left_count"],
            partitions_moved=event["partitions_moved"],
            commits_rejected=event["commits_rejected"],
            joined=tuple(event["joined"]),
            left=tuple(event["left"]),
            left_causes=tuple(event.get("left_causes", ())),
            absent=tuple(event.get("absent", ())),
            absent_count=event.get("absent_count", 0),
            assignment=_assignment(event.get("assignment")),
            group_type=event.get("group_type"),
            clients={
                member_id: MemberClient(client["client_id"], client["host"])
                for member_id, client in event.get("clients", {}).items()
            },
        )
        _check(row)
        return row
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise Damaged(f"{EVENTS_TOPIC}, offset {offset}: not an event of a group ({error!r})") from error


def _check(row: GroupEventRow) -> None:
    """Raise ValueError for values that no event has: other clients may write to the topic."""
    texts = [row.group, row.event, *(text for text in (row.cause, row.reason) if text is not None)]
    texts += [*row.joined, *row.left, *row.left_causes, *row.absent, *((row.group_type,) if row.group_type else ())]
    texts += [text for client in row.clients.values() for text in (client.client_id, client.host)]
    counts: list[int | None] = [row.generation, row.members, row.joined_count, row.left_count]
    counts += [row.commits_rejected, row.absent_count]
    counts += [count for count in (row.prepare_ms, row.complete_ms, row.partitions_moved) if count is not None]
    for owned in (row.assignment or {}).values():
        counts += [number for topic in owned for number in topic.partitions]
    if not all(isinstance(text, str) for text in texts):
        raise ValueError("a text has another type")
    if not all(type(count) is int and -1 <= count <= LARGEST for count in counts):
        raise ValueError("a number has another type, or is too large")
    if type(row.timestamp) is not int or not 0 <= row.timestamp <= LAST_MS:
        raise ValueError("the timestamp is invalid")


def _assignment(owned: dict[str, dict[str, list[int]]] | None) -> dict[str, tuple[TopicPartitions, ...]] | None:
    if owned is None:
        return None
    return {
        member: tuple(TopicPartitions(topic, tuple(partitions)) for topic, partitions in topics.items())
        for member, topics in owned.items()
    }
