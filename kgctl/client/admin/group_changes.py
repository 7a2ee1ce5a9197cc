"""The methods of the admin client that change groups: plans, and their execution."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from kgctl.client.admin.session import ADDITION_SECONDS, Session

if TYPE_CHECKING:
    from kgctl.client.admin import removals
    from kgctl.client.admin.offsets import OffsetAt
    from kgctl.client.admin.reset_targets import Scope, Target
    from kgctl.client.net.errors import KgctlError
    from kgctl.model.changes import GroupChange, MemberChange, OffsetChange, RebalanceRow, ResetPlan
    from kgctl.model.groups import Committed
    from kgctl.model.plans import StoredGroup
    from kgctl.model.topic_partition import TopicPartition


class GroupChanges(Session):
    """See Admin."""

    def plan_group_deletion(self, names: Sequence[str]) -> list[GroupChange]:
        from kgctl.client.admin import removals

        return self.run(removals.plan_group_deletion(self.cluster, names))

    def delete_groups(self, plan: Sequence[GroupChange]) -> list[GroupChange]:
        from kgctl.client.admin import removals

        return self.run(removals.delete_groups(self.cluster, plan))

    def plan_member_removal(
        self, group: str, members: Sequence[str] = (), instances: Sequence[str] = (), *, everyone: bool = False
    ) -> list[MemberChange]:
        from kgctl.client.admin import removals

        return self.run(removals.plan_member_removal(self.cluster, group, members, instances, everyone=everyone))

    def plan_member_removals(
        self, groups: Sequence[str], wanted: removals.Members, *, known_only: bool = False
    ) -> list[MemberChange]:
        from kgctl.client.admin import removals

        return self.run(removals.plan_member_removals(self.cluster, groups, wanted, known_only=known_only))

    def remove_members(self, group: str, plan: Sequence[MemberChange], reason: str = "") -> list[MemberChange]:
        from kgctl.client.admin import removals

        return self.run(removals.remove_members(self.cluster, group, plan, reason))

    def plan_rebalance(self, group: str, *, evict: bool = False) -> list[RebalanceRow]:
        from kgctl.client.admin import rebalance

        return self.run(rebalance.plan_rebalance(self.cluster, group, evict=evict))

    def plan_rebalances(
        self, groups: Sequence[str], *, evict: bool = False, known_only: bool = False
    ) -> list[RebalanceRow]:
        from kgctl.client.admin import rebalance

        return self.run(rebalance.plan_rebalances(self.cluster, groups, evict=evict, known_only=known_only))

    def request_rebalances(self, plan: Sequence[RebalanceRow], reason: str = "") -> list[RebalanceRow]:
        from kgctl.client.admin import rebalance

        return self.run(rebalance.request_rebalances(self.cluster, plan, reason))

    def await_rebalances(self, rows: Sequence[RebalanceRow], since: float) -> list[RebalanceRow]:
        """`since` is a reading of time.monotonic() right before the rebalances were requested."""
        from kgctl.client.admin import rebalance

        return self.run(rebalance.await_rebalances(self.cluster, rows, since))

    def rebalance(
        self, group: str, plan: Sequence[RebalanceRow], reason: str = "", *, wait: bool = False
    ) -> list[RebalanceRow]:
        from kgctl.client.admin import rebalance

        return self.run(rebalance.rebalance(self.cluster, group, plan, reason, wait=wait))

    def plan_reset(self, group: str, scope: Scope, target: Target, *, allow_active: bool = False) -> ResetPlan:
        from kgctl.client.admin import reset

        return self.run(reset.plan_reset(self.cluster, group, scope, target, allow_active=allow_active))

    def apply_reset(self, plan: ResetPlan) -> ResetPlan:
        from kgctl.client.admin import reset

        return self.run(reset.apply_reset(self.cluster, plan))

    def plan_resets(
        self,
        groups: Sequence[str],
        scope: Scope,
        targets: Target | Mapping[str, Target],
        *,
        create: bool = True,
        known_only: bool = False,
    ) -> list[ResetPlan]:
        from kgctl.client.admin import reset_plans

        steps = reset_plans.plan_resets(self.cluster, groups, scope, targets, create=create, known_only=known_only)
        return self.run(steps)

    def apply_resets(
        self,
        plans: Sequence[ResetPlan],
        commits: Mapping[str, Mapping[TopicPartition, Committed]] | None = None,
    ) -> list[ResetPlan]:
        from kgctl.client.admin import reset

        return self.run(reset.apply_resets(self.cluster, plans, commits))

    # --- states of groups; other commands do not load their module ---

    def cluster_id(self) -> str:
        from kgctl.client.admin import group_states

        return self.run(group_states.cluster_id(self.cluster))

    def group_states(self, names: Sequence[str]) -> dict[str, StoredGroup | KgctlError]:
        """Each group as it is now, with all its committed offsets."""
        from kgctl.client.admin import group_states

        return self.run(group_states.group_states(self.cluster, names))

    def with_logs(self, groups: Sequence[StoredGroup]) -> list[StoredGroup]:
        """The groups with the ends of the logs and the times of the records at their offsets."""
        from kgctl.client.admin import group_states

        return self.run(group_states.with_logs(self.cluster, groups))

    def leader_epochs(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        from kgctl.client.admin import group_states

        return self.run(group_states.leader_epochs(self.cluster, partitions))

    def offsets_at(
        self, wanted: Mapping[TopicPartition, set[int]]
    ) -> dict[tuple[TopicPartition, int], OffsetAt | KgctlError]:
        """The first offset at or after each time; the end of the log if there is none."""
        from kgctl.client.admin import group_states

        return self.run(group_states.offsets_at(self.cluster, wanted))

    def with_record_times(self, plans: Sequence[ResetPlan]) -> list[ResetPlan]:
        """The plans with the times of records at old and new offsets, if these are few; without them if that takes long."""
        from kgctl.client.admin import reset_times

        steps = reset_times.with_record_times(self.cluster, plans)
        return self._connector.run(steps, min(self._connector.settings.timeout, ADDITION_SECONDS))

    def drain_and_reset(
        self,
        plan: ResetPlan,
        scope: Scope,
        target: Target,
        *,
        seconds: float,
        known_only: bool = False,
        commits: Mapping[TopicPartition, Committed] | None = None,
        reason: str = "",
        note: Callable[[str], None] = lambda _: None,
    ) -> ResetPlan:
        """Evict the members of the group and apply the plan, made again for the group without members."""
        from kgctl.client.admin import draining

        steps = draining.drain_and_reset(
            self.cluster, plan, scope, target, known_only=known_only, commits=commits, reason=reason, note=note
        )
        return self._connector.run(steps, seconds)

    def plan_offset_deletions(
        self, groups: Sequence[str], scope: Scope, *, known_only: bool = False
    ) -> list[OffsetChange]:
        from kgctl.client.admin import removals

        return self.run(removals.plan_offset_deletions(self.cluster, groups, scope, known_only=known_only))

    def delete_offsets(self, plan: Sequence[OffsetChange]) -> list[OffsetChange]:
        from kgctl.client.admin import removals

        return self.run(removals.delete_offsets(self.cluster, plan))
