"""How members leave: by a heartbeat, or because they fail to send one, or to give up partitions, in time."""

from __future__ import annotations

from collections.abc import Sequence

from broker.cores.groups.classic import rebalance
from broker.cores.groups.consumer.changes import note_left, report
from broker.cores.groups.consumer.conversion import existing
from broker.cores.groups.consumer.downgrade import downgrade, is_due
from broker.cores.groups.consumer.group import ConsumerGroup
from broker.cores.groups.consumer.member import LEFT_STATIC, ConsumerMember
from broker.cores.groups.consumer.statics import held_by, removal
from broker.cores.groups.counts import count
from broker.cores.groups.events import Cause
from broker.cores.groups.metadata_hash import metadata_hash
from broker.cores.groups.records import StateRecord
from broker.cores.groups.records.consumer import CurrentRecord, GroupEpochRecord, RegexRecord
from broker.cores.groups.refusals import Refused
from broker.cores.groups.step import Step
from broker.light_named_tuples import NamedTuple
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)


class Departure(NamedTuple):
    """A member that is removed, and why."""

    member: ConsumerMember
    cause: Cause
    reason: str = ""


def leave(step: Step, request: ConsumerGroupHeartbeatRequest) -> ConsumerGroupHeartbeatResponse:
    """Remove the member; a static one that is to come back (epoch -2) keeps its place until its session ends. Raises Refused."""
    group, member_id, instance_id = existing(step, request.group_id), request.member_id, request.instance_id
    if instance_id is None:
        found = group.members.get(member_id)
        if found is None:
            raise Refused(ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {group.group_id}.")
        remove(step, group, found, Cause.MEMBER_LEFT)
    else:
        member = held_by(group.static_member(instance_id), member_id, instance_id)
        if request.member_epoch == LEFT_STATIC:
            left = member.current._replace(member_epoch=LEFT_STATIC, pending_revocation={})
            step.persist(CurrentRecord(group.group_id, member_id, left, step.wall_ms))
        else:
            remove(step, group, member, Cause.MEMBER_LEFT)
    return ConsumerGroupHeartbeatResponse(member_id=member_id, member_epoch=request.member_epoch)


def on_session_timeout(step: Step, group_id: str, member_id: str) -> None:
    group = step.groups.get(group_id)
    if isinstance(group, ConsumerGroup) and member_id in group.members:
        remove(step, group, group.members[member_id], Cause.SESSION_TIMED_OUT)


def on_rebalance_timeout(step: Step, group_id: str, member_id: str) -> None:
    """The member had to give up partitions in this epoch, and has not confirmed that it did."""
    group = step.groups.get(group_id)
    if not isinstance(group, ConsumerGroup) or member_id not in group.members:
        return
    member = group.members[member_id]
    if group.revoking.pop(member_id, None) == member.current.member_epoch:
        remove(step, group, member, Cause.REBALANCE_TIMED_OUT)


def remove(step: Step, group: ConsumerGroup, member: ConsumerMember, cause: Cause) -> None:
    remove_all(step, group, [Departure(member, cause)])


def remove_all(step: Step, group: ConsumerGroup, departures: Sequence[Departure]) -> None:
    """Remove members. Their partitions are free; the next request of another member computes who gets them.

    If only classic members stay, the group becomes a classic one instead, and rebalances.
    """
    members = [departure.member for departure in departures]
    for member, cause, reason in departures:
        note_left(group, member, cause, reason)
    if is_due(step, group, members):
        rebalance.prepare(step, downgrade(step, group, {member.member_id for member in members}))
        return
    group_id, generation = group.group_id, group.generation
    hashed = metadata_hash(group.topics_with(None, *members), step.coordinator.topics)
    records: list[StateRecord] = []
    expressions: dict[str, int] = {}
    for member in members:
        records += removal(group_id, member.member_id, step.wall_ms)
        count(expressions, filter(None, (member.subscription.topic_regex,)), 1)
        group.cancel_timers_of(step, member.member_id)
    unused = [regex for regex, found in expressions.items() if group.expressions.get(regex) == found]
    records += [RegexRecord(group_id, regex, None, step.wall_ms) for regex in unused]
    records.append(GroupEpochRecord(group_id, generation + 1, hashed, step.wall_ms))
    group.seen = step.coordinator.topics.version, hashed
    for record in records:
        step.persist(record)
    report(step, group, generation)
