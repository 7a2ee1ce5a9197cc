"""The `uniform` assignor for members that subscribe to the same topics.

Each member keeps what it has, up to its quota: the number of partitions per member, one more for some of the first members. What no member has
then goes to the members with room, in their order.
"""

from __future__ import annotations

from collections.abc import Mapping

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


def assign_homogeneous(members: Mapping[str, MemberSpec], topics: TopicDescriber) -> dict[str, Assignment]:
    """`members` are in the order in which they are filled. Raises PartitionAssignorError if a topic does not exist."""
    subscribed = _subscribed(members)
    if not subscribed:
        return {member_id: {} if member.assigned else member.assigned for member_id, member in members.items()}
    counts = {topic: topics.partition_count(topic) for topic in subscribed}
    for topic, count in counts.items():
        if count < 0:
            raise PartitionAssignorError(f"members subscribe to topic {spelled(topic)}, which does not exist")
    free = _without_owner(members, counts)
    assigned: dict[str, Assignment] = {}
    drafts: dict[str, Draft] = {}
    room: dict[str, int] = {}
    quota, extras = divmod(sum(counts.values()), len(members))
    left = len(members)
    for member_id, member in members.items():
        limit = quota + (extras > 0)
        kept = sum(map(len, member.assigned.values()))
        if kept > limit or not counts.keys() >= member.assigned.keys():
            drafts[member_id] = Draft(member.assigned)
            kept = _revoke(drafts[member_id], counts, limit, free)
        assigned[member_id] = member.assigned
        # A member with room for an extra partition leaves it to others, unless all that are left need one.
        if extras and kept < limit and left > extras:
            limit -= 1
        elif extras:
            extras -= 1
        if kept < limit:
            room[member_id] = limit - kept
        left -= 1
    _fill(members, room, free, drafts)
    return assigned | {member_id: draft.finish() for member_id, draft in drafts.items()}


def _subscribed(members: Mapping[str, MemberSpec]) -> list[TopicId]:
    """The topics of all members in the order of a HashSet."""
    for member in members.values():
        return ids_order(list(member.subscribed), copied_capacity(len(member.subscribed) + member.missing))
    return []


def _without_owner(members: Mapping[str, MemberSpec], counts: Mapping[TopicId, int]) -> list[tuple[TopicId, list[int]]]:
    """The partitions without an owner, in runs of a topic."""
    owned: dict[TopicId, set[int]] = {topic: set() for topic in counts}
    for member in members.values():
        for topic, partitions in member.assigned.items():
            if topic in owned:
                owned[topic].update(partitions)
    runs = [
        (topic, [partition for partition in range(count) if partition not in owned[topic]])
        for topic, count in counts.items()
    ]
    return [(topic, partitions) for topic, partitions in runs if partitions]


def _revoke(draft: Draft, counts: Mapping[TopicId, int], limit: int, free: list[tuple[TopicId, list[int]]]) -> int:
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
    free: list[tuple[TopicId, list[int]]],
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
