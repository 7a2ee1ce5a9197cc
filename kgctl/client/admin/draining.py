"""Resets a group that has members: evicts them, waits until it is empty, plans again, commits."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from broker.light_dataclasses import replace
from kgctl.client.admin.removals import plan_member_removal, remove_members
from kgctl.client.admin.reset import MOVED, apply_resets, skipped
from kgctl.client.admin.reset_plans import plan_resets
from kgctl.client.admin.reset_targets import PENDING, Scope, Target
from kgctl.client.net.cluster import Cluster
from kgctl.client.net.errors import KgctlError, Precondition, TimedOut
from kgctl.client.net.steps import Pause, Steps
from kgctl.model.changes import ResetPlan
from kgctl.model.groups import CLASSIC, Committed
from kgctl.model.topic_partition import TopicPartition

POLL_S = 0.1
REASON = "offsets are being reset"


def drain_and_reset(
    cluster: Cluster,
    plan: ResetPlan,
    scope: Scope,
    target: Target,
    *,
    known_only: bool = False,
    commits: Mapping[TopicPartition, Committed] | None = None,
    reason: str = "",
    note: Callable[[str], None] = lambda _: None,
) -> Steps[ResetPlan]:
    """Evict, plan and commit until the plan is applied; running consumers may rejoin in between, and are evicted again.

    Members that no request can evict (of consumer groups) and open transactions are waited for. No member is evicted for a
    plan that cannot be applied. When the time runs out, nothing has been committed, and the plan has the error.
    """
    evicted = 0
    is_waiting = False
    while True:
        if _is_hopeless(plan):
            return skipped(plan)
        obstacle = _obstacle(plan)
        try:
            if plan.is_active and plan.type == CLASSIC:
                evicted += yield from _evict(cluster, plan, reason, note)
            elif obstacle is not None:
                if not is_waiting:
                    note(f"Group '{plan.group}': waiting until {obstacle}.")
                    is_waiting = True
                yield Pause(POLL_S, obstacle)
            (plan,) = yield from plan_resets(
                cluster, [plan.group], scope, target, create=plan.state is None, known_only=known_only
            )
            if not _is_hopeless(plan) and _obstacle(plan) is None:
                (done,) = yield from apply_resets(cluster, [plan], {plan.group: commits or {}})
                if not _is_overtaken(done):
                    return done
                plan = replace(done, error=None, rows=plan.rows)
                yield Pause(POLL_S, _obstacle(plan) or "no other client commits")
            elif (rest := _obstacle(plan)) is not None:
                yield Pause(POLL_S, rest)
        except TimedOut:
            return skipped(replace(plan, error=_gave_up(plan, evicted).as_row()))


def _evict(cluster: Cluster, plan: ResetPlan, reason: str, note: Callable[[str], None]) -> Steps[int]:
    leaving = yield from plan_member_removal(cluster, plan.group, everyone=True)
    if leaving:
        names = ", ".join(row.group_instance_id or row.consumer_id for row in leaving[:3])
        more = f" and {len(leaving) - 3} more" if len(leaving) > 3 else ""
        note(f"Group '{plan.group}': evicting {_counted(len(leaving))}: {names}{more}.")
        try:
            yield from remove_members(cluster, plan.group, leaving, reason or REASON)
        except KgctlError as error:
            # All of them, or the group, may be gone by now.
            if error.name not in ("UNKNOWN_MEMBER_ID", "GROUP_ID_NOT_FOUND"):
                raise
    return len(leaving)


def _is_hopeless(plan: ResetPlan) -> bool:
    """Whether neither an eviction nor time makes the plan applicable."""
    return plan.error is not None or any(row.error and row.error.name != PENDING for row in plan.rows)


def _obstacle(plan: ResetPlan) -> str | None:
    """What an eviction or time removes, and keeps the plan from being applied now."""
    if plan.is_active:
        if not plan.members:
            return f"it is no longer {plan.state}"
        return f"its {_counted(len(plan.members))} {'has' if len(plan.members) == 1 else 'have'} left"
    return "its open transactions have ended" if _has_pending(plan) else None


def _has_pending(plan: ResetPlan) -> bool:
    return any(row.error is not None and row.error.name == PENDING for row in plan.rows)


def _is_overtaken(done: ResetPlan) -> bool:
    """Whether nothing was committed because a member joined, a transaction began, or another client committed meanwhile."""
    return _has_pending(done) or (done.error is not None and done.error.name in (Precondition.name, MOVED))


def _gave_up(plan: ResetPlan, evicted: int) -> TimedOut:
    if plan.is_active and plan.type == CLASSIC:
        return TimedOut(
            f"group '{plan.group}' is still {plan.state}, with {_counted(len(plan.members))}; {evicted} evicted, and they "
            "rejoin: stop the consumers and repeat the command. No offset was changed."
        )
    if plan.is_active:
        return TimedOut(
            f"group '{plan.group}' still has {_counted(len(plan.members))}, which no request can evict from a group of "
            f"type {plan.type}: stop them and repeat the command. No offset was changed."
        )
    if not _has_pending(plan):
        return TimedOut(
            f"group '{plan.group}' has no members, but another client commits offsets: stop it and repeat the command. No "
            "offset was changed."
        )
    return TimedOut(
        f"group '{plan.group}' still has offsets of open transactions; see `kgctl transactions list`. No offset was changed."
    )


def _counted(members: int) -> str:
    return "1 member" if members == 1 else f"{members} members"
