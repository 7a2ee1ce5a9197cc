"""Static members of consumer groups: a client that has left for a while takes up its place under another member id."""

from __future__ import annotations

from broker.cores.groups.consumer.group import NO_TARGET, ConsumerGroup
from broker.cores.groups.consumer.member import LEFT_STATIC, ConsumerMember, new_member
from broker.cores.groups.records import StateRecord
from broker.cores.groups.records.consumer import CurrentRecord, MemberRecord, TargetRecord
from broker.cores.groups.refusals import Refused
from broker.cores.groups.step import Step
from broker.protocol.errors import ErrorCode


def find(
    step: Step,
    group: ConsumerGroup,
    member_id: str,
    instance_id: str,
    records: list[StateRecord],
    *,
    is_joining: bool,
    is_classic: bool = False,
) -> ConsumerMember:
    """The static member as it is before this request; `records` get what gives it the place of its former id. Raises Refused.

    Between two members of the consumer protocol the former one must have left for that; a classic one is fenced.
    """
    holder = group.static_member(instance_id)
    if not is_joining:
        return held_by(holder, member_id, instance_id)
    if holder is None:
        return group.members.get(member_id) or new_member(member_id)
    is_in_use = not is_classic and holder.subscription.classic is None and holder.current.member_epoch != LEFT_STATIC
    if is_in_use:
        raise Refused(
            ErrorCode.UNRELEASED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} cannot join the group because the instance id is "
            f"owned by {holder.member_id} member.",
        )
    current = holder.current._replace(member_epoch=0, previous_member_epoch=0)
    member = holder._replace(member_id=member_id, current=current)
    group_id, wall_ms = group.group_id, step.wall_ms
    target = group.targets.get(holder.member_id, NO_TARGET)
    records += [
        *removal(group_id, holder.member_id, wall_ms),
        MemberRecord(group_id, member_id, member.subscription, wall_ms),
        TargetRecord(group_id, member_id, target, wall_ms),
        CurrentRecord(group_id, member_id, current, wall_ms),
    ]
    return member


def held_by(holder: ConsumerMember | None, member_id: str, instance_id: str) -> ConsumerMember:
    """The holder of the instance id, if it is this member. Raises Refused."""
    if holder is None:
        raise Refused(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    if holder.member_id != member_id:
        raise Refused(
            ErrorCode.FENCED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} was fenced by member {holder.member_id}.",
        )
    return holder


def removal(group_id: str, member_id: str, wall_ms: int) -> list[StateRecord]:
    """The records that remove a member, in Kafka's order."""
    return [
        CurrentRecord(group_id, member_id, None, wall_ms),
        TargetRecord(group_id, member_id, None, wall_ms),
        MemberRecord(group_id, member_id, None, wall_ms),
    ]
