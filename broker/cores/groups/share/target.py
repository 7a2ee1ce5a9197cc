"""The target assignment of a share group: the assignor computes it for all members, and what differs from the present one is stored."""

from __future__ import annotations

from broker.cores.groups.assignors.interface import MemberSpec, PartitionAssignorError
from broker.cores.groups.assignors.java_order import map_order, set_order, timeline_order
from broker.cores.groups.assignors.simple import SimpleAssignor
from broker.cores.groups.records import StateRecord
from broker.cores.groups.records.consumer import Target
from broker.cores.groups.records.share import ShareTargetEpochRecord, ShareTargetRecord
from broker.cores.groups.refusals import Refused
from broker.cores.groups.share.group import NO_TARGET, ShareGroup
from broker.cores.groups.share.member import ShareMember
from broker.cores.groups.step import Step
from broker.cores.groups.targets import TopicsOfAssignors, is_same
from broker.cores.groups.topics import TopicCatalog
from broker.protocol.errors import ErrorCode


def new_target(
    step: Step, group: ShareGroup, epoch: int, updated: ShareMember, *, is_homogeneous: bool, records: list[StateRecord]
) -> Target:
    """The target of `updated` in this epoch; adds the records of all that changes. Raises Refused if the assignor fails."""
    members = {**group.members, updated.member_id: updated}
    specs = _specs(step.coordinator.topics, group, members)
    assignable = {topic_id: set(named.partitions) for topic_id, named in group.partitions.initialized.items()}
    try:
        assigned = SimpleAssignor().assign(
            specs, is_homogeneous, TopicsOfAssignors(step.coordinator.topics), assignable
        )
    except PartitionAssignorError as error:
        message = f"Failed to compute a new target assignment for epoch {epoch}: {error}"
        raise Refused(ErrorCode.UNKNOWN_SERVER_ERROR, message) from None
    for member_id, target in assigned.items():
        stored = group.targets.get(member_id)
        if stored is None or not is_same(target, stored):
            records.append(ShareTargetRecord(group.group_id, member_id, target, step.wall_ms))
    records.append(ShareTargetEpochRecord(group.group_id, epoch, step.wall_ms))
    return assigned[updated.member_id]


def _specs(catalog: TopicCatalog, group: ShareGroup, members: dict[str, ShareMember]) -> dict[str, MemberSpec]:
    # Members with the same subscription share its collection of ids.
    subscribed: dict[frozenset[str], tuple[list[bytes], int]] = {}
    specs = {}
    # Kafka has put a new member into the group before it computes.
    ordered = timeline_order(members, group.most_members, is_last_new=len(members) > len(group.members))
    for member_id in map_order(ordered):
        names = members[member_id].subscription.topic_names
        found = subscribed.get(names)
        if found is None:
            ids = [catalog.topic_id(name) for name in set_order(sorted(names))]
            present = [topic_id for topic_id in ids if topic_id is not None]
            found = subscribed[names] = present, len(ids) - len(present)
        specs[member_id] = MemberSpec(found[0], group.targets.get(member_id, NO_TARGET), missing=found[1])
    return specs
