"""The methods of the admin client that change groups: plans, and their execution."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from kgctl.client.admin.operation import ADDITION_SECONDS, Operations, operation
from kgctl.client.net.steps import Steps, Within

if TYPE_CHECKING:
    from kgctl.client.admin import removals
    from kgctl.client.admin.offsets import OffsetAt
    from kgctl.client.admin.reset_targets import Scope, Target
    from kgctl.client.net.errors import KgctlError
    from kgctl.model.changes import GroupChange, MemberChange, OffsetChange, RebalanceRow, ResetPlan
    from kgctl.model.groups import Committed
    from kgctl.model.plans import StoredGroup
    from kgctl.model.topic_partition import TopicPartition


class GroupChanges(Operations):
    """See Admin."""

    @operation
    def plan_group_deletion(self, names: Sequence[str]) -> Steps[list[GroupChange]]:
        from kgctl.client.admin import removals

        return removals.plan_group_deletion(self.cluster, names)

    @operation
    def delete_groups(self, plan: Sequence[GroupChange]) -> Steps[list[GroupChange]]:
        from kgctl.client.admin import removals

        return removals.delete_groups(self.cluster, plan)

    @operation
    def plan_member_removal(
        self, group: str, members: Sequence[str] = (), instances: Sequence[str] = (), *, everyone: bool = False
    ) -> Steps[list[MemberChange]]:
        from kgctl.client.admin import removals

        return removals.plan_member_removal(self.cluster, group, members, instances, everyone=everyone)

    @operation
    def plan_member_removals(
        self, groups: Sequence[str], wanted: removals.Members, *, known_only: bool = False
    ) -> Steps[list[MemberChange]]:
        from kgctl.client.admin import removals

        return removals.plan_member_removals(self.cluster, groups, wanted, known_only=known_only)

    @operation
    def remove_members(self, group: str, plan: Sequence[MemberChange], reason: str = "") -> Steps[list[MemberChange]]:
        from kgctl.client.admin import removals

        return removals.remove_members(self.cluster, group, plan, reason)

    @operation
    def plan_rebalance(self, group: str, *, evict: bool = False) -> Steps[list[RebalanceRow]]:
        from kgctl.client.admin import rebalance

        return rebalance.plan_rebalance(self.cluster, group, evict=evict)

    @operation
    def plan_rebalances(
        self, groups: Sequence[str], *, evict: bool = False, known_only: bool = False
    ) -> Steps[list[RebalanceRow]]:
        from kgctl.client.admin import rebalance

        return rebalance.plan_rebalances(self.cluster, groups, evict=evict, known_only=known_only)

    @operation
    def request_rebalances(self, plan: Sequence[RebalanceRow], reason: str = "") -> Steps[list[RebalanceRow]]:
        from kgctl.client.admin import rebalance

        return rebalance.request_rebalances(self.cluster, plan, reason)

    @operation
    def await_rebalances(self, rows: Sequence[RebalanceRow], since: float) -> Steps[list[RebalanceRow]]:
        """`since` is a reading of time.monotonic() right before the rebalances were requested."""
        from kgctl.client.admin import rebalance

        return rebalance.await_rebalances(self.cluster, rows, since)

    @operation
    def rebalance(
        self, group: str, plan: Sequence[RebalanceRow], reason: str = "", *, wait: bool = False
    ) -> Steps[list[RebalanceRow]]:
        from kgctl.client.admin import rebalance

        return rebalance.rebalance(self.cluster, group, plan, reason, wait=wait)

    @operation
    def plan_reset(self, group: str, scope: Scope, target: Target, *, allow_active: bool = False) -> Steps[ResetPlan]:
        from kgctl.client.admin import reset

        return reset.plan_reset(self.cluster, group, scope, target, allow_active=allow_active)

    @operation
    def apply_reset(self, plan: ResetPlan) -> Steps[ResetPlan]:
        from kgctl.client.admin import reset

        return reset.apply_reset(self.cluster, plan)

    @operation
    def plan_resets(
        self,
        groups: Sequence[str],
        scope: Scope,
        targets: Target | Mapping[str, Target],
        *,
        create: bool = True,
        known_only: bool = False,
    ) -> Steps[list[ResetPlan]]:
        from kgctl.client.admin import reset_plans

        return reset_plans.plan_resets(self.cluster, groups, scope, targets, create=create, known_only=known_only)

    @operation
    def apply_resets(
        self,
        plans: Sequence[ResetPlan],
        commits: Mapping[str, Mapping[TopicPartition, Committed]] | None = None,
    ) -> Steps[list[ResetPlan]]:
        from kgctl.client.admin import reset

        return reset.apply_resets(self.cluster, plans, commits)

    # --- states of groups; other commands do not load their module ---

    @operation
    def cluster_id(self) -> Steps[str]:
        from kgctl.client.admin import group_states

        return group_states.cluster_id(self.cluster)

    @operation
    def group_states(self, names: Sequence[str]) -> Steps[dict[str, StoredGroup | KgctlError]]:
        """Each group as it is now, with all its committed offsets."""
        from kgctl.client.admin import group_states

        return group_states.group_states(self.cluster, names)

    @operation
    def with_logs(self, groups: Sequence[StoredGroup]) -> Steps[list[StoredGroup]]:
        """The groups with the ends of the logs and the times of the records at their offsets."""
        from kgctl.client.admin import group_states

        return group_states.with_logs(self.cluster, groups)

    @operation
    def leader_epochs(self, partitions: Sequence[TopicPartition]) -> Steps[dict[TopicPartition, int]]:
        from kgctl.client.admin import group_states

        return group_states.leader_epochs(self.cluster, partitions)

    @operation
    def offsets_at(
        self, wanted: Mapping[TopicPartition, set[int]]
    ) -> Steps[dict[tuple[TopicPartition, int], OffsetAt | KgctlError]]:
        """The first offset at or after each time; the end of the log if there is none."""
        from kgctl.client.admin import group_states

        return group_states.offsets_at(self.cluster, wanted)

    @operation
    def with_record_times(self, plans: Sequence[ResetPlan]) -> Within[list[ResetPlan]]:
        """The plans with the times of records at old and new offsets, if these are few; without them if that takes long."""
        from kgctl.client.admin import reset_times

        steps = reset_times.with_record_times(self.cluster, plans)
        return self.shortly(steps, ADDITION_SECONDS)

    @operation
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
    ) -> Within[ResetPlan]:
        """Evict the members of the group and apply the plan, made again for the group without members."""
        from kgctl.client.admin import draining

        steps = draining.drain_and_reset(
            self.cluster, plan, scope, target, known_only=known_only, commits=commits, reason=reason, note=note
        )
        return Within(steps, seconds)

    @operation
    def plan_offset_deletions(
        self, groups: Sequence[str], scope: Scope, *, known_only: bool = False
    ) -> Steps[list[OffsetChange]]:
        from kgctl.client.admin import removals

        return removals.plan_offset_deletions(self.cluster, groups, scope, known_only=known_only)

    @operation
    def delete_offsets(self, plan: Sequence[OffsetChange]) -> Steps[list[OffsetChange]]:
        from kgctl.client.admin import removals

        return removals.delete_offsets(self.cluster, plan)
