"""The `uniform` assignor for members that subscribe to different topics.

Members keep what they have. Partitions without an owner go to the subscribers with the fewest partitions, topic by topic. Then each
topic is balanced among its subscribers: a partition moves from one with many partitions, counted over all topics, to one with few. This
is repeated, because what balances a topic may unbalance another.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from broker.cores.groups.assignors.draft import Draft, topics_of
from broker.cores.groups.assignors.interface import (
    Assignment,
    MemberSpec,
    PartitionAssignorError,
    TopicDescriber,
    TopicId,
)
from broker.cores.groups.assignors.java_order import table_size
from broker.protocol.uuids import spelled

MAX_ROUNDS = 16
NO_OWNER = -1


class Heterogeneous:
    """One assignment. Members are known by their places in the order of the group."""

    def __init__(self, members: Mapping[str, MemberSpec], topics: TopicDescriber) -> None:
        """Raises PartitionAssignorError if a topic does not exist."""
        self._members = members
        self._specs = list(members.values())
        self._drafts: dict[int, Draft] = {}
        self._sizes = [0] * len(members)
        self._subscribers: dict[TopicId, list[int]] = {}
        for place, member in enumerate(self._specs):
            for topic in member.subscribed:
                self._subscribers.setdefault(topic, []).append(place)
        self._owners: dict[TopicId, list[int]] = {}
        for topic in self._subscribers:
            count = topics.partition_count(topic)
            if count < 0:
                raise PartitionAssignorError(f"members subscribe to topic {spelled(topic)}, which does not exist")
            self._owners[topic] = [NO_OWNER] * count

    def assign(self) -> dict[str, Assignment]:
        self._keep()
        self._distribute()
        self._balance()
        return {
            member_id: self._drafts[place].finish() if place in self._drafts else member.assigned
            for place, (member_id, member) in enumerate(self._members.items())
        }

    def _keep(self) -> None:
        """Count what members own, and revoke the topics to which they do not subscribe."""
        subscriptions: dict[int, frozenset[TopicId]] = {}
        for place, member in enumerate(self._specs):
            subscribed = subscriptions.get(id(member.subscribed))
            if subscribed is None:
                subscribed = subscriptions[id(member.subscribed)] = frozenset(member.subscribed)
            for topic in topics_of(member.assigned):
                partitions = member.assigned[topic]
                if topic not in subscribed:
                    self._draft(place).remove(topic, partitions)
                    continue
                self._sizes[place] += len(partitions)
                owners = self._owners[topic]
                for partition in partitions:
                    owners[partition] = place

    def _distribute(self) -> None:
        without_owner = {
            topic: partitions
            for topic, owners in self._owners.items()
            if (partitions := [partition for partition, owner in enumerate(owners) if owner == NO_OWNER])
        }
        for topic in self._sorted(without_owner):
            ranking = Ranking(self._subscribers[topic], self._sizes)
            for partition in without_owner[topic]:
                self._move(topic, partition, ranking.next_least())

    def _balance(self) -> None:
        topics = self._sorted([topic for topic, subscribers in self._subscribers.items() if len(subscribers) > 1])
        last_changed = None
        for _ in range(MAX_ROUNDS):
            for topic in topics:
                if topic == last_changed:
                    return
                if self._balance_topic(topic) or last_changed is None:
                    last_changed = topic

    def _balance_topic(self, topic: TopicId) -> bool:
        """Whether a partition has moved."""
        subscribers = self._subscribers[topic]
        sizes = [self._sizes[place] for place in subscribers]
        if max(sizes) - min(sizes) <= 1:
            return False
        ranking = Ranking(subscribers, self._sizes)
        owned: dict[int, list[int]] = {}
        for partition, owner in enumerate(self._owners[topic]):
            owned.setdefault(owner, []).append(partition)
        has_moved = False
        while not ranking.is_balanced():
            giver = ranking.next_most()
            while giver is not None and not owned.get(giver):
                ranking.exclude_most()
                giver = ranking.next_most()
            if giver is None:
                break
            partition = owned[giver].pop()
            taker = ranking.next_least()
            if ranking.is_balanced():
                break
            self._move(topic, partition, taker)
            has_moved = True
        return has_moved

    def _sorted(self, topics: Collection[TopicId]) -> list[TopicId]:
        """The most partitions per subscriber first, then the fewest subscribers, then by id as Java compares ids."""

        def key(topic: TopicId) -> tuple[float, int, int, int]:
            subscribers = len(self._subscribers[topic])
            high, low = (int.from_bytes(half, "big", signed=True) for half in (topic[:8], topic[8:]))
            return -(len(self._owners[topic]) / subscribers), subscribers, high, low

        return sorted(topics, key=key)

    def _move(self, topic: TopicId, partition: int, taker: int) -> None:
        owners = self._owners[topic]
        if owners[partition] != NO_OWNER:
            self._draft(owners[partition]).remove(topic, (partition,))
            self._sizes[owners[partition]] -= 1
        subscribers = len(self._subscribers[topic])
        estimated = -(-len(owners) // subscribers)
        self._draft(taker).add(topic, (partition,), table_size(4 * estimated // 3 + 1))
        owners[partition] = taker
        self._sizes[taker] += 1

    def _draft(self, place: int) -> Draft:
        draft = self._drafts.get(place)
        if draft is None:
            draft = self._drafts[place] = Draft(self._specs[place].assigned)
        return draft


class Ranking:
    """Members by the number of their partitions, which changes while they are taken from both ends.

    The members at the low end get one partition each, then those that have as few; those at the high end give likewise. So a round of
    partitions needs no sorting. Ties are in the order of the group.
    """

    def __init__(self, members: Sequence[int], sizes: Sequence[int]) -> None:
        self._sizes = sizes
        self._ranked = ranked = sorted(members, key=sizes.__getitem__)
        self._low_end = 0  # the low range is [0, low_end)
        self._low_size = sizes[ranked[0]] - 1
        self._low_next = 0
        self._high_start = self._high_end = len(
            ranked
        )  # the high range is [high_start, high_end); givers with nothing follow it
        self._high_size = sizes[ranked[-1]] + 1
        self._high_next = len(ranked) - 1

    def is_balanced(self) -> bool:
        return self._high_size - self._low_size <= 1

    def next_least(self) -> int:
        """The member that gets the next partition."""
        if self._low_next >= self._low_end:
            self._low_size += 1
            while self._low_end < len(self._ranked) and self._size_at(self._low_end) == self._low_size:
                self._low_end += 1
            self._low_next = 0
        self._low_next += 1
        return self._ranked[self._low_next - 1]

    def next_most(self) -> int | None:
        """The member that gives the next partition; None if no member has any."""
        if self._high_next < self._high_start:
            if self._high_end <= self._high_start and self._high_start > 0:
                self._high_size = self._size_at(self._high_start - 1)  # all members of the range have been excluded
            else:
                self._high_size -= 1
            while self._high_start > 0 and self._size_at(self._high_start - 1) == self._high_size:
                self._high_start -= 1
            self._high_next = self._high_end - 1
        if self._high_next < 0:
            return None
        self._high_next -= 1
        return self._ranked[self._high_next + 1]

    def exclude_most(self) -> None:
        """Take the member that `next_most` returned last out of its range, because it has nothing to give."""
        self._high_end -= 1
        ranked, last = self._ranked, self._high_next + 1
        ranked[last], ranked[self._high_end] = ranked[self._high_end], ranked[last]

    def _size_at(self, rank: int) -> int:
        return self._sizes[self._ranked[rank]]
