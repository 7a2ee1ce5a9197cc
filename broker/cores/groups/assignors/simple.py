"""The `simple` assignor of share groups: every partition has at least one member, every member about as many partitions.

The results are those of Kafka's SimpleAssignor (KIP-932). Each member first gets the partition that the hash of its id names; then
members keep what they have; then the rest is dealt in turn. Members may share a partition.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TypeAlias

from broker.cores.groups.assignors.draft import NEW_SET, set_of, topics_of
from broker.cores.groups.assignors.interface import (
    Assignment,
    MemberSpec,
    PartitionAssignorError,
    TopicDescriber,
    TopicId,
)
from broker.cores.groups.assignors.java_order import (
    grown,
    ids_order,
    map_order,
    numbers_order,
    pairs_order,
    table_size,
    text_hash,
)
from broker.protocol.uuids import spelled

Pair: TypeAlias = "tuple[TopicId, int]"
Owners: TypeAlias = "dict[Pair, list[str]]"  # in the order in which Java's map iterates
_Final: TypeAlias = (
    "dict[str, dict[Pair, None]]"  # the partitions of each member in the order in which they were put there
)
_NEW_MAP = 16


class SimpleAssignor:
    """It has no state and ignores racks."""

    name = "simple"

    def assign(
        self,
        members: Mapping[str, MemberSpec],
        is_homogeneous: bool,
        topics: TopicDescriber,
        assignable: Mapping[TopicId, Collection[int]],
    ) -> dict[str, Assignment]:
        """As `Assignor.assign`; only partitions in `assignable` are assigned. Raises PartitionAssignorError."""
        final = (_alike if is_homogeneous else _different)(members, topics, assignable)
        return {member_id: _assignment(member, final.get(member_id, {})) for member_id, member in members.items()}


# ---- all members subscribe to the same topics ------------------------------------------------------------------------


def _alike(
    members: Mapping[str, MemberSpec], topics: TopicDescriber, assignable: Mapping[TopicId, Collection[int]]
) -> _Final:
    subscribed = next(iter(members.values())).subscribed if members else ()
    targets = _targets(subscribed, topics, assignable)
    desired = -(-len(targets) // max(len(members), 1))
    hashed = _JavaMap(_sized(len(targets)))
    _hash_members(members, targets, hashed)
    final: _Final = {}
    given = set()
    for pair, owners in hashed.ordered().items():
        given.add(pair)
        for member_id in owners:
            final.setdefault(member_id, {})[pair] = None
    taken = set(given)
    for pair, owners in _current(members).items():
        if pair[0] not in subscribed:
            continue
        for member_id in owners:
            owned = final.setdefault(member_id, {})
            if len(owned) < desired and pair not in given:
                owned[pair] = None
                taken.add(pair)
    _deal([*members], [pair for pair in targets if pair not in taken], final, desired)
    return final


def _deal(member_ids: list[str], pairs: Iterable[Pair], final: _Final, desired: int) -> None:
    """Give partitions to members in turn; one that has more than it should leaves the turn."""
    turn = 0
    for pair in pairs:
        while True:
            turn = turn if turn < len(member_ids) else 0
            if not member_ids:
                raise PartitionAssignorError("partitions were left unassigned")
            owned = final.setdefault(member_ids[turn], {})
            if len(owned) <= desired:
                break
            del member_ids[turn]
        owned[pair] = None
        turn += 1


# ---- members subscribe to different topics ---------------------------------------------------------------------------


def _different(
    members: Mapping[str, MemberSpec], topics: TopicDescriber, assignable: Mapping[TopicId, Collection[int]]
) -> _Final:
    wanted = {
        member_id: _targets(members[member_id].subscribed, topics, assignable)
        for member_id in map_order(
            member_id for member_id, member in members.items() if member.subscribed or member.missing
        )
    }
    subscribers: dict[TopicId, dict[str, None]] = {}
    for member_id, pairs in wanted.items():
        for topic, _ in pairs:
            subscribers.setdefault(topic, {})[member_id] = None
    hashed = _JavaMap(_NEW_MAP)
    for member_id, pairs in wanted.items():
        _hash_members((member_id,), pairs, hashed)
    current = _current(members)
    free: dict[TopicId, list[Pair]] = {}
    for pair in dict.fromkeys(pair for pairs in wanted.values() for pair in pairs):
        if pair not in hashed.owners and pair not in current:
            free.setdefault(pair[0], []).append(pair)
    for topic in _computed_order(topic for topic, pairs in free.items() for _ in pairs):
        turn = [*subscribers[topic]]
        for place, pair in enumerate(free[topic]):
            hashed.owners_of(pair).append(turn[place % len(turn)])
    final: _Final = {}
    for pair, owners in hashed.ordered().items():
        for member_id in owners:
            final.setdefault(member_id, {})[pair] = None
    for pair, owners in current.items():
        if pair in hashed.owners:
            continue
        for member_id in owners:
            if member_id in subscribers.get(pair[0], ()):
                final.setdefault(member_id, {})[pair] = None
    return final


# ---- parts of both ---------------------------------------------------------------------------------------------------


class _JavaMap:
    """The members of partitions, in a HashMap that is filled by computeIfAbsent()."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self.owners: Owners = {}

    def owners_of(self, pair: Pair) -> list[str]:
        if len(self.owners) > self._capacity * 3 // 4:
            self._capacity *= 2
        return self.owners.setdefault(pair, [])

    def ordered(self) -> Owners:
        # computeIfAbsent() puts a key before the others of its bucket.
        return {pair: self.owners[pair] for pair in pairs_order([*reversed(self.owners)], self._capacity)}


def _targets(
    subscribed: Iterable[TopicId], topics: TopicDescriber, assignable: Mapping[TopicId, Collection[int]]
) -> list[Pair]:
    """The partitions of these topics that may be assigned."""
    targets = []
    for topic in subscribed:
        count = topics.partition_count(topic)
        if count < 0:
            raise PartitionAssignorError(f"members subscribe to topic {spelled(topic)}, which does not exist")
        numbers = assignable.get(topic, ())
        targets += [(topic, number) for number in range(count) if number in numbers]
    return targets


def _hash_members(member_ids: Iterable[str], pairs: Sequence[Pair], owners: _JavaMap) -> None:
    if not pairs:
        return
    for member_id in member_ids:
        hashed = text_hash(member_id)
        magnitude = hashed if hashed < 1 << 31 else (1 << 32) - hashed
        owners.owners_of(pairs[magnitude % len(pairs)]).append(member_id)


def _current(members: Mapping[str, MemberSpec]) -> Owners:
    found = _JavaMap(_NEW_MAP)
    for member_id, member in members.items():
        for topic in topics_of(member.assigned):
            for number in set_of(tuple(member.assigned[topic])):
                found.owners_of((topic, number)).append(member_id)
    return found.ordered()


def _assignment(member: MemberSpec, owned: Mapping[Pair, None]) -> Assignment:
    """The assignment of a member; the one before if nothing has changed."""
    parts: dict[TopicId, list[int]] = {}
    pairs = pairs_order([*owned], grown(_NEW_MAP, len(owned)))
    for topic, number in pairs:
        parts.setdefault(topic, []).append(number)
    before = member.assigned
    if before.keys() == parts.keys() and all(set(parts[topic]) == set(before[topic]) for topic in parts):
        return before
    return {
        topic: tuple(numbers_order(parts[topic], grown(NEW_SET, len(parts[topic]))))
        for topic in _computed_order(topic for topic, _ in pairs)
    }


def _computed_order(calls: Iterable[TopicId]) -> list[TopicId]:
    """The keys of a HashMap after these calls of computeIfAbsent()."""
    capacity, put = _NEW_MAP, dict[TopicId, None]()
    for topic in calls:
        if len(put) > capacity * 3 // 4:
            capacity *= 2
        put[topic] = None
    return ids_order([*reversed(put)], capacity)


def _sized(keys: int) -> int:
    """The buckets of a map that Kafka makes for this number of keys."""
    return table_size(int((keys + 1) / 0.75 + 1))
