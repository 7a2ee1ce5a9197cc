"""Tables of groups, members, committed offsets, group events."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from broker.protocol.consumer_protocol import decode_assignment, decode_subscription
from broker.protocol.offsets_topic import GroupMetadataValue
from broker.protocol.wire_types import DecodeError
from kgctl.model.store import (
    StoreEvent,
    StoreGroup,
    StoreMember,
    StoreOffset,
    StorePendingOffset,
    StoreSharePartition,
)
from kgctl.store.newer_groups import NewerGroup
from kgctl.store.offline import Offline
from kgctl.store.times import iso


def groups(offline: Offline) -> Iterator[StoreGroup]:
    counts: dict[str, int] = {}
    lags: dict[str, int] = {}
    commits: dict[str, int] = {}
    for key, value in offline.committed:
        counts[key.group] = counts.get(key.group, 0) + 1
        end = offline.log_ends.get((key.topic, key.partition))
        lags[key.group] = lags.get(key.group, 0) + (0 if end is None else max(0, end - value.offset))
        commits[key.group] = max(commits.get(key.group, -1), value.commit_timestamp)
    for shared in share_partitions(offline):
        lags[shared.group] = lags.get(shared.group, 0) + (shared.lag or 0)
    for group in sorted({*counts, *offline.groups, *offline.newer_groups}):
        stored, newer = offline.groups.get(group), offline.newer_groups.get(group)
        found = newer if newer is not None else stored
        yield StoreGroup(
            group,
            newer.type if newer is not None else "Classic",
            "Stable" if found is not None and found.members else "Empty",
            len(found.members) if found is not None else 0,
            counts.get(group, 0),
            lags.get(group, 0),
            iso(commits.get(group)),
            newer.epoch if newer is not None else stored.generation if stored is not None else None,
            stored.protocol_type or None if stored is not None else None,
            stored.protocol if stored is not None else None,
            stored.leader if stored is not None else None,
        )


def members(offline: Offline) -> Iterator[StoreMember]:
    for group in sorted({*offline.groups, *offline.newer_groups}):
        newer = offline.newer_groups.get(group)
        yield from _classic(group, offline.groups[group]) if newer is None else _newer(group, newer, offline)


def _classic(group: str, stored: GroupMetadataValue) -> Iterator[StoreMember]:
    for member in stored.members:
        yield StoreMember(
            group,
            member.member_id,
            member.group_instance_id,
            member.client_id,
            member.client_host,
            member.session_timeout,
            member.rebalance_timeout,
            _subscription(stored.protocol_type, member.subscription),
            _assignment(stored.protocol_type, member.assignment),
        )


def _newer(group: str, stored: NewerGroup, offline: Offline) -> Iterator[StoreMember]:
    """Of members of share groups no timeouts are stored, of those of consumer groups only one of them."""
    for member_id, member in sorted(stored.members.items()):
        topics, pattern = member.subscribed_topic_names, getattr(member, "subscribed_topic_regex", None)
        assigned = stored.assigned.get(member_id)
        rows = assigned.assigned_partitions if assigned is not None else ()
        yield StoreMember(
            group,
            member_id,
            getattr(member, "instance_id", None),
            member.client_id,
            member.client_host,
            None,
            getattr(member, "rebalance_timeout_ms", None),
            (*sorted(topics), *((pattern,) if pattern else ())),
            spelled((offline.topic_names.get(row.topic_id, row.topic_id.hex()), row.partitions) for row in rows),
        )


def _subscription(protocol_type: str, blob: bytes) -> tuple[str, ...]:
    if protocol_type != "consumer" or not blob:
        return ()
    try:
        return tuple(sorted(decode_subscription(blob).topics))
    except DecodeError:
        return ()


def _assignment(protocol_type: str, blob: bytes) -> tuple[str, ...]:
    if protocol_type != "consumer" or not blob:
        return ()
    try:
        return spelled((one.topic, one.partitions) for one in decode_assignment(blob).assigned_partitions)
    except DecodeError:
        return ()


def spelled(partitions: Iterable[tuple[str, Iterable[int]]]) -> tuple[str, ...]:
    return tuple(f"{topic}:{','.join(map(str, sorted(indexes)))}" for topic, indexes in sorted(partitions))


def offsets(offline: Offline) -> Iterator[StoreOffset]:
    rows = sorted(offline.committed, key=lambda row: row[0])
    for key, value in rows:
        end = offline.log_ends.get((key.topic, key.partition))
        yield StoreOffset(
            key.group,
            key.topic,
            key.partition,
            value.offset,
            end,
            None if end is None else max(0, end - value.offset),
            iso(value.commit_timestamp),
            value.leader_epoch if value.leader_epoch >= 0 else None,
            value.metadata,
        )


def share_partitions(offline: Offline) -> Iterator[StoreSharePartition]:
    rows = [
        (key.group_id, offline.topic_names.get(key.topic_id, key.topic_id.hex()), key.partition, share)
        for key, share in offline.share_partitions.items()
    ]
    for group, topic, partition, share in sorted(rows):
        start = share.start_offset if share.start_offset >= 0 else None
        end = offline.log_ends.get((topic, partition))
        yield StoreSharePartition(
            group,
            topic,
            partition,
            start,
            end,
            None if end is None or start is None else max(0, end - start),
            share.state_epoch,
        )


def pending_offsets(offline: Offline) -> Iterator[StorePendingOffset]:
    for one in offline.directory.pending_offsets():
        yield StorePendingOffset(
            one.group_id,
            one.topic,
            one.partition,
            one.offset,
            one.producer_id,
            one.producer_epoch,
            iso(one.commit_timestamp_ms),
            one.superseded,
        )


def events(offline: Offline) -> Iterator[StoreEvent]:
    for _, row in offline.directory.rows_by_offset("__kgctl_group_events"):
        text = (row.value or b"{}").decode()
        event = json.loads(text)
        yield StoreEvent(
            row.offset,
            iso(row.timestamp_ms),
            row.key.decode(),
            str(event.get("event")),
            event.get("cause"),
            event.get("generation"),
            event.get("members"),
            text,
        )
