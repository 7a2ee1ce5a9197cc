"""Who owned what before, as the members of a group report it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kgctl.client.consumer.assignors.assignor import Subscription
from kgctl.client.consumer.assignors.past_ownership import NO_GENERATION, MemberData
from kgctl.model.topic_partition import TopicPartition


class PreviousOwners:
    """The partitions of each member that exist in subscribed topics, after conflicts: of several claims, that of the newest generation counts.

    `contested` are partitions that two members claim for one generation; neither of the two keeps such a partition.
    """

    def __init__(
        self,
        partition_counts: Mapping[str, int],
        members: Mapping[str, Subscription],
        member_data: Callable[[Subscription], MemberData],
    ) -> None:
        self.data = {member_id: member_data(member) for member_id, member in members.items()}
        self.newest_generation = max((data.generation_id for data in self.data.values()), default=NO_GENERATION)
        self.owned: dict[str, dict[TopicPartition, None]] = {member_id: {} for member_id in members}
        self.contested: set[TopicPartition] = set()
        claimed: dict[TopicPartition, str] = {}
        for member_id, data in self.data.items():
            for partition in dict.fromkeys(data.partitions):
                if not 0 <= partition.partition < partition_counts.get(partition.topic, 0):
                    continue
                other = claimed.get(partition)
                # Java compares with the generation of the other subscription, not with that of its user data.
                theirs = NO_GENERATION if other is None else max(members[other].generation_id, NO_GENERATION)
                if other is None or data.generation_id > theirs:
                    self.owned[member_id][partition] = None
                elif data.generation_id == theirs:
                    self.contested.add(partition)
                else:
                    continue
                if other is not None:
                    self.owned[other].pop(partition, None)
                claimed[partition] = member_id

    def older(self) -> dict[TopicPartition, str]:
        """The last owners of partitions among the members that have missed the newest generation."""
        newest: dict[TopicPartition, tuple[int, str]] = {}
        for member_id, data in self.data.items():
            if data.generation_id < self.newest_generation:
                for partition in data.partitions:
                    known = newest.get(partition)
                    if known is None or data.generation_id > known[0]:
                        newest[partition] = (data.generation_id, member_id)
        return {partition: member_id for partition, (_, member_id) in newest.items()}
