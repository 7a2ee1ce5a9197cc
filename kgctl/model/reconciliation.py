"""How far the members of a consumer group (KIP-848) are on the way to their target assignments.

ConsumerGroupDescribe omits partitions that the coordinator has asked a member to give up. They show in the epoch of the
member, which stays behind until it has given them up, and in targets of others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from broker.light_dataclasses import replace
from kgctl.model.groups import CONSUMER, GroupDescription, MemberRow, TopicPartitions, by_topic
from kgctl.model.topic_partition import TopicPartition

# Phases of members. RECONCILING: it has not confirmed its newest target, and what it has to give up for it is not known.
STABLE, RECONCILING = "stable", "reconciling"
# It has not given up partitions that are not in its target (UNREVOKED_PARTITIONS).
REVOKING = "revoking"
# It waits for partitions that other members have not given up (UNRELEASED_PARTITIONS).
WAITING = "waiting"
# A static member that left and is expected back; its partitions are kept for it.
AWAY = "away"
AWAY_EPOCH = -2

Pending: TypeAlias = "Mapping[str, Iterable[TopicPartition]]"
"""Partitions that the coordinator has asked members to give up, by member id."""


def reconciled(group: GroupDescription, pending: Pending | None = None) -> GroupDescription:
    """The description of a consumer group with the phase of each member, what it gives up, and what it waits for."""
    if group.type != CONSUMER or group.error is not None:
        return group
    known = pending or {}
    members = tuple(_reconciled(member, known) for member in group.members)
    unclear = [place for place, member in enumerate(members) if member.phase == RECONCILING]
    if len(unclear) == 1 and (held := _held(members)):
        (place,) = unclear
        members = (*members[:place], _holding(members[place], held), *members[place + 1 :])
    return replace(group, members=members)


def _held(members: Iterable[MemberRow]) -> set[TopicPartition]:
    """What members at the newest epoch wait for, and no member shows: others must give it up."""
    awaited = {key for member in members for key in _places(member.waiting_for)}
    return awaited - {key for member in members for key in (*member.owned(), *_places(member.revoking))}


def _holding(member: MemberRow, held: set[TopicPartition]) -> MemberRow:
    """The only member that can have what others wait for."""
    return replace(member, phase=REVOKING, revoking=by_topic(held))


def _reconciled(member: MemberRow, pending: Pending) -> MemberRow:
    if member.current_epoch is None or member.target_epoch is None or member.target_assignment is None:
        return member
    owned, target = set(member.owned()), set(_places(member.target_assignment))
    is_away = member.current_epoch == AWAY_EPOCH
    is_behind = is_behind_target(member)
    asked = {*_places(member.revoking), *pending.get(member.consumer_id or "", ())} if is_behind else set()
    revoking = (owned | asked) - target
    waiting_for = set() if is_behind else target - owned
    if is_away:
        phase = AWAY
    elif revoking:
        phase = REVOKING
    elif is_behind:
        phase = RECONCILING
    else:
        phase = WAITING if waiting_for else STABLE
    return replace(member, phase=phase, revoking=by_topic(revoking), waiting_for=by_topic(waiting_for))


def is_behind_target(member: MemberRow) -> bool:
    """Whether the member has not confirmed its newest target; a static member that is away confirms nothing."""
    return (
        member.current_epoch is not None
        and member.target_epoch is not None
        and 0 <= member.current_epoch < member.target_epoch
    )


def _places(owned: Iterable[TopicPartitions] | None) -> list[TopicPartition]:
    return [place for entry in owned or () for place in entry.places()]


def unconfirmed(before: GroupDescription, now: GroupDescription) -> dict[str, set[TopicPartition]]:
    """What members had in an earlier description and must give up since: their epoch has not moved.

    A member that has given up a part of it, and must give up more, is shown with both until it has confirmed all.
    """
    owned = {key for member in now.members for key in member.owned()}
    was = {member.consumer_id: member for member in before.members}
    found = {}
    for member in now.members:
        earlier = was.get(member.consumer_id)
        if earlier is None or not is_behind_target(member) or earlier.current_epoch != member.current_epoch:
            continue
        had = {*earlier.owned(), *_places(earlier.revoking)}
        found[member.consumer_id or ""] = had - owned
    return found
