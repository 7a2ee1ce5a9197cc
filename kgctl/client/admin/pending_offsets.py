"""Which offsets of groups are pending in open transactions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from broker.light_dataclasses import replace
from broker.protocol.errors import ErrorCode
from kgctl.client.admin.group_metadata import GroupFacts, partitions_of
from kgctl.client.admin.offsets import stable
from kgctl.client.admin.producers import describe_producers, known_ids
from kgctl.client.net.cluster import Cluster
from kgctl.client.net.errors import KgctlError
from kgctl.client.net.steps import Steps
from kgctl.model.groups import CLASSIC, CONSUMER, GroupDescription, PendingOffsets
from kgctl.model.topic_partition import TopicPartition

# Other brokers are asked once per group.
MOST_GROUPS = 50
UNSTABLE = ErrorCode.UNSTABLE_OFFSET_COMMIT.name


def with_pending(cluster: Cluster, groups: Sequence[GroupDescription]) -> Steps[list[GroupDescription]]:
    """The groups with their pending offsets, and the transactional ids as far as the principal may know them.

    kgctl's broker has reported them already. Others answer UNSTABLE_OFFSET_COMMIT for a partition that the group shows.
    """
    silent = [
        group
        for group in groups
        if not group.error and not group.pending and not group.committed_at and group.type in (CLASSIC, CONSUMER)
    ]
    found: dict[str, tuple[PendingOffsets, ...]] = {}
    for group in silent[:MOST_GROUPS]:
        partitions = [
            TopicPartition(row.topic, row.partition)
            for row in group.partitions
            if row.topic is not None and row.partition is not None
        ]
        commits = (yield from stable(cluster, group.group, partitions)) if partitions else {}
        if isinstance(commits, KgctlError):
            continue
        unstable = [key for key, commit in commits.items() if commit.error and commit.error.name == UNSTABLE]
        if unstable:
            producer_id = yield from _only_producer(cluster, group)
            found[group.group] = _by_topic(unstable, producer_id)
    groups = [replace(group, pending=found[group.group]) if group.group in found else group for group in groups]
    ids = {row.producer_id for group in groups for row in group.pending if row.producer_id is not None}
    names = yield from known_ids(cluster, ids)
    return [_named(group, names) if group.pending else group for group in groups]


def _only_producer(cluster: Cluster, group: GroupDescription) -> Steps[int | None]:
    """The producer with an open transaction in the partition that holds the group; None if there are several."""
    place = next(iter((yield from partitions_of(cluster, [group], GroupFacts()))), None)
    if place is None:
        return None
    producers = (yield from describe_producers(cluster, [place]))[place]
    if isinstance(producers, KgctlError):
        return None
    open_ones = [row for row in producers if row.start_offset is not None]
    return open_ones[0].producer_id if len(open_ones) == 1 else None


def _by_topic(partitions: Iterable[TopicPartition], producer_id: int | None) -> tuple[PendingOffsets, ...]:
    numbers: dict[str, list[int]] = {}
    for key in sorted(partitions):
        numbers.setdefault(key.topic, []).append(key.partition)
    return tuple(PendingOffsets(topic, tuple(some), producer_id) for topic, some in numbers.items())


def _named(group: GroupDescription, names: dict[int, str]) -> GroupDescription:
    rows = (
        row if row.producer_id is None else replace(row, transactional_id=names.get(row.producer_id))
        for row in group.pending
    )
    return replace(group, pending=tuple(rows))
