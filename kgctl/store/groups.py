"""Tables of groups, members, committed offsets, group events."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from broker.protocol.consumer_protocol import decode_assignment, decode_subscription
from broker.protocol.wire_types import DecodeError
from kgctl.model.store import StoreEvent, StoreGroup, StoreMember, StoreOffset, StorePendingOffset
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
    for group in sorted({*counts, *offline.groups}):
        stored = offline.groups.get(group)
        yield StoreGroup(
            group,
            "Stable" if stored is not None and stored.members else "Empty",
            len(stored.members) if stored is not None else 0,
            counts.get(group, 0),
            lags.get(group, 0),
            iso(commits.get(group)),
            stored.generation if stored is not None else None,
            stored.protocol_type or None if stored is not None else None,
            stored.protocol if stored is not None else None,
            stored.leader if stored is not None else None,
        )


def members(offline: Offline) -> Iterator[StoreMember]:
    for group, stored in sorted(offline.groups.items()):
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
