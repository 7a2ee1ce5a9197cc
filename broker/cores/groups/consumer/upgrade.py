"""Online upgrade: a classic group becomes a consumer group when a member of that protocol joins. Its classic members stay.

Epoch and target are the generation and the assignment that the members have, so nothing moves by the upgrade itself. The member
that joins starts a rebalance, which the next heartbeats of the classic members report.
"""

from __future__ import annotations

from broker.cores.groups.assignors.java_order import grown, ids_order, map_order, timeline_order
from broker.cores.groups.classic.group import CONSUMER, ClassicGroup
from broker.cores.groups.classic.member import Member
from broker.cores.groups.classic.replies import join_refused, sync_refused
from broker.cores.groups.classic.states import GroupState
from broker.cores.groups.consumer.changes import owners_in
from broker.cores.groups.consumer.embedded import by_id
from broker.cores.groups.consumer.group import NO_OWNER, SESSION, ConsumerGroup
from broker.cores.groups.consumer.member import ConsumerMember, MemberState
from broker.cores.groups.group import Group
from broker.cores.groups.metadata_hash import metadata_hash
from broker.cores.groups.records import StateRecord
from broker.cores.groups.records.consumer import (
    ClassicProtocols,
    Current,
    CurrentRecord,
    GroupEpochRecord,
    MemberRecord,
    Subscription,
    TargetEpochRecord,
    TargetRecord,
)
from broker.cores.groups.refusals import Refused
from broker.cores.groups.step import Step
from broker.cores.groups.topics import TopicCatalog
from broker.protocol.consumer_protocol import ConsumerProtocolSubscription, decode_assignment, decode_subscription
from broker.protocol.errors import ErrorCode
from broker.protocol.wire_types import DecodeError

POLICIES = ("bidirectional", "upgrade")
# The table of a new HashMap in Java.
_BUCKETS = 16


def upgraded(step: Step, group: ClassicGroup, records: list[StateRecord]) -> ConsumerGroup:
    """The consumer group that a classic one with members becomes; `records` get what makes it one. Raises Refused.

    As in Kafka, parked requests are refused even if the heartbeat is refused after that. Their clients join again.
    """
    _check(step, group)
    _refuse_parked(step, group)
    if group.protocol is None or any(group.protocol not in dict(one.protocols) for one in group.members.values()):
        # As in Kafka: a first generation has not started, or a member that joins does not support the former protocol.
        raise Refused(
            ErrorCode.UNKNOWN_SERVER_ERROR, "The classic group has not selected a protocol of all its members."
        )
    catalog, wall_ms = step.coordinator.topics, step.wall_ms
    made = ConsumerGroup(group.group_id, offsets_loaded=group.offsets_loaded)
    # A generation that members learned just before a crash is not stored as one of the group.
    made.generation = made.assignment_epoch = step.next_generation(group) - 1
    claims: dict[str, dict[bytes, list[int]]] = {}
    for member_id in map_order(group.members):
        member = group.members[member_id]
        try:
            offered = decode_subscription(member.metadata(group.protocol))
            converted = _member(member, offered, made.generation, catalog)
        except DecodeError:
            raise _impossible(group, "the embedded consumer protocol is malformed") from None
        if converted is None:
            raise _impossible(
                group, "an unsupported custom assignor is in use: it has stored user data with assignments"
            )
        made.put_member(converted)
        owned = converted.current.assigned
        made.put_target(member.member_id, {topic_id: tuple(sorted(owned[topic_id])) for topic_id in owned})
        claims[member_id] = by_id(offered.owned_partitions, catalog)
    for member_id, claimed in claims.items():
        _hold(made, made.members[member_id], claimed)
    made.metadata_hash = metadata_hash(made.subscribed_topics(), catalog)
    # The order of Kafka's tables: it decides who leads the group if it becomes a classic one again.
    group_id, members = group.group_id, [made.members[one] for one in timeline_order(made.members, made.most_members)]
    records += [
        *group.tombstones(wall_ms, keeps_offsets=True),
        *(MemberRecord(group_id, one.member_id, one.subscription, wall_ms) for one in members),
        GroupEpochRecord(group_id, made.generation, made.metadata_hash, wall_ms),
        *(TargetRecord(group_id, member_id, target, wall_ms) for member_id, target in made.targets.items()),
        TargetEpochRecord(group_id, made.generation, wall_ms),
        *(CurrentRecord(group_id, one.member_id, one.current, wall_ms) for one in members),
    ]
    return made


def settle(step: Step, former: Group | None, group: ConsumerGroup, stored: ConsumerGroup) -> None:
    """Replace the soft state of the former group, if the request has made it a consumer group.

    `group` is what `upgraded` has returned, `stored` the group after the request.
    """
    if former is None or former is stored:
        return
    former.cancel_timers(step)
    if not isinstance(former, ClassicGroup):
        return
    stored.owners_reported = owners_in(group)
    stored.is_rebalancing = former.state in (GroupState.PREPARING_REBALANCE, GroupState.COMPLETING_REBALANCE)
    for member_id, member in former.members.items():
        found = stored.members.get(member_id)
        if found is not None and found.subscription.classic is not None:
            step.timers.set((SESSION, stored.group_id, member_id), step.now_ms + member.session_timeout_ms)
            if member.session_renewed_ms >= 0:
                stored.heartbeats_ms[member_id] = member.session_renewed_ms


def _check(step: Step, group: ClassicGroup) -> None:
    settings = step.coordinator.settings
    if settings.group_consumer_migration_policy not in POLICIES:
        raise _impossible(group, "online upgrade is disabled")
    if group.protocol_type != CONSUMER:
        raise _impossible(group, "the group does not use the consumer embedded protocol")
    if len(group.members) > settings.group_consumer_max_size:
        raise _impossible(group, "the group size exceeds the consumer group maximum size")


def _impossible(group: ClassicGroup, why: str) -> Refused:
    message = f"Cannot upgrade classic group {group.group_id} to consumer group because {why}."
    return Refused(ErrorCode.GROUP_ID_NOT_FOUND, message)


def _refuse_parked(step: Step, group: ClassicGroup) -> None:
    error = ErrorCode.REBALANCE_IN_PROGRESS
    for member in group.members.values():
        parked = group.take_join(member)
        if parked is not None:
            step.answer(parked, join_refused(error, parked.api_version, member.member_id))
        if member.parked_sync is not None:
            parked, member.parked_sync = member.parked_sync, None
            step.answer(parked, sync_refused(error))


def _hold(group: ConsumerGroup, member: ConsumerMember, claimed: dict[bytes, list[int]]) -> None:
    """Partitions that a cooperative member said it owns, and that its last assignment lacks, are not free: it gives them up when it
    joins again. Kafka 4.1 assigns them at once, so that they have two owners.
    """
    held = {
        topic_id: frozenset(free)
        for topic_id, partitions in claimed.items()
        if (free := [partition for partition in partitions if group.owner_epoch(topic_id, partition) == NO_OWNER])
    }
    if held:
        current = member.current._replace(state=MemberState.UNREVOKED_PARTITIONS, pending_revocation=held)
        group.put_member(member._replace(current=current))


def _member(
    member: Member, offered: ConsumerProtocolSubscription, generation: int, catalog: TopicCatalog
) -> ConsumerMember | None:
    """The same member of a consumer group; None if its assignment has user data, which no other assignor can keep.

    Raises DecodeError.
    """
    owned: dict[bytes, list[int]] = {}
    # A member that has not synced yet has no assignment.
    if member.assignment:
        assignment = decode_assignment(member.assignment)
        if assignment.user_data:
            return None
        owned = by_id(assignment.assigned_partitions, catalog)
    assigned = {
        topic_id: frozenset(owned[topic_id]) for topic_id in ids_order(list(owned), grown(_BUCKETS, len(owned)))
    }
    return ConsumerMember(
        member.member_id,
        Subscription(
            member.group_instance_id,
            offered.rack_id or None,
            member.client_id,
            member.client_host,
            frozenset(offered.topics),
            "",
            member.rebalance_timeout_ms,
            None,
            ClassicProtocols(member.session_timeout_ms, member.protocols),
        ),
        Current(generation, generation, MemberState.STABLE, assigned, {}),
    )
