"""Moves committed offsets of groups: carries out plans, with a check right before and a read-back right after."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from broker.light_dataclasses import replace
from kgctl.client.admin.groups import describe_groups
from kgctl.client.admin.offsets import commit_each, committed, is_of_membership, stable_of
from kgctl.client.admin.reset_plans import plan_resets
from kgctl.client.admin.reset_targets import PENDING, Scope, Target, note_pending
from kgctl.client.net.cluster import Cluster
from kgctl.client.net.errors import KgctlError, NotFound, Precondition, from_row
from kgctl.client.net.steps import Steps
from kgctl.model.changes import DONE, FAILED, SKIPPED, ResetPlan, ResetRow
from kgctl.model.failure import RowError
from kgctl.model.groups import CLASSIC, EMPTY_STATES, SHARE, Committed
from kgctl.model.topic_partition import TopicPartition

MOVED = "GROUP_MOVED"


def plan_reset(
    cluster: Cluster, group: str, scope: Scope, target: Target, *, allow_active: bool = False
) -> Steps[ResetPlan]:
    """The plan for one group. As with Kafka's tool, the group need not exist: the commit creates it.

    Raises the error of the plan, and Precondition if the group has members, unless `allow_active`.
    """
    (plan,) = yield from plan_resets(cluster, [group], scope, target)
    if plan.error:
        raise from_row(plan.error)
    if plan.is_active and not allow_active:
        raise not_inactive(plan)
    return plan


def apply_reset(cluster: Cluster, plan: ResetPlan) -> Steps[ResetPlan]:
    """Commit the offsets of one plan. Raises Precondition if the group got members since the plan was made."""
    (done,) = yield from apply_resets(cluster, [plan])
    if done.error:
        raise from_row(done.error)
    return done


def apply_resets(
    cluster: Cluster,
    plans: Sequence[ResetPlan],
    commits: Mapping[str, Mapping[TopicPartition, Committed]] | None = None,
) -> Steps[list[ResetPlan]]:
    """Commit the offsets of the plans and read them back.

    A group that has members, or has changed since its plan was made, is left alone: its plan gets an error. So is one whose
    plan has a failed row: the other rows are skipped. `commits` has leader epochs and metadata for offsets of the plans;
    those for other offsets are left out.
    """
    checked = yield from _check_again(cluster, [replace(plan, error=_refusal(plan)) for plan in plans])
    good: dict[str, dict[TopicPartition, int | Committed]] = {
        plan.group: {
            key: known[key] if key in known and known[key].offset == offset else offset
            for known in [(commits or {}).get(plan.group, {})]
            for key, offset in _offsets(plan).items()
        }
        for plan in checked
        if not plan.failed and plan.rows
    }
    made = {
        plan.group: {row.topic for row in plan.rows}
        for plan in checked
        if plan.group in good and _is_new_share_group(plan)
    }
    failures = (yield from _made(cluster, made)) if made else {}
    errors = yield from commit_each(cluster, {group: some for group, some in good.items() if not failures.get(group)})
    errors |= {group: dict.fromkeys(good[group], error) for group, error in failures.items() if error}
    if lost := [group for group in made if not failures[group] and None not in errors[group].values()]:
        yield from _unmade(cluster, lost)
    raced = [group for group in good if _is_refused_to_members(errors[group].values())]
    described = (yield from describe_groups(cluster, raced, offsets=False)) if raced else []
    states = {row.group: row for row in described}
    found = yield from committed(cluster, [group for group in good if group not in states])
    done = []
    for plan in checked:
        if plan.group not in good:
            done.append(skipped(plan))
        elif plan.group in states:
            now = replace(plan, state=states[plan.group].state, members=states[plan.group].members)
            done.append(skipped(replace(now, error=not_inactive(now).as_row())))
        else:
            done.append(_applied(plan, errors[plan.group], found[plan.group]))
    return done


def _is_new_share_group(plan: ResetPlan) -> bool:
    return plan.type == SHARE and plan.state is None


def _made(cluster: Cluster, topics: Mapping[str, Iterable[str]]) -> Steps[dict[str, KgctlError | None]]:
    from kgctl.client.admin.share_creation import make_share_groups

    return make_share_groups(cluster, topics)


def _unmade(cluster: Cluster, groups: Sequence[str]) -> Steps[None]:
    from kgctl.client.admin.share_creation import remove_made

    return remove_made(cluster, groups)


def not_inactive(
    plan: ResetPlan, way_out: str = "evict them with `kgctl groups reset-offsets --drain`"
) -> Precondition:
    # Kafka can remove members of classic groups only.
    removal = f", or {way_out}" if plan.type in (CLASSIC, None) else ""
    return Precondition(
        f"Assignments can only be reset if the group '{plan.group}' is inactive, but the current state is "
        f"{plan.state}. Stop its consumers{removal}."
    )


def _refusal(plan: ResetPlan) -> RowError | None:
    return plan.error or (not_inactive(plan).as_row() if plan.is_active else None)


def _check_again(cluster: Cluster, plans: Sequence[ResetPlan]) -> Steps[list[ResetPlan]]:
    """The plans, with errors where the group has changed: it was deleted, has members, or other offsets."""
    wanted = {plan.group: list(_offsets(plan)) for plan in plans if not plan.failed and plan.rows}
    if not wanted:
        return list(plans)
    described = {row.group: row for row in (yield from describe_groups(cluster, list(wanted), offsets=False))}
    stable = yield from stable_of(cluster, wanted)
    checked = []
    for plan in plans:
        if plan.group in wanted:
            now = described[plan.group]
            is_missing = now.error is not None and now.error.name == NotFound.name
            if is_missing and plan.state is not None:
                about = f"Group '{plan.group}' was deleted since the plan was made."
                plan = replace(plan, error=RowError(NotFound.name, about))
            elif now.error and not is_missing:
                plan = replace(plan, error=now.error)
            elif not is_missing and now.state not in EMPTY_STATES:
                plan = replace(plan, state=now.state, type=now.type, members=now.members)
                plan = replace(plan, error=not_inactive(plan).as_row())
            else:
                rows = note_pending(plan.rows, stable[plan.group], refuse=True)
                plan = replace(plan, rows=rows, error=_what_moved(plan.group, rows, stable[plan.group]))
        checked.append(plan)
    return checked


def _what_moved(
    group: str, rows: Iterable[ResetRow], stable: Mapping[TopicPartition, Committed] | KgctlError
) -> RowError | None:
    """An error if a committed offset is not the one of the plan: another client commits, although there are no members."""
    if isinstance(stable, KgctlError):
        return None
    for row in rows:
        assert row.partition is not None
        now = stable.get(TopicPartition(row.topic, row.partition))
        if now is not None and now.error is not None and now.error.name != PENDING:
            return now.error
        offset = now.offset if now else None
        if offset != row.old_offset and not row.error:
            about = (
                f"committed {_offset_text(offset)} now, not {_offset_text(row.old_offset)} as when the plan was made"
            )
            return RowError(MOVED, f"group {group!r}, {row.topic}-{row.partition}: {about}: another client commits")
    return None


def _offset_text(offset: int | None) -> str:
    return "nothing" if offset is None else str(offset)


def _offsets(plan: ResetPlan) -> dict[TopicPartition, int]:
    return {
        TopicPartition(row.topic, row.partition): row.new_offset
        for row in plan.rows
        if row.partition is not None and row.new_offset is not None
    }


def _is_refused_to_members(errors: Collection[KgctlError | None]) -> bool:
    """Whether the coordinator refused the whole commit because the group has members by now."""
    return None not in errors and any(map(is_of_membership, errors))


def skipped(plan: ResetPlan) -> ResetPlan:
    return replace(plan, rows=tuple(row if row.error else replace(row, status=SKIPPED) for row in plan.rows))


def _applied(plan: ResetPlan, errors: Mapping[TopicPartition, KgctlError | None], now: Any) -> ResetPlan:
    keyed = ((row, TopicPartition(row.topic, row.partition)) for row in plan.rows if row.partition is not None)
    return replace(plan, rows=tuple(_outcome(row, key, errors[key], now) for row, key in keyed))


def _outcome(
    row: ResetRow, key: TopicPartition, error: KgctlError | None, now: Mapping[TopicPartition, Committed] | KgctlError
) -> ResetRow:
    if error:
        return replace(row, status=FAILED, error=error.as_row())
    if isinstance(now, KgctlError):
        return replace(row, status=FAILED, error=now.as_row())
    found = now.get(key)
    if found is None or found.offset != row.new_offset:
        seen = "nothing" if found is None else found.offset
        about = f"{row.topic}-{row.partition}: committed {row.new_offset}, but read back {seen}: another client commits"
        return replace(row, status=FAILED, error=RowError("READ_BACK_DIFFERS", about))
    return replace(row, status=DONE)
