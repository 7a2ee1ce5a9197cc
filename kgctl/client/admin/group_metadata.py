"""What `__consumer_offsets` says about groups and no request reports: generation, leader, timeouts, times of commits, and
which partitions members of consumer groups (KIP-848) must give up, and since when.

The topic is read backwards in windows of offsets, because the newest record of a key is the one that counts: what a later
window has, an earlier one cannot change. A window counts only as a whole. All facts are compared with what the coordinator
answers; what differs is not known.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from broker.light_dataclasses import dataclass, field, replace
from broker.light_named_tuples import NamedTuple
from broker.protocol.messages.fetch import FetchRequest
from broker.protocol.newer_group_records import (
    CURRENT_ASSIGNMENT,
    TARGET_ASSIGNMENT,
    CurrentAssignment,
    GroupKey,
    MemberKey,
    TargetAssignment,
    TopicPartitions,
    decode_newer_key,
    decode_newer_value,
    encode_newer_key,
)
from broker.protocol.offsets_topic import (
    TOPIC,
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    decode_group_value,
    decode_key,
    decode_offset_value,
    partition_for,
)
from broker.protocol.wire_types import DecodeError
from kgctl.client.admin.log_reads import LogReads
from kgctl.client.admin.offsets import EARLIEST, LATEST, OffsetAt, list_offsets
from kgctl.client.consumer.fetching.options import FetchOptions
from kgctl.client.net.authorization import Asked
from kgctl.client.net.cluster import Cluster
from kgctl.client.net.errors import BrokerError, KgctlError
from kgctl.client.net.steps import Steps
from kgctl.model.groups import CLASSIC, CONSUMER, REBALANCING, GroupDescription, MemberRow
from kgctl.model.reconciliation import AWAY, RECONCILING, reconciled
from kgctl.model.topic_partition import TopicPartition

FETCH = FetchOptions(max_wait_ms=0, min_bytes=0, max_bytes=16 << 20, committed_only=True)
# Offsets in the first window of a partition, and how much longer each window is than the one after it.
WINDOW, GROWTH = 20_000, 4
# Partitions read at the same time: when the time is over, the others are complete.
AT_ONCE = 10


class CurrentKey(NamedTuple):
    """The key of the current assignment of a member of a consumer group."""

    group: str
    member_id: str


class TargetKey(NamedTuple):
    """The key of the record that completes the targets of a consumer group."""

    group: str


Key: TypeAlias = "OffsetCommitKey | GroupMetadataKey | CurrentKey | TargetKey"


@dataclass(slots=True)
class GroupFacts:
    """What has been read so far; `has_read`: from the topic. `missing` says why facts are not known; None if everything was read."""

    commits: dict[OffsetCommitKey, tuple[int, int]] = field(default_factory=dict)
    metadata: dict[str, GroupMetadataValue] = field(default_factory=dict)
    current: dict[CurrentKey, CurrentAssignment] = field(default_factory=dict)
    # The epoch of the targets, and when they were stored, ms since 1970.
    targets: dict[str, tuple[int, int]] = field(default_factory=dict)
    topic_names: dict[bytes, str] = field(default_factory=dict)
    offsets_partitions: dict[str, int] = field(default_factory=dict)
    has_read: bool = False
    missing: str | None = None


@dataclass(slots=True)
class _Wanted:
    """The keys to find in one partition, and how far it has been read backwards: `end` is where the next window ends."""

    keys: set[Key]
    start: int
    end: int
    window: int


def read_facts(cluster: Cluster, groups: Sequence[GroupDescription], facts: GroupFacts, most_bytes: int) -> Steps[None]:
    """Fill in `facts`, until everything is known or `most_bytes` have been read."""
    asked = [group for group in groups if not group.error and group.type in (CLASSIC, CONSUMER)]
    if not asked:
        return
    by_partition = yield from partitions_of(cluster, asked, facts)
    wanted = {partition: keys for partition, some in by_partition.items() if (keys := _keys_of(some))}
    if not wanted:
        return
    facts.has_read = True
    yield from _learn_topics(cluster, asked, facts)
    places = sorted(wanted)
    starts = yield from list_offsets(cluster, dict.fromkeys(places, EARLIEST))
    # In this order: a commit that arrives in between is no open transaction.
    ends = yield from list_offsets(cluster, dict.fromkeys(places, LATEST))
    stables = yield from list_offsets(cluster, dict.fromkeys(places, LATEST), committed_only=True)
    plans: dict[TopicPartition, _Wanted] = {}
    for place in places:
        start, stable, end = starts[place], stables[place], ends[place]
        if isinstance(start, OffsetAt) and isinstance(stable, OffsetAt) and isinstance(end, OffsetAt):
            keys = wanted[place]
            if stable.offset < end.offset:
                # Behind an open transaction, there may be newer metadata. Commits are compared with the coordinator's.
                keys = {key for key in keys if isinstance(key, OffsetCommitKey)}
            plans[place] = _Wanted(keys, start.offset, stable.offset, WINDOW)
        else:
            facts.missing = str(next(one for one in (start, stable, end) if isinstance(one, KgctlError)))
    left_bytes = most_bytes
    pending = list(plans)
    while pending:
        some = pending[:AT_ONCE]
        left_bytes = yield from _read_windows(cluster, {place: plans[place] for place in some}, facts, left_bytes)
        if left_bytes <= 0:
            facts.missing = f"{TOPIC} has more than {most_bytes >> 20} MiB to read"
            return
        # Those with older windows come after the first windows of all partitions.
        pending = pending[AT_ONCE:] + [
            place for place in some if plans[place].keys and plans[place].end > plans[place].start
        ]


def with_facts(group: GroupDescription, facts: GroupFacts) -> GroupDescription:
    """The group with the facts that agree with what the coordinator answered."""
    group = replace(group, offsets_partition=facts.offsets_partitions.get(group.group))
    if facts.current:
        group = reconciled(group, _pending(group, facts))
    if group.group in facts.targets:
        group = replace(group, state_since_ms=_reconciling_since(group, *facts.targets[group.group]))
    if group.error or group.committed_at or group.generation is not None:
        return group
    times = {}
    for row in group.partitions:
        if row.topic is not None and row.partition is not None and row.current_offset is not None:
            found = facts.commits.get(OffsetCommitKey(group.group, row.topic, row.partition))
            if found is not None and found[0] == row.current_offset:
                times[TopicPartition(row.topic, row.partition)] = found[1]
    group = replace(group, committed_at=times)
    value = facts.metadata.get(group.group)
    if value is None or group.type != CLASSIC or group.state in REBALANCING:
        return group
    stored = {member.member_id: member for member in value.members}
    if stored.keys() != {member.consumer_id for member in group.members}:
        return group
    members = tuple(
        replace(
            member,
            generation=value.generation,
            leader=member.consumer_id == value.leader,
            session_timeout_ms=stored[member.consumer_id or ""].session_timeout,
            rebalance_timeout_ms=stored[member.consumer_id or ""].rebalance_timeout,
        )
        for member in group.members
    )
    # A group with members is written before it is Stable, so the time is not that of its state.
    since_ms = value.current_state_timestamp if not members and value.current_state_timestamp >= 0 else None
    return replace(group, generation=value.generation, leader=value.leader, members=members, state_since_ms=since_ms)


def partitions_of(
    cluster: Cluster, groups: Iterable[GroupDescription], facts: GroupFacts
) -> Steps[dict[TopicPartition, list[GroupDescription]]]:
    """The groups by the partition that holds them, by Kafka's hash. Its leader must be the coordinator of the group."""
    answer = yield from cluster.metadata([TOPIC])
    topic = answer.topics[0]
    if topic.error_code:
        facts.missing = str(BrokerError(topic.error_code, TOPIC, asked=Asked(FetchRequest, topic=TOPIC)))
        return {}
    leaders = {row.partition_index: row.leader_id for row in topic.partitions}
    found: dict[TopicPartition, list[GroupDescription]] = {}
    for group in groups:
        number = partition_for(group.group, len(leaders))
        if leaders.get(number) == group.coordinator_id:
            facts.offsets_partitions[group.group] = number
            found.setdefault(TopicPartition(TOPIC, number), []).append(group)
        else:
            facts.missing = f"the partition of {TOPIC} that holds group {group.group!r} is not known"
    return found


def _keys_of(groups: Iterable[GroupDescription]) -> set[Key]:
    keys: set[Key] = set()
    for group in groups:
        if _is_reconciling(group):
            keys.add(TargetKey(group.group))
        keys |= {CurrentKey(group.group, member.consumer_id or "") for member in group.members if _is_unclear(member)}
        if group.committed_at or group.generation is not None:
            continue  # the coordinator itself reports what it knows
        if group.type == CLASSIC and group.protocol_type and group.state not in REBALANCING:
            keys.add(GroupMetadataKey(group.group))
        for row in group.partitions:
            if row.topic is not None and row.partition is not None and row.current_offset is not None:
                keys.add(OffsetCommitKey(group.group, row.topic, row.partition))
    return keys


def _read_windows(
    cluster: Cluster, plans: Mapping[TopicPartition, _Wanted], facts: GroupFacts, left_bytes: int
) -> Steps[int]:
    """Read the next window of each partition, and take what it has; the bytes that are left, 0 if a window was not completed."""
    begins = {place: max(plan.start, plan.end - plan.window) for place, plan in plans.items()}
    newest: dict[Key, tuple[bytes | None, int]] = {}
    reads = LogReads(cluster, FETCH, begins, {place: plan.end for place, plan in plans.items()})
    while not reads.all_finished:
        try:
            arrived = yield from reads.fetch()
        except KgctlError as error:
            facts.missing = str(error)
            raise
        for fetched in arrived:
            left_bytes -= len(fetched.raw)
            keys = plans[fetched.partition].keys
            for batch in fetched.batches():
                for record in batch.records:
                    key = _key(record.key)
                    if key in keys:
                        newest[key] = record.value, record.timestamp
        if left_bytes <= 0:
            return 0
        for place in list(reads.out_of_range):
            reads.remove(place)
            facts.missing = f"{place} was cut while it was read"
    for place, plan in plans.items():
        if place in reads.positions:
            for key in plan.keys & newest.keys():
                _take(key, *newest[key], facts)
            plan.keys -= newest.keys()
            plan.end, plan.window = begins[place], plan.window * GROWTH
        else:
            plan.keys.clear()
    return left_bytes


def _is_reconciling(group: GroupDescription) -> bool:
    return group.type == CONSUMER and group.state == RECONCILING.capitalize() and group.state_since_ms is None


def _reconciling_since(group: GroupDescription, epoch: int, stored_ms: int) -> int | None:
    """Since when a group reconciles, at the latest: since its targets were stored. A static member that left may have ended
    an earlier reconciliation to the same targets."""
    is_certain = epoch == group.target_assignment_epoch and all(member.phase != AWAY for member in group.members)
    return stored_ms if is_certain else None


def _is_unclear(member: MemberRow) -> bool:
    """Whether only the stored assignment says what the member must give up."""
    return member.phase == RECONCILING


def _pending(group: GroupDescription, facts: GroupFacts) -> dict[str, list[TopicPartition]]:
    """What the members must give up, where the stored assignment is that of the description."""
    found = {}
    for member in group.members:
        stored = facts.current.get(CurrentKey(group.group, member.consumer_id or ""))
        if stored is None or stored.member_epoch != member.current_epoch:
            continue
        if set(_named(stored.assigned_partitions, facts)) == set(member.owned()):
            found[member.consumer_id or ""] = _named(stored.partitions_pending_revocation, facts)
    return found


def _named(topics: Iterable[TopicPartitions], facts: GroupFacts) -> list[TopicPartition]:
    """Without partitions of topics that have been deleted."""
    return [
        TopicPartition(name, number)
        for topic in topics
        if (name := facts.topic_names.get(topic.topic_id)) is not None
        for number in topic.partitions
    ]


def _learn_topics(cluster: Cluster, groups: Iterable[GroupDescription], facts: GroupFacts) -> Steps[None]:
    """The ids of the topics that unclear members may own."""
    unclear = [group for group in groups if any(map(_is_unclear, group.members))]
    names = {topic for group in unclear for topic in group.subscribed or ()}
    names |= {entry.topic for group in unclear for member in group.members for entry in member.target_assignment or ()}
    if names:
        answer = yield from cluster.metadata(sorted(names))
        facts.topic_names |= {row.topic_id: row.name for row in answer.topics if row.name and not row.error_code}


def _key(data: bytes | None) -> Key | None:
    try:
        if data is None:
            return None
        if int.from_bytes(data[:2], "big") not in (CURRENT_ASSIGNMENT, TARGET_ASSIGNMENT):
            return decode_key(bytes(data))
        found = decode_newer_key(bytes(data))
    except DecodeError:
        return None
    key = None if found is None else found[1]
    if isinstance(key, GroupKey):
        return TargetKey(key.group)
    return CurrentKey(key.group, key.member_id) if isinstance(key, MemberKey) else None


def _take(key: Key, data: bytes | None, timestamp: int, facts: GroupFacts) -> None:
    """Take the newest value of a key; a tombstone has none."""
    if data is None:
        return
    try:
        if isinstance(key, OffsetCommitKey):
            commit = decode_offset_value(bytes(data))
            facts.commits[key] = (commit.offset, commit.commit_timestamp)
        elif isinstance(key, TargetKey):
            target = decode_newer_value(encode_newer_key(TARGET_ASSIGNMENT, *key), bytes(data))
            if isinstance(target, TargetAssignment):
                facts.targets[key.group] = target.assignment_epoch, timestamp
        elif isinstance(key, CurrentKey):
            found = decode_newer_value(encode_newer_key(CURRENT_ASSIGNMENT, *key), bytes(data))
            if isinstance(found, CurrentAssignment):
                facts.current[key] = found
        else:
            facts.metadata[key.group] = decode_group_value(bytes(data))
    except DecodeError:
        return
