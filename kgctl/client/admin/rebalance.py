"""Rebalances on request: with kgctl's own request where the broker has it, else by evicting the members."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from broker.protocol.errors import ErrorCode
from broker.protocol.messages.trigger_rebalance import TriggerRebalanceRequest, TriggerRebalanceResponse
from kgctl.client.admin.groups import describe_groups
from kgctl.client.admin.removals import remove_members
from kgctl.client.net.authorization import Asked
from kgctl.client.net.cluster import Ask, Batch, Cluster, Node
from kgctl.client.net.errors import BrokerError, KgctlError, Precondition, TimedOut, from_row
from kgctl.client.net.steps import Pause, Steps
from kgctl.model.changes import DONE, EVICTION, FAILED, GONE, JOINED, REJOINED, TRIGGER, MemberChange, RebalanceRow
from kgctl.model.failure import RowError
from kgctl.model.groups import CLASSIC, GroupDescription, MemberRow

POLL_S = 0.05


def plan_rebalance(cluster: Cluster, group: str, *, evict: bool = False) -> Steps[list[RebalanceRow]]:
    """A row for each member that would rejoin.

    Raises NotFound if the group does not exist. Raises Precondition if it has no members, is not a classic group, or if
    its coordinator can only evict and `evict` is false.
    """
    (described,) = yield from describe_groups(cluster, [group], offsets=False)
    _refuse_what_cannot_rebalance(described)
    found = yield from cluster.coordinators([group])
    node = found[group]
    if isinstance(node, KgctlError):
        raise node
    offers_trigger = cluster.range_of(node.endpoint, TriggerRebalanceRequest.API_KEY) is not None
    if not (offers_trigger or evict):
        raise Precondition(
            f"The coordinator of group '{group}' cannot trigger a rebalance without evicting members. "
            "Add --evict to remove all of them; running members rejoin under new ids."
        )
    method = TRIGGER if offers_trigger else EVICTION
    return [_row(member, method, described.generation) for member in described.members]


def rebalance(
    cluster: Cluster,
    group: str,
    plan: Sequence[RebalanceRow],
    reason: str = "",
    *,
    wait: bool = False,
    clock: Callable[[], float] = time.monotonic,
) -> Steps[list[RebalanceRow]]:
    """Execute the plan. With `wait`, the rows show the members once the group is Stable in a newer generation.

    Rows fail with TIMED_OUT if that does not happen in time.
    """
    if not plan:
        return []
    began = clock()
    rows = yield from (_evict if plan[0].method == EVICTION else _trigger)(cluster, group, list(plan), reason)
    if not wait or all(row.error for row in rows):
        return rows
    described = yield from _stable_again(cluster, group, rows)
    if isinstance(described, RowError):
        return [row if row.error else replace(row, status=FAILED, error=described) for row in rows]
    return _outcome(rows, described, round((clock() - began) * 1000))


def _refuse_what_cannot_rebalance(group: GroupDescription) -> None:
    if group.error:
        raise from_row(group.error)
    if group.type != CLASSIC:
        raise Precondition(f"Group '{group.group}' is not a classic group: its coordinator rebalances automatically.")
    if group.state in ("Empty", "Dead"):
        raise _has_no_members(group.group)


def _has_no_members(group: str) -> Precondition:
    return Precondition(f"Consumer group '{group}' has no active members to rebalance.")


def _row(member: MemberRow, method: str, generation: int | None) -> RebalanceRow:
    return RebalanceRow(
        member.group,
        member.consumer_id or "",
        member.group_instance_id,
        member.host,
        member.client_id,
        method,
        generation_before=generation,
    )


def _trigger(cluster: Cluster, group: str, plan: list[RebalanceRow], reason: str) -> Steps[list[RebalanceRow]]:
    request = TriggerRebalanceRequest(groups=[TriggerRebalanceRequest.Group(group_id=group, reason=reason or None)])

    def read(answer: TriggerRebalanceResponse) -> dict[str, int | KgctlError]:
        return {row.group_id: _generation_or_error(row) for row in answer.groups}

    def make(node: Node, names: list[str]) -> list[Batch[str]]:
        return [Batch(Ask(node.endpoint, request, TriggerRebalanceResponse), names, read)]

    found = yield from cluster.at_coordinators([group], make)
    if isinstance(found[group], KgctlError):
        raise found[group]
    # The generation that this request ends; the plan may be older.
    return [replace(row, generation_before=found[group], status=DONE) for row in plan]


def _generation_or_error(row: TriggerRebalanceResponse.Group) -> int | KgctlError:
    if row.error_code == ErrorCode.INVALID_REQUEST:
        return _has_no_members(row.group_id)
    if row.error_code:
        asked = Asked(TriggerRebalanceRequest, group=row.group_id)
        return BrokerError(row.error_code, f"group {row.group_id!r}", row.error_message, asked=asked)
    return row.generation_id


def _evict(cluster: Cluster, group: str, plan: list[RebalanceRow], reason: str) -> Steps[list[RebalanceRow]]:
    leaving = [MemberChange(row.group, row.consumer_id, row.group_instance_id, row.host, row.client_id) for row in plan]
    left = yield from remove_members(cluster, group, leaving, reason)
    # A member that has left in the meantime is no failure.
    errors = [None if row.error and row.error.name == ErrorCode.UNKNOWN_MEMBER_ID.name else row.error for row in left]
    return [
        replace(row, status=FAILED if error else DONE, error=error) for row, error in zip(plan, errors, strict=True)
    ]


def _stable_again(cluster: Cluster, group: str, rows: Sequence[RebalanceRow]) -> Steps[GroupDescription | RowError]:
    while True:
        (described,) = yield from describe_groups(cluster, [group], offsets=False)
        if described.error:
            return described.error
        if described.state == "Stable" and _is_newer(described, rows):
            return described
        try:
            yield Pause(POLL_S, f"group '{group}' is {described.state} and not yet Stable in a newer generation")
        except TimedOut as error:
            return error.as_row()


def _is_newer(described: GroupDescription, rows: Sequence[RebalanceRow]) -> bool:
    before = rows[0].generation_before
    if described.generation is not None and before is not None:
        return described.generation > before
    # Without generations: no member has an evicted id.
    evicted = {row.consumer_id for row in rows if not row.error}
    return not evicted.intersection(member.consumer_id for member in described.members)


def _outcome(rows: Sequence[RebalanceRow], now: GroupDescription, stable_after_ms: int) -> list[RebalanceRow]:
    """Which members rejoined, are gone, or are new; a static member is identified by its instance id."""
    members = {_identity(member): member for member in now.members}
    before = {_identity(row) for row in rows}
    new = [
        replace(_row(member, rows[0].method, rows[0].generation_before), status=JOINED)
        for identity, member in members.items()
        if identity not in before
    ]
    changed = [*(_member_outcome(row, members.get(_identity(row))) for row in rows), *new]
    return [
        row if row.error else replace(row, generation_after=now.generation, stable_after_ms=stable_after_ms)
        for row in changed
    ]


def _member_outcome(row: RebalanceRow, member: MemberRow | None) -> RebalanceRow:
    if row.error:
        return row
    if member is None:
        return replace(row, status=GONE)
    return replace(row, consumer_id=member.consumer_id or "", status=REJOINED)


def _identity(member: MemberRow | RebalanceRow) -> tuple[str, str | None]:
    return ("instance", member.group_instance_id) if member.group_instance_id else ("member", member.consumer_id)
