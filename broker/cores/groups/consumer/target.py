"""The target assignment: the assignor computes it for all members, and what differs from the present one is stored."""

from __future__ import annotations

from broker.cores.groups.assignors.interface import PartitionAssignorError, load_assignor
from broker.cores.groups.assignors.java_order import timeline_order
from broker.cores.groups.consumer.group import NO_TARGET, ConsumerGroup
from broker.cores.groups.consumer.member import ConsumerMember
from broker.cores.groups.records import StateRecord
from broker.cores.groups.records.consumer import Target, TargetEpochRecord, TargetRecord
from broker.cores.groups.refusals import Refused
from broker.cores.groups.step import Step
from broker.cores.groups.targets import TopicsOfAssignors, is_same
from broker.protocol.errors import ErrorCode


def new_target(
    step: Step,
    group: ConsumerGroup,
    epoch: int,
    member: ConsumerMember,
    updated: ConsumerMember,
    *,
    is_homogeneous: bool,
    records: list[StateRecord],
) -> Target:
    """The target of `updated`, which takes the place of `member`, in this epoch; adds the records of all that changes.

    Raises Refused if the assignor fails.
    """
    holder = group.static_member(updated.subscription.instance_id)
    # A static member may have come back with another id.
    replaced = None if holder is None or holder.member_id == updated.member_id else holder.member_id
    target = group.targets.get(replaced or updated.member_id, NO_TARGET)
    assignor = load_assignor(next_assignor(group, member, updated, step.coordinator.settings.group_consumer_assignors))
    topics = step.coordinator.topics
    specs = group.roster.specs(
        group.members, group.targets, group.regexes, topics, updated=(updated, target), replaced=replaced
    )
    try:
        assigned = assignor.assign(specs, is_homogeneous, TopicsOfAssignors(topics))
    except PartitionAssignorError as error:
        message = f"Failed to compute a new target assignment for epoch {epoch}: {error}"
        raise Refused(ErrorCode.UNKNOWN_SERVER_ERROR, message) from None
    for member_id, target in assigned.items():
        stored = group.targets.get(member_id)
        if target is not stored and (stored is None or not is_same(target, stored)):
            records.append(TargetRecord(group.group_id, member_id, target, step.wall_ms))
    records.append(TargetEpochRecord(group.group_id, epoch, step.wall_ms))
    return assigned[updated.member_id]


def next_assignor(
    group: ConsumerGroup, member: ConsumerMember, updated: ConsumerMember, configured: tuple[str, ...]
) -> str:
    """The one of the next target: what most members ask for once `updated` takes the place of `member`, or else the first configured one."""
    votes = _votes(group)
    before, asked = member.subscription.server_assignor, updated.subscription.server_assignor
    if before is not None and before in votes:
        votes[before] -= 1
        if not votes[before]:
            del votes[before]
    if asked:
        # As in Kafka's map, the first vote for an assignor puts it before the others.
        votes = votes | {asked: votes[asked] + 1} if asked in votes else {asked: 1, **votes}
    return _most_voted(votes, configured)


def assignor_of(group: ConsumerGroup, configured: tuple[str, ...]) -> str:
    """The assignor that most members ask for, or else the first of group.consumer.assignors."""
    return _most_voted(_votes(group), configured)


def _votes(group: ConsumerGroup) -> dict[str, int]:
    return {name: group.assignors[name] for name in timeline_order(group.assignors)}


def _most_voted(votes: dict[str, int], configured: tuple[str, ...]) -> str:
    """If votes tie, the assignor that comes first in them."""
    return max(votes, key=votes.__getitem__, default=configured[0])
