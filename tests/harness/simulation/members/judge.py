"""The judge of real members: what the coordinator promises, what a listener may expect, and that no record is lost."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from broker.protocol.messages.sync_group import SyncGroupRequest
from kgctl.client.consumer.assignors.wire import decode_assignment
from kgctl.model.topic_partition import TopicPartition
from tests.harness.simulation.judge import Judge
from tests.harness.simulation.terms import Life, ensure

if TYPE_CHECKING:
    from tests.harness.simulation.members.consumer import Member


class RecordsJudge(Judge):
    """No record is lost: who reads a partition begins where every record before has been processed."""

    _processed: dict[tuple[str, TopicPartition], int]

    def restarted(self) -> None:
        if not hasattr(self, "_processed"):
            self._processed = {}
            self.rebalances = self.records = 0
        super().restarted()

    def begins(self, member: Member, partition: TopicPartition, offset: int, what: str) -> None:
        """A member reads from here: every record before has been processed."""
        done = self._processed.get((member.profile.group_id, partition), 0)
        ensure(offset <= done, f"{member.name} {what} {partition} from {offset}, but only {done} records are processed")

    def processed(self, member: Member, partition: TopicPartition, first: int, end: int) -> None:
        self.begins(member, partition, first, "processes")
        key = member.profile.group_id, partition
        self._processed[key] = max(self._processed.get(key, 0), end)
        self.records += end - first


class MemberJudge(RecordsJudge):
    """In place of the shares of model members, it reads the assignments that real leaders make."""

    _shares: dict[tuple[Life, int, str], frozenset[TopicPartition]]
    _holders: dict[tuple[Life, int, TopicPartition], str]
    _claims: dict[tuple[Life, int, TopicPartition], str]
    _joined: dict[tuple[str, int], Life]  # a member may learn its assignment after its group was deleted

    def restarted(self) -> None:
        if not hasattr(self, "_shares"):
            self._shares, self._holders, self._claims, self._joined = {}, {}, {}, {}
        super().restarted()

    def _judge_join(self, life: Life, response: Any) -> None:
        super()._judge_join(life, response)
        self._joined[response.member_id, response.generation_id] = life

    def _judge_sync(self, request: SyncGroupRequest, response: Any) -> None:
        life, generation, member_id = self._life(request.group_id), request.generation_id, request.member_id
        group = self._group(request.group_id)
        assert group is not None
        ensure(generation == group.generation, f"{member_id} syncs generation {generation} of {group.generation}")
        ensure(member_id in group.members, f"{member_id} syncs but is not a member in {life}")
        owner = group.members[member_id].group_instance_id or member_id
        share = frozenset(decode_assignment(response.assignment).partitions)
        first = self._shares.setdefault((life, generation, owner), share)
        ensure(first == share, f"the share of {owner} in generation {generation} of {life} has changed")
        for partition in share:
            holder = self._holders.setdefault((life, generation, partition), owner)
            ensure(
                holder == owner, f"{holder} and {owner} are assigned {partition} in generation {generation} of {life}"
            )

    # ---- what applications see ---------------------------------------------------------------------------------------

    def took_over(self, member: Member, generation: int, member_id: str, owned: Collection[TopicPartition]) -> None:
        """A member has completed a rebalance."""
        self.rebalances += 1
        owner, life = member.profile.instance_id or member_id, self._joined[member_id, generation]
        for partition in owned:
            claim = self._claims.setdefault((life, generation, partition), owner)
            ensure(claim == owner, f"{claim} and {owner} own {partition} in generation {generation}")
