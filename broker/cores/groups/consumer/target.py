"""The target assignment: the assignor computes it for all members, and what differs from the present one is stored."""

from __future__ import annotations

from broker.cores.groups.assignors.interface import MemberSpec, PartitionAssignorError, load_assignor
from broker.cores.groups.consumer.group import NO_TARGET, ConsumerGroup
from broker.cores.groups.consumer.member import ConsumerMember
from broker.cores.groups.consumer.refusals import Refused
from broker.cores.groups.records import StateRecord
from broker.cores.groups.records.consumer import Target, TargetEpochRecord, TargetRecord
from broker.cores.groups.step import Step
from broker.cores.groups.topics import TopicCatalog
from broker.protocol.errors import ErrorCode


class _Topics:
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
    members = {**group.members, updated.member_id: updated}
    targets = group.targets
    holder = group.static_member(updated.subscription.instance_id)
    if holder is not None and holder.member_id != updated.member_id:
        # A static member has come back with another id.
        del members[holder.member_id]
        targets = {**targets, updated.member_id: targets.get(holder.member_id, NO_TARGET)}
    assignor = load_assignor(_assignor_name(step, group, member, updated))
    specs = _specs(step.coordinator.topics, group, members, targets)
    try:
        assigned = assignor.assign(specs, is_homogeneous, _Topics(step.coordinator.topics))
    except PartitionAssignorError as error:
        message = f"Failed to compute a new target assignment for epoch {epoch}: {error}"
        raise Refused(ErrorCode.UNKNOWN_SERVER_ERROR, message) from None
    for member_id in members:
        target, stored = assigned.get(member_id, NO_TARGET), group.targets.get(member_id)
        if stored is None or not _is_same(target, stored):
            records.append(TargetRecord(group.group_id, member_id, target, step.wall_ms))
    records.append(TargetEpochRecord(group.group_id, epoch, step.wall_ms))
    return assigned.get(updated.member_id, NO_TARGET)


def _assignor_name(step: Step, group: ConsumerGroup, member: ConsumerMember, updated: ConsumerMember) -> str:
    """The one that most members ask for, or else the first of group.consumer.assignors."""
    counts = dict(group.assignors)
    for asked, change in ((member.subscription.server_assignor, -1), (updated.subscription.server_assignor, 1)):
        if asked is not None:
            counts[asked] = counts.get(asked, 0) + change
    known = {name: found for name, found in counts.items() if found > 0}
    return preferred(known, step.coordinator.settings.group_consumer_assignors)


def preferred(counts: dict[str, int], configured: tuple[str, ...]) -> str:
    """The assignor with most votes; if votes tie, or there are none, the one that is configured first."""
    return max(configured, key=lambda name: counts.get(name, 0))


def _specs(
    catalog: TopicCatalog, group: ConsumerGroup, members: dict[str, ConsumerMember], targets: dict[str, Target]
) -> dict[str, MemberSpec]:
    # Members with the same subscription share its collection of ids.
    subscribed: dict[tuple[frozenset[str], str], frozenset[bytes]] = {}
    specs = {}
    for member_id, member in members.items():
        subscription = member.subscription
        key = subscription.topic_names, subscription.topic_regex
        topic_ids = subscribed.get(key)
        if topic_ids is None:
            resolved = group.regexes.get(subscription.topic_regex) if subscription.topic_regex else None
            names = subscription.topic_names | (resolved.topics if resolved is not None else frozenset())
            found = map(catalog.topic_id, names)
            topic_ids = subscribed[key] = frozenset(topic_id for topic_id in found if topic_id is not None)
        target = targets.get(member_id, NO_TARGET)
        specs[member_id] = MemberSpec(topic_ids, target, subscription.instance_id, subscription.rack_id)
    return specs


def _is_same(target: Target, stored: Target) -> bool:
    """Whether both have the same partitions, in whatever order."""
    if target is stored or target == stored:
        return True
    return target.keys() == stored.keys() and all(
        frozenset(partitions) == frozenset(stored[topic_id]) for topic_id, partitions in target.items()
    )
