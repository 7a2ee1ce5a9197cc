"""The `range` assignor: members get consecutive partitions of each topic, so topics with as many partitions are co-partitioned.

The results are those of Kafka's RangeAssignor on the broker.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

from broker.cores.groups.assignors.interface import (
    Assignment,
    MemberSpec,
    PartitionAssignorError,
    TopicDescriber,
    TopicId,
)
from broker.cores.groups.assignors.java_order import ids_order, table_size
from broker.protocol.uuids import spelled


class RangeAssignor:
    """Static members come first, by instance id; then the others, by member id. Ignores racks, as Kafka 4.1 does."""

    name = "range"

    def assign(
        self, members: Mapping[str, MemberSpec], is_homogeneous: bool, topics: TopicDescriber
    ) -> dict[str, Assignment]:
        ranked = sorted(members, key=lambda member_id: _rank(member_id, members[member_id]))
        if is_homogeneous and ranked:
            # As in Kafka, the first member speaks for all, even for one whose regular expression has not been looked up.
            first = members[ranked[0]].subscribed
            if any(member.subscribed is not first for member in members.values()):
                members = {member_id: member._replace(subscribed=first) for member_id, member in members.items()}
        shares = _shares([members[member_id] for member_id in ranked], topics)
        assigned = {
            member_id: _assignment(members[member_id], share, is_homogeneous)
            for member_id, share in zip(ranked, shares, strict=True)
        }
        return {member_id: assigned[member_id] for member_id in members}


def _rank(member_id: str, member: MemberSpec) -> tuple[bool, bytes]:
    is_dynamic = member.instance_id is None
    text = member_id if member.instance_id is None else member.instance_id
    return is_dynamic, text.encode("utf-16-be", "surrogatepass")  # as Java compares texts


def _shares(members: Sequence[MemberSpec], topics: TopicDescriber) -> list[dict[TopicId, range]]:
    """What each of the members, which are ranked, gets of each topic. Raises PartitionAssignorError if a topic does not exist."""
    shares: list[dict[TopicId, range]] = [{} for _ in members]
    for topic, subscribers in _subscribers(members).items():
        count = topics.partition_count(topic)
        if count < 0:
            raise PartitionAssignorError(f"members subscribe to topic {spelled(topic)}, which does not exist")
        quota, extras = divmod(count, len(subscribers))
        start = 0
        for place in subscribers[:count]:
            end = start + quota + (extras > 0)
            shares[place][topic] = range(start, end)
            start, extras = end, extras - 1
    return shares


def _subscribers(members: Sequence[MemberSpec]) -> dict[TopicId, Sequence[int]]:
    """The places of the subscribers of each topic. Members with the same collection are looked at once."""
    alike: dict[int, list[int]] = {}
    for place, member in enumerate(members):
        alike.setdefault(id(member.subscribed), []).append(place)
    found: dict[TopicId, list[Iterable[int]]] = {}
    for places in alike.values():
        for topic in members[places[0]].subscribed:
            found.setdefault(topic, []).append(places)
    return {topic: sorted(chain.from_iterable(parts)) for topic, parts in found.items()}


def _assignment(member: MemberSpec, share: Mapping[TopicId, range], is_homogeneous: bool) -> Assignment:
    before = member.assigned
    if len(before) == len(share) and all(
        topic in before and len(before[topic]) == len(given) and all(map(given.__contains__, before[topic]))
        for topic, given in share.items()
    ):
        return before
    names = len(member.subscribed) + (0 if is_homogeneous else member.missing)
    put = [topic for topic in member.subscribed if topic in share]
    return {topic: tuple(share[topic]) for topic in ids_order(put, table_size(4 * names // 3 + 1))}
