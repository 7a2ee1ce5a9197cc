"""The `uniform` assignor for members that subscribe to the same topics.

Each member keeps what it has, up to its quota: the number of partitions per member, one more for some of the first members. What no member has
then goes to the members with room, in their order.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from broker.cores.groups.assignors.draft import Draft, set_of, topics_of
from broker.cores.groups.assignors.interface import (
    Assignment,
    MemberSpec,
    PartitionAssignorError,
    TopicDescriber,
    TopicId,
)
from broker.cores.groups.assignors.java_order import copied_capacity, ids_order
from broker.protocol.uuids import spelled

_Runs: TypeAlias = "list[tuple[TopicId, list[int]]]"  # partitions of a topic, which may come again in a later run


def assign_homogeneous(members: Mapping[str, MemberSpec], topics: TopicDescriber) -> dict[str, Assignment]:
    """`members` are in the order in which they are filled. Raises PartitionAssignorError if a topic does not exist."""
    subscribed = _subscribed(members)
    if not subscribed:
        return {member_id: {} if member.assigned else member.assigned for member_id, member in members.items()}
    counts = {topic: topics.partition_count(topic) for topic in subscribed}
    for topic, count in counts.items():
        if count < 0:
            raise PartitionAssignorError(f"members subscribe to topic {spelled(topic)}, which does not exist")
    owned: dict[TopicId, set[int]] = {topic: set() for topic in counts}
    revoked: _Runs = []
    drafts: dict[str, Draft] = {}
    room: dict[str, int] = {}
    quota, extras = divmod(sum(counts.values()), len(members))
    left = len(members)
    for member_id, member in members.items():
        limit = quota + (extras > 0)
        kept, is_subscribed = 0, True
        for topic, partitions in member.assigned.items():
            kept += len(partitions)
            if topic in owned:
                owned[topic].update(partitions)
            else:
                is_subscribed = False
        if kept > limit or not is_subscribed:
            drafts[member_id] = Draft(member.assigned)
            kept = _revoke(drafts[member_id], counts, limit, revoked)
        # A member with room for an extra partition leaves it to others, unless all that are left need one.
        if extras and kept < limit and left > extras:
            limit -= 1
        elif extras:
            extras -= 1
        if kept < limit:
            room[member_id] = limit - kept
        left -= 1
    _fill(members, room, [*_without_owner(owned, counts), *revoked], drafts)
    assigned = {member_id: member.assigned for member_id, member in members.items()}
    return assigned | {member_id: draft.finish() for member_id, draft in drafts.items()}


def _subscribed(members: Mapping[str, MemberSpec]) -> list[TopicId]:
    """The topics of all members in the order of a HashSet."""
    for member in members.values():
        return ids_order(list(member.subscribed), copied_capacity(len(member.subscribed) + member.missing))
    return []


def _without_owner(owned: Mapping[TopicId, set[int]], counts: Mapping[TopicId, int]) -> _Runs:
    """The partitions that are not owned."""
    runs = [(topic, sorted({*range(count)} - owned[topic])) for topic, count in counts.items()]
    return [(topic, partitions) for topic, partitions in runs if partitions]


def _revoke(draft: Draft, counts: Mapping[TopicId, int], limit: int, free: _Runs) -> int:
    """Take from a member what it does not subscribe to and what exceeds its limit; the latter is free. How many it keeps."""
    left = limit
    for topic in topics_of(draft.before):
        partitions = set_of(draft.before[topic])
        if topic not in counts:
            draft.remove(topic, partitions)
            continue
        if len(partitions) > left:
            draft.remove(topic, partitions[left:])
            free.append((topic, partitions[left:]))
        left -= min(left, len(partitions))
    return limit - left


def _fill(
    members: Mapping[str, MemberSpec],
    room: Mapping[str, int],
    free: _Runs,
    drafts: dict[str, Draft],
) -> None:
    """Give the free partitions in their order to the members with room in theirs."""
    run, start = 0, 0
    for member_id, wanted in room.items():
        draft = drafts.get(member_id)
        if draft is None:
            draft = drafts[member_id] = Draft(members[member_id].assigned)
        while wanted and run < len(free):
            topic, partitions = free[run]
            given = partitions[start : start + wanted]
            draft.add(topic, given)
            wanted -= len(given)
            start += len(given)
            if start == len(partitions):
                run, start = run + 1, 0
    if run < len(free):
        raise PartitionAssignorError("partitions were left unassigned")
