"""Online downgrade: a consumer group becomes a classic one when its last member of the consumer protocol goes and classic ones stay.

The generation is the group epoch, and the members have their targets as assignments. Then the group rebalances, so that a leader
assigns the partitions. If a classic static member takes the place of the last member, and the others own what they are to own, nothing
moves and there is no rebalance.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from broker.cores.groups.assignors.java_order import timeline_order
from broker.cores.groups.classic import rebalance
from broker.cores.groups.classic.assignments import assignment_of
from broker.cores.groups.classic.group import CONSUMER, ClassicGroup
from broker.cores.groups.classic.member import Member
from broker.cores.groups.classic.states import GroupState
from broker.cores.groups.consumer.changes import note_joined
from broker.cores.groups.consumer.embedded import encoded_assignment
from broker.cores.groups.consumer.group import NO_TARGET, ConsumerGroup
from broker.cores.groups.consumer.member import ConsumerMember
from broker.cores.groups.events import Cause, EventType
from broker.cores.groups.records import StateRecord
from broker.cores.groups.records.consumer import Target
from broker.cores.groups.step import Step
from broker.light_named_tuples import NamedTuple

POLICIES = ("bidirectional", "downgrade")


def is_due(step: Step, group: ConsumerGroup, going: Collection[ConsumerMember], *, is_replaced: bool = False) -> bool:
    """Whether the group becomes classic if these members go. `is_replaced`: a classic member takes the place of the one that goes."""
    staying = len(group.members) - len(going)
    classic = group.classic_members - sum(one.subscription.classic is not None for one in going)
    settings, remaining = step.coordinator.settings, staying + is_replaced
    return (
        classic == staying
        and 0 < remaining <= settings.group_max_size
        and settings.group_consumer_migration_policy in POLICIES
    )


def downgrade(step: Step, group: ConsumerGroup, going: Collection[str]) -> ClassicGroup:
    """Make the group a classic one without these members. The caller starts its rebalance."""
    staying = [group.members[member_id] for member_id in _order(group) if member_id not in going]
    plan = _Plan(group.group_id, group.generation, [_member(group, one, one) for one in staying])
    group.cancel_timers(step)
    for record in group.tombstones(step.wall_ms, keeps_offsets=True):
        step.persist(record)
    return _form(step, plan)


def downgrade_for(
    step: Step, group: ConsumerGroup, holder: ConsumerMember, joining: ConsumerMember, records: Sequence[StateRecord]
) -> None:
    """Make the group a classic one in which `joining` has the place of `holder`. `records` are those of its JoinGroup."""
    was_rebalancing, is_other = group.is_rebalancing, joining.member_id != holder.member_id
    if is_other:
        note_joined(group, joining, holder)
    others = [group.members[member_id] for member_id in _order(group) if member_id != holder.member_id]
    before = group.generation
    is_settled = all(one.is_reconciled_to(before) for one in others)
    members = [*(_member(group, one, one) for one in others), _member(group, joining, holder)]
    ids = [joining.member_id if member_id == holder.member_id else member_id for member_id in group.members]
    ends = group.tombstones(step.wall_ms, keeps_offsets=True, member_ids=ids)
    group.cancel_timers(step)
    for record in records:
        step.persist(record)
    epoch = group.generation
    for record in ends:
        step.persist(record)
    classic = _form(step, _Plan(group.group_id, epoch, members))
    if epoch > before or not is_settled:
        # In Kafka they keep what they own, so that a partition may have two owners, or none. And there the group goes back to
        # the epoch before this request, which the answer does not name: a later generation repeats it.
        classic.note_change(Cause.MEMBER_JOINED)
        rebalance.prepare(step, classic)
    elif was_rebalancing:
        step.emit(classic, EventType.STABLE, assignment=assignment_of(classic))
    elif is_other:
        step.emit(classic, EventType.MEMBER_REPLACED)


def _order(group: ConsumerGroup) -> list[str]:
    """That of Kafka's table of members; the first one that stays leads the classic group."""
    return timeline_order(group.members, group.most_members)


class _Plan(NamedTuple):
    """The classic group to be formed: its members, each with what it is to own."""

    group_id: str
    generation: int
    members: list[tuple[Member, Target]]


def _member(group: ConsumerGroup, member: ConsumerMember, holder: ConsumerMember) -> tuple[Member, Target]:
    """The same member of a classic group, with the target of the member in whose place it is."""
    subscription, classic = member.subscription, member.subscription.classic
    assert classic is not None, "only classic members stay"
    same = Member(
        member.member_id,
        subscription.instance_id,
        subscription.client_id,
        subscription.client_host,
        subscription.rebalance_timeout_ms,
        classic.session_timeout_ms,
        classic.protocols,
        session_renewed_ms=group.heartbeats_ms.get(member.member_id, -1),
    )
    return same, group.targets.get(holder.member_id, NO_TARGET)


def _form(step: Step, plan: _Plan) -> ClassicGroup:
    """Make the group, which is Empty and classic since its tombstones, a Stable one with these members."""
    group = step.groups[plan.group_id]
    assert isinstance(group, ClassicGroup)
    group.state, group.state_timestamp_ms, group.generation = GroupState.STABLE, step.wall_ms, plan.generation
    for member, _ in plan.members:
        group.add(member, CONSUMER)
        group.set_session(step, member.member_id, member.session_timeout_ms)
    group.protocol = group.select_protocol()
    group.note_subscriptions()
    for member, target in plan.members:
        member.assignment = encoded_assignment(target, member.metadata(group.protocol), step.coordinator.topics)
    step.persist(group.to_record(step.wall_ms))
    return group
