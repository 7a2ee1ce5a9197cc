"""Moves committed offsets of a group: a plan with the new offset of each partition, and its execution with a read-back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from broker.protocol.errors import ErrorCode
from broker.protocol.messages.metadata import MetadataRequest
from kgctl.client.admin.groups import describe_groups
from kgctl.client.admin.offsets import EARLIEST, LATEST, OffsetAt, commit, committed, list_offsets
from kgctl.client.net.authorization import Asked
from kgctl.client.net.cluster import Cluster
from kgctl.client.net.errors import BrokerError, KgctlError, NotFound, Precondition, from_row
from kgctl.client.net.steps import Steps
from kgctl.model.changes import DONE, FAILED, SKIPPED, ResetPlan, ResetRow
from kgctl.model.failure import RowError
from kgctl.model.groups import CLASSIC, CONSUMER, EMPTY_STATES, Committed, GroupDescription
from kgctl.model.topic_partition import TopicPartition

Kind: TypeAlias = Literal["earliest", "latest", "current", "offset", "shift", "timestamp", "file"]


@dataclass(frozen=True, slots=True)
class Target:
    """Where to move offsets: `number` is the offset, the shift, or the timestamp in ms; `offsets` are those of a file."""

    kind: Kind
    number: int = 0
    offsets: Mapping[TopicPartition, int] | None = None


@dataclass(frozen=True, slots=True)
class Scope:
    """Which partitions: topics, each with its partitions or None for all; or all with a committed offset.

    Not used with a file of offsets, which names its partitions.
    """

    topics: tuple[tuple[str, tuple[int, ...] | None], ...] = ()
    all_topics: bool = False


def plan_reset(
    cluster: Cluster, group: str, scope: Scope, target: Target, *, allow_active: bool = False
) -> Steps[ResetPlan]:
    """The new offset of each partition, clamped to the log unless it is the committed one.

    Raises Precondition if the group has members, unless `allow_active`. As with Kafka's tool, the group need not exist:
    the commit creates it.
    """
    (described,) = yield from describe_groups(cluster, [group], offsets=False)
    state = described.state
    if described.error:
        if described.error.name != NotFound.name:
            raise from_row(described.error)
        state = None
    elif described.type not in (CLASSIC, CONSUMER):
        raise Precondition(f"Offsets of group '{group}' cannot be reset: it is of type {described.type}.")
    elif state not in EMPTY_STATES and not allow_active:
        raise _not_inactive(group, described)
    known = yield from committed(cluster, [group])
    commits = known[group]
    if isinstance(commits, KgctlError):
        raise commits
    partitions, errors = yield from _in_scope(cluster, scope, target, commits)
    if not partitions and not errors:
        raise NotFound(f"Group '{group}' has no committed offsets; name the topics to reset.")
    rows = yield from _targets(cluster, group, partitions, target, commits)
    rows += [
        ResetRow(group, topic, number, None, None, None, status=FAILED, error=error)
        for (topic, number), error in errors.items()
    ]
    rows.sort(key=lambda row: (row.topic, -1 if row.partition is None else row.partition))
    return ResetPlan(group, state, tuple(rows))


def apply_reset(cluster: Cluster, plan: ResetPlan) -> Steps[ResetPlan]:
    """Commit the offsets of the plan and read them back. If a row of the plan failed, the others are skipped.

    Raises Precondition if the group got members since the plan was made: the coordinator then refuses the commit.
    """
    if plan.failed:
        rows = (row if row.error else replace(row, status=SKIPPED) for row in plan.rows)
        return replace(plan, rows=tuple(rows))
    offsets = {
        TopicPartition(row.topic, row.partition): row.new_offset
        for row in plan.rows
        if row.partition is not None and row.new_offset is not None
    }
    errors = yield from commit(cluster, plan.group, offsets)
    if any(isinstance(error, BrokerError) and error.code == ErrorCode.UNKNOWN_MEMBER_ID for error in errors.values()):
        (described,) = yield from describe_groups(cluster, [plan.group], offsets=False)
        raise _not_inactive(plan.group, described)
    found = yield from committed(cluster, [plan.group])
    now = found[plan.group]
    keyed = ((row, TopicPartition(row.topic, row.partition)) for row in plan.rows if row.partition is not None)
    return replace(plan, rows=tuple(_applied(row, key, errors[key], now) for row, key in keyed))


def _not_inactive(group: str, described: GroupDescription) -> Precondition:
    # Kafka can remove members of classic groups only.
    removal = ", or remove them with `kgctl groups remove-members`" if described.type == CLASSIC else ""
    return Precondition(
        f"Assignments can only be reset if the group '{group}' is inactive, but the current state is "
        f"{described.state}. Stop its consumers{removal}."
    )


def _in_scope(
    cluster: Cluster, scope: Scope, target: Target, commits: Mapping[TopicPartition, Committed]
) -> Steps[tuple[list[TopicPartition], dict[tuple[str, int | None], RowError]]]:
    """The partitions to move, and an error for each that is named and does not exist."""
    if target.offsets is not None:
        return sorted(target.offsets), {}
    wanted = set(commits) if scope.all_topics else set()
    errors: dict[tuple[str, int | None], RowError] = {}
    if scope.topics:
        answer = yield from cluster.metadata([topic for topic, _ in scope.topics])
        existing = {topic.name: {row.partition_index for row in topic.partitions} for topic in answer.topics}
        codes = {topic.name: topic.error_code for topic in answer.topics}
        for topic, numbers in scope.topics:
            if codes.get(topic):
                errors[topic, None] = BrokerError(
                    codes[topic], f"topic {topic!r}", asked=Asked(MetadataRequest, topic=topic)
                ).as_row()
                continue
            for number in existing[topic] if numbers is None else numbers:
                if number in existing[topic]:
                    wanted.add(TopicPartition(topic, number))
                else:
                    errors[topic, number] = BrokerError(
                        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{topic}-{number}"
                    ).as_row()
    return sorted(wanted), errors


def _targets(
    cluster: Cluster,
    group: str,
    partitions: list[TopicPartition],
    target: Target,
    commits: Mapping[TopicPartition, Committed],
) -> Steps[list[ResetRow]]:
    starts = yield from list_offsets(cluster, dict.fromkeys(partitions, EARLIEST))
    ends = yield from list_offsets(cluster, dict.fromkeys(partitions, LATEST))
    at_time: Mapping[TopicPartition, OffsetAt | KgctlError] = {}
    if target.kind == "timestamp":
        at_time = yield from list_offsets(cluster, dict.fromkeys(partitions, target.number))
    rows = []
    for key in partitions:
        old = commits[key].offset if key in commits else None
        start, end = starts[key], ends[key]
        failed = next((found for found in (start, end, at_time.get(key)) if isinstance(found, KgctlError)), None)
        row = ResetRow(group, key.topic, key.partition, old, None, None)
        if target.kind == "current" and old is not None:
            rows.append(replace(row, new_offset=old, delta=0, note=_outside_note(old, start, end)))
            continue
        if isinstance(start, KgctlError) or isinstance(end, KgctlError) or failed:
            assert failed is not None
            rows.append(replace(row, status=FAILED, error=failed.as_row()))
            continue
        wanted, note = _wanted(key, target, old, start.offset, end.offset, at_time.get(key))
        if wanted is None:
            about = f"Cannot shift offset for partition {key} since there is no current committed offset"
            rows.append(replace(row, status=FAILED, error=RowError("NO_COMMITTED_OFFSET", about)))
            continue
        new = min(max(wanted, start.offset), end.offset)
        if new != wanted:
            note = f"{wanted} is {'after the end' if new < wanted else 'before the start'} of the log: clamped"
        rows.append(replace(row, new_offset=new, delta=None if old is None else new - old, note=note))
    return rows


def _wanted(
    key: TopicPartition, target: Target, old: int | None, start: int, end: int, at_time: OffsetAt | KgctlError | None
) -> tuple[int | None, str | None]:
    """The requested offset and a note about it; None where there is no committed offset to shift from."""
    if target.kind == "earliest":
        return start, None
    if target.kind == "latest":
        return end, None
    if target.kind == "current":
        return end, "nothing committed: latest"
    if target.kind == "shift":
        return None if old is None else old + target.number, None
    if target.kind == "timestamp":
        found = at_time.offset if isinstance(at_time, OffsetAt) else -1
        return (end, "no record at or after that time: latest") if found < 0 else (found, None)
    return (target.number if target.offsets is None else target.offsets[key]), None


def _outside_note(offset: int, start: OffsetAt | KgctlError, end: OffsetAt | KgctlError) -> str | None:
    """A committed offset stays as it is, as with Kafka's tool, also where the log does not have it."""
    if isinstance(start, OffsetAt) and offset < start.offset:
        return f"{offset} is before the start of the log: kept"
    if isinstance(end, OffsetAt) and offset > end.offset:
        return f"{offset} is after the end of the log: kept"
    return None


def _applied(
    row: ResetRow, key: TopicPartition, error: KgctlError | None, now: Mapping[TopicPartition, Committed] | KgctlError
) -> ResetRow:
    if error:
        return replace(row, status=FAILED, error=error.as_row())
    if isinstance(now, KgctlError):
        return replace(row, status=FAILED, error=now.as_row())
    found = now.get(key)
    if found is None or found.offset != row.new_offset:
        seen = "nothing" if found is None else found.offset
        about = f"{row.topic}-{row.partition}: committed {row.new_offset}, but read back {seen}: another client commits"
        return replace(row, status=FAILED, error=RowError("READ_BACK_DIFFERS", about))
    return replace(row, status=DONE)
