"""The values of a condition's variables, from snapshots of a group and facts about its partitions. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from broker.light_dataclasses import dataclass, field
from kgctl.conditions.evaluation import Unknown, Value
from kgctl.conditions.variables import Reference
from kgctl.model.groups import SHARE, GroupDescription, PartitionLag
from kgctl.model.reconciliation import STABLE
from kgctl.model.topic_partition import TopicPartition
from kgctl.watch.lag import Sample
from kgctl.watch.overview import Behind
from kgctl.watch.progress import has_offsets
from kgctl.watch.rows import key_of
from kgctl.watch.tracker import generation_of, is_gone

DEAD = "Dead"
# The variables that need more than a description of the group.
NEEDS_TIMES = frozenset({"verdict", "time_lag"})
NEEDS_STORED_FACTS = frozenset({"verdict", "commit_age", "generation"})
NEEDS_TOPICS = frozenset({"unassigned"})
COUNTS_LAG = frozenset({"lag", "max_lag"})
OF_OFFSETS = COUNTS_LAG | NEEDS_TIMES


@dataclass(frozen=True, slots=True)
class Known:
    """The newest snapshot, and what else was read for it.

    `sizes` has the number of partitions of the topics that members subscribe to.
    """

    sample: Sample
    log_starts: Mapping[TopicPartition, int] = field(default_factory=dict)
    behind: Mapping[str, Behind] = field(default_factory=dict)
    sizes: Mapping[str, int] = field(default_factory=dict)


def is_absent(group: GroupDescription) -> bool:
    """Whether the group does not exist: old brokers say so with the state Dead."""
    return is_gone(group.error) or (group.error is None and group.state == DEAD)


def is_unused(group: GroupDescription) -> bool:
    """Whether the group has neither members nor offsets, as after all its offsets were deleted."""
    return group.error is None and not group.members and not group.partitions


def observe(name: str, wanted: Iterable[Reference], known: Known) -> dict[Reference, Value]:
    """The value of each variable."""
    group = known.sample.groups[name]
    if is_absent(group):
        absent: dict[str, Value] = {"state": DEAD, "members": 0}
        return {one: absent.get(one.name, Unknown("the group does not exist")) for one in wanted}
    if group.error is not None:
        return {one: Unknown(group.error.message.rstrip(".")) for one in wanted}
    return {one: _value(one, group, known) for one in wanted}


def uncommitted(group: GroupDescription) -> list[TopicPartition]:
    """The partitions with records of which the group has committed none."""
    return [key_of(row) for row in group.partitions if row.current_offset is None and row.log_end_offset]


def _value(reference: Reference, group: GroupDescription, known: Known) -> Value:
    match reference.name:
        case "state":
            return group.state or Unknown("the coordinator does not report it")
        case "type":
            return group.type or Unknown("the coordinator does not report it")
        case "members":
            return len(group.members)
        case "generation":
            found = generation_of(group)
            return Unknown("the cluster does not report it") if found is None else found
        case "group_epoch" | "assignment_epoch" | "reconciling":
            return _epochs(reference, group)
        case "commit_age":
            newest = group.last_commit_ms
            if newest is None:
                is_share = group.type == SHARE
                return Unknown(
                    "share groups commit nothing" if is_share else "the time of the newest commit is not known"
                )
            return max(0, known.sample.wall_ms - newest)
        case "verdict" | "time_lag":
            return _judged(reference, group, known)
    rows = [row for row in group.partitions if reference.topic in (None, row.topic)]
    if reference.name == "partitions":
        return len(rows)
    if reference.name == "unassigned":
        return _unassigned(reference, group, rows, known)
    if not has_offsets(group):
        return Unknown(
            "its start offsets are not known" if group.type == SHARE else f"groups of type {group.type} have no offsets"
        )
    if not rows:
        return Unknown(f"the group has no partitions{'' if reference.topic is None else f' of {reference.topic}'}")
    return _lag(rows, known, worst=reference.name == "max_lag", is_share=group.type == SHARE)


def _epochs(reference: Reference, group: GroupDescription) -> Value:
    if group.group_epoch is None or group.target_assignment_epoch is None:
        return Unknown(f"groups of type {group.type} have no epochs")
    if reference.name == "reconciling":
        phases = [member.phase for member in group.members]
        return Unknown("the coordinator does not report it") if None in phases else len(phases) - phases.count(STABLE)
    return group.group_epoch if reference.name == "group_epoch" else group.target_assignment_epoch


def _judged(reference: Reference, group: GroupDescription, known: Known) -> Value:
    behind = known.behind.get(group.group)
    if behind is None:
        return Unknown("the group has no partitions")
    if reference.name == "verdict":
        judgement = behind.judgement
        return Unknown(judgement.reason) if judgement.health is None else str(judgement.health)
    found = behind.lag.time_lag_ms
    return Unknown("the age of the oldest unread record is not known") if found is None else found


def _lag(rows: Sequence[PartitionLag], known: Known, *, worst: bool, is_share: bool) -> Value:
    each = []
    for row in rows:
        lag = row.lag
        if lag is None and row.current_offset is None and row.log_end_offset is not None:
            # Nothing to read, so nothing to commit.
            is_empty = row.log_end_offset == known.log_starts.get(key_of(row), 0)
            lag = 0 if is_empty else None
        if lag is None:
            place = f"{row.topic}-{row.partition}"
            is_uncommitted = row.current_offset is None and row.error is None
            none = "has no start offset" if is_share else "has no committed offset"
            cause = none if is_uncommitted else "has no known log end"
            return Unknown(f"{place} {cause}")
        each.append(max(lag, 0))
    return max(each) if worst else sum(each)


def _unassigned(reference: Reference, group: GroupDescription, rows: Collection[PartitionLag], known: Known) -> Value:
    if any(member.current_assignment is None for member in group.members):
        return Unknown("an assignment cannot be read")
    if group.members and group.subscribed is None:
        return Unknown("the members do not report their topics during a rebalance")
    topics = [topic for topic in group.subscribed or () if reference.topic in (None, topic)]
    for topic in topics:
        if topic not in known.sizes:
            return Unknown(f"the partitions of {topic} are not known")
    wanted = {TopicPartition(topic, number) for topic in topics for number in range(known.sizes[topic])}
    if not group.members:
        wanted = {key_of(row) for row in rows}
    owned = {key for member in group.members for key in member.owned()}
    return len(wanted - owned)
