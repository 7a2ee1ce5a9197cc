"""The target assignment: the assignor computes it for all members, and what differs from the present one is stored."""

from __future__ import annotations

from itertools import chain

from broker.cores.groups.assignors.interface import MemberSpec, PartitionAssignorError, load_assignor
from broker.cores.groups.assignors.java_order import set_order, timeline_order
from broker.cores.groups.consumer.group import NO_TARGET, ConsumerGroup
from broker.cores.groups.consumer.member import ConsumerMember
from broker.cores.groups.consumer.refusals import Refused
from broker.cores.groups.records import StateRecord
from broker.cores.groups.records.consumer import Subscription, Target, TargetEpochRecord, TargetRecord
from broker.cores.groups.step import Step
from broker.cores.groups.topics import TopicCatalog
from broker.protocol.errors import ErrorCode


class TopicsOfAssignors:
    """The topics as assignors ask for them."""

    def __init__(self, catalog: TopicCatalog) -> None:
        self._catalog = catalog
        self.racks = catalog.racks
        self._counts: dict[bytes, int] = {}

    def partition_count(self, topic_id: bytes) -> int:
        found = self._counts.get(topic_id)
        if found is None:
            name = self._catalog.topic_name(topic_id)
            count = None if name is None else self._catalog.partition_count(name)
            found = self._counts[topic_id] = -1 if count is None else count
        return found


def new_target(
    step: Step,
    group: ConsumerGroup,
    epoch: int,
    member: ConsumerMember,
    updated: ConsumerMember,
    *,
    is_homogeneous: bool,
    records: list[StateRecord],
) -> Target:
    """The target of `updated`, which takes the place of `member`, in this epoch; adds the records of all that changes.

    Raises Refused if the assignor fails.
    """
    members = {member_id: group.members[member_id] for member_id in timeline_order(group.members, group.most_members)}
    members[updated.member_id] = updated
    targets = group.targets
    holder = group.static_member(updated.subscription.instance_id)
    if holder is not None and holder.member_id != updated.member_id:
        # A static member has come back with another id.
        del members[holder.member_id]
        targets = {**targets, updated.member_id: targets.get(holder.member_id, NO_TARGET)}
    assignor = load_assignor(next_assignor(group, member, updated, step.coordinator.settings.group_consumer_assignors))
    specs = _specs(step.coordinator.topics, group, members, targets)
    try:
        assigned = assignor.assign(specs, is_homogeneous, TopicsOfAssignors(step.coordinator.topics))
    except PartitionAssignorError as error:
        message = f"Failed to compute a new target assignment for epoch {epoch}: {error}"
        raise Refused(ErrorCode.UNKNOWN_SERVER_ERROR, message) from None
    for member_id, target in assigned.items():
        stored = group.targets.get(member_id)
        if stored is None or not is_same(target, stored):
            records.append(TargetRecord(group.group_id, member_id, target, step.wall_ms))
    records.append(TargetEpochRecord(group.group_id, epoch, step.wall_ms))
    return assigned[updated.member_id]


def next_assignor(
    group: ConsumerGroup, member: ConsumerMember, updated: ConsumerMember, configured: tuple[str, ...]
) -> str:
    """The one of the next target: what most members ask for once `updated` takes the place of `member`, or else the first configured one."""
    votes = _votes(group)
    before, asked = member.subscription.server_assignor, updated.subscription.server_assignor
    if before is not None and before in votes:
        votes[before] -= 1
        if not votes[before]:
            del votes[before]
    if asked:
        # As in Kafka's map, the first vote for an assignor puts it before the others.
        votes = votes | {asked: votes[asked] + 1} if asked in votes else {asked: 1, **votes}
    return _most_voted(votes, configured)


def assignor_of(group: ConsumerGroup, configured: tuple[str, ...]) -> str:
    """The assignor that most members ask for, or else the first of group.consumer.assignors."""
    return _most_voted(_votes(group), configured)


def _votes(group: ConsumerGroup) -> dict[str, int]:
    return {name: group.assignors[name] for name in timeline_order(group.assignors)}


def _most_voted(votes: dict[str, int], configured: tuple[str, ...]) -> str:
    """If votes tie, the assignor that comes first in them."""
    return max(votes, key=votes.__getitem__, default=configured[0])


def _specs(
    catalog: TopicCatalog, group: ConsumerGroup, members: dict[str, ConsumerMember], targets: dict[str, Target]
) -> dict[str, MemberSpec]:
    # Members with the same subscription share its topics.
    subscribed: dict[tuple[frozenset[str], str], tuple[list[bytes], int]] = {}
    specs = {}
    for member_id, member in members.items():
        subscription = member.subscription
        key = subscription.topic_names, subscription.topic_regex
        found = subscribed.get(key)
        if found is None:
            names = _names(group, subscription)
            ids = [topic_id for topic_id in map(catalog.topic_id, names) if topic_id is not None]
            found = subscribed[key] = ids, len(names) - len(ids)
        target = targets.get(member_id, NO_TARGET)
        specs[member_id] = MemberSpec(found[0], target, subscription.instance_id, subscription.rack_id, found[1])
    return specs


def _names(group: ConsumerGroup, subscription: Subscription) -> list[str]:
    """The topics of a subscription in the order of Java's sets; of names and a regular expression, the larger set comes first."""
    parts = [set_order(sorted(subscription.topic_names))]
    resolved = group.regexes.get(subscription.topic_regex) if subscription.topic_regex else None
    if resolved is not None:
        parts.append(set_order(sorted(resolved.topics)))
        if len(parts[0]) <= len(parts[1]):
            parts.reverse()
    return list(dict.fromkeys(chain.from_iterable(parts)))


def is_same(target: Target, stored: Target) -> bool:
    """Whether both have the same partitions, in whatever order."""
    if target is stored or target == stored:
        return True
    return target.keys() == stored.keys() and all(
        frozenset(partitions) == frozenset(stored[topic_id]) for topic_id, partitions in target.items()
    )
