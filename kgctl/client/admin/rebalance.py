"""Rebalances on request: with kgctl's own request where the broker has it, else by evicting the members."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from broker.light_dataclasses import replace
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
from kgctl.model.groups import CLASSIC, CONSUMER, GroupDescription, MemberRow, TopicPartitions

POLL_S = 0.05
# Without generations, the first Stable state may have only some of the evicted members; the others join within this time.
SETTLE_S = 10.0


def plan_rebalance(cluster: Cluster, group: str, *, evict: bool = False) -> Steps[list[RebalanceRow]]:
    """A row for each member that would rejoin.

    Raises NotFound if the group does not exist. Raises Precondition if it has no members, is neither a classic nor a
    consumer group, or if its coordinator can only evict and `evict` is false.
    """
    (found,) = (yield from _plans(cluster, [group], evict=evict)).values()
    if isinstance(found, KgctlError):
        raise found
    return found


def plan_rebalances(
    cluster: Cluster, groups: Sequence[str], *, evict: bool = False, known_only: bool = False
) -> Steps[list[RebalanceRow]]:
    """The same for many groups: one that cannot be rebalanced is a row without a member, with its error.

    With `known_only`, groups without members are left out, and those that only their members can rebalance.
    """
    rows: list[RebalanceRow] = []
    for group, found in (yield from _plans(cluster, groups, evict=evict)).items():
        if not isinstance(found, KgctlError):
            rows += found
        elif not (known_only and isinstance(found, _NoMembers | _OnlyByMembers)):
            row = RebalanceRow(group, "", None, None, None, EVICTION if evict else TRIGGER)
            rows.append(replace(row, status=FAILED, error=found.as_row()))
    return rows


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
    return (yield from await_rebalances(cluster, rows, began, clock=clock))


def request_rebalances(cluster: Cluster, plan: Sequence[RebalanceRow], reason: str = "") -> Steps[list[RebalanceRow]]:
    """Execute the plans of many groups, one after the other; one that fails does not stop the others."""
    done: list[RebalanceRow] = []
    for group, rows in _by_group(plan).items():
        if all(row.error for row in rows):
            done += rows
            continue
        try:
            done += yield from rebalance(cluster, group, rows, reason)
        except KgctlError as error:
            done += [replace(row, status=FAILED, error=error.as_row()) for row in rows]
    return done


def await_rebalances(
    cluster: Cluster, rows: Sequence[RebalanceRow], since: float, *, clock: Callable[[], float] = time.monotonic
) -> Steps[list[RebalanceRow]]:
    """The members of each group once it is Stable in a newer generation, with what they gained and lost.

    `since` is a reading of the clock right before the rebalances were requested. Groups that are not Stable in time have
    failed rows.
    """
    before = _by_group(rows)
    pending = {group for group, some in before.items() if not all(row.error for row in some)}
    done: dict[str, list[RebalanceRow]] = {group: some for group, some in before.items() if group not in pending}
    stable_s: dict[str, float] = {}
    seen: dict[str, GroupDescription] = {}
    while pending:
        described = yield from describe_groups(cluster, sorted(pending), offsets=False)
        for group in described:
            some = before[group.group]
            if group.error:
                done[group.group] = _all_failed(some, _in_time(group.error, seen.get(group.group)))
                continue
            seen[group.group] = group
            if group.state == "Stable" and _is_newer(group, some):
                now_s = clock()
                if _is_complete(group, some) or now_s - stable_s.setdefault(group.group, now_s) >= SETTLE_S:
                    done[group.group] = _outcome(some, group, round((now_s - since) * 1000))
        waiting = [group for group in described if group.group not in done]
        pending = {group.group for group in waiting}
        try:
            if pending:
                yield Pause(POLL_S, _unfinished(waiting[0]))
        except TimedOut as error:
            done |= {
                group.group: _all_failed(
                    before[group.group], TimedOut(str(error).partition(": ")[0] + ": " + _unfinished(group)).as_row()
                )
                for group in waiting
            }
            break
    return [row for group in before for row in done[group]]


def _by_group(rows: Sequence[RebalanceRow]) -> dict[str, list[RebalanceRow]]:
    found: dict[str, list[RebalanceRow]] = {}
    for row in rows:
        found.setdefault(row.group, []).append(row)
    return found


def _all_failed(rows: Sequence[RebalanceRow], error: RowError) -> list[RebalanceRow]:
    return [row if row.error else replace(row, status=FAILED, error=error) for row in rows]


def _in_time(error: RowError, seen: GroupDescription | None) -> RowError:
    """If only the last answer is late, what the one before said matters more."""
    return (
        error
        if seen is None or error.name != TimedOut.name
        else TimedOut(f"no answer in time: {_unfinished(seen)}").as_row()
    )


def _unfinished(group: GroupDescription) -> str:
    return f"group '{group.group}' is {group.state} and not yet Stable in a newer generation"


def _plans(
    cluster: Cluster, groups: Sequence[str], *, evict: bool
) -> Steps[dict[str, list[RebalanceRow] | KgctlError]]:
    described = yield from describe_groups(cluster, groups, offsets=False)
    coordinators = yield from cluster.coordinators([group.group for group in described if not group.error])
    plans: dict[str, list[RebalanceRow] | KgctlError] = {}
    for group in described:
        try:
            _refuse_what_cannot_rebalance(group)
        except KgctlError as error:
            plans[group.group] = error
            continue
        node = coordinators[group.group]
        if isinstance(node, KgctlError):
            plans[group.group] = node
            continue
        offers_trigger = cluster.range_of(node.endpoint, TriggerRebalanceRequest.API_KEY) is not None
        if not offers_trigger and group.type != CLASSIC:
            plans[group.group] = _OnlyByMembers(
                f"The coordinator of group '{group.group}' cannot trigger a rebalance, and it evicts no members of the "
                "consumer protocol (KIP-848). Restart a member instead."
            )
            continue
        if not (offers_trigger or evict):
            plans[group.group] = Precondition(
                f"The coordinator of group '{group.group}' cannot trigger a rebalance without evicting members. "
                "Add --evict to remove all of them; running members rejoin under new ids."
            )
            continue
        method = TRIGGER if offers_trigger else EVICTION
        rows = [_row(member, method, group.generation) for member in group.members]
        # During a rebalance, the coordinator no longer reports what members owned.
        plans[group.group] = rows if group.state == "Stable" else [replace(r, assignment_before=None) for r in rows]
    return plans


def _refuse_what_cannot_rebalance(group: GroupDescription) -> None:
    if group.error:
        raise from_row(group.error)
    if group.type not in (CLASSIC, CONSUMER):
        raise Precondition(
            f"Group '{group.group}' is a {(group.type or 'unknown').lower()} group: its members get and give partitions without"
            " rebalances, so there is none to trigger."
        )
    if group.state in ("Empty", "Dead"):
        raise _has_no_members(group.group)


class _NoMembers(Precondition):
    """No failure if the group was not named."""


class _OnlyByMembers(Precondition):
    """Members alone can cause a rebalance. No failure if the group was not named."""


def _has_no_members(group: str) -> Precondition:
    return _NoMembers(f"Consumer group '{group}' has no active members to rebalance.")


def _row(member: MemberRow, method: str, generation: int | None) -> RebalanceRow:
    return RebalanceRow(
        member.group,
        member.consumer_id or "",
        member.group_instance_id,
        member.host,
        member.client_id,
        method,
        generation_before=generation,
        assignment_before=member.current_assignment,
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


def _is_newer(described: GroupDescription, rows: Sequence[RebalanceRow]) -> bool:
    before = rows[0].generation_before
    if described.generation is not None and before is not None:
        return described.generation > before
    # Without generations: no member has an evicted id.
    evicted = {row.consumer_id for row in rows if not row.error}
    return not evicted.intersection(member.consumer_id for member in described.members)


def _is_complete(described: GroupDescription, rows: Sequence[RebalanceRow]) -> bool:
    """Whether all have joined again: a newer generation shows it; without generations, the number of members does."""
    has_generations = described.generation is not None and rows[0].generation_before is not None
    return has_generations or len(described.members) >= sum(not row.error for row in rows)


def _outcome(rows: Sequence[RebalanceRow], now: GroupDescription, stable_after_ms: int) -> list[RebalanceRow]:
    """Which members rejoined, are gone, or are new; a static member is identified by its instance id."""
    members = {_identity(member): member for member in now.members}
    before = {_identity(row) for row in rows}
    new = [
        _moved(
            replace(_row(member, rows[0].method, rows[0].generation_before), assignment_before=(), status=JOINED),
            member.current_assignment,
        )
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
        return _moved(replace(row, status=GONE), ())
    rejoined = replace(row, consumer_id=member.consumer_id or "", status=REJOINED)
    return _moved(rejoined, member.current_assignment)


def _moved(row: RebalanceRow, after: tuple[TopicPartitions, ...] | None) -> RebalanceRow:
    """The row with the assignment after the rebalance, and how many partitions the member gained and lost."""
    row = replace(row, assignment_after=after)
    if row.assignment_before is None or after is None:
        return row
    old, new = _partitions(row.assignment_before), _partitions(after)
    return replace(row, gained=len(new - old), lost=len(old - new))


def _partitions(assignment: tuple[TopicPartitions, ...]) -> set[tuple[str, int]]:
    return {(entry.topic, number) for entry in assignment for number in entry.partitions}


def _identity(member: MemberRow | RebalanceRow) -> tuple[str, str | None]:
    return ("instance", member.group_instance_id) if member.group_instance_id else ("member", member.consumer_id)
