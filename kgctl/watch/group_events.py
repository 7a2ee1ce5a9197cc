"""What happened to a group, in a sentence: from an event of its history, or from what snapshots show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kgctl.model.cluster_view import ClusterEvent, EventKind
from kgctl.model.history import DELETED, EMPTY, FENCED, LEFT_OR_TIMED_OUT, REPLACED, STABLE, GroupEventRow, MemberClient
from kgctl.model.watched import Outcome, Rebalance
from kgctl.watch.figures import counted, span
from kgctl.watch.restarts import RESTARTED, client_of

NAMED = 2
SHORTEST_S = 0.1
_ENDED = (Outcome.STABLE, Outcome.EMPTY)


def of_history(row: GroupEventRow) -> ClusterEvent | None:
    """None for an event that is no news: a rebalance that has begun, or one that only repairs what a restart broke."""
    if row.event == DELETED:
        return ClusterEvent(row.timestamp, EventKind.GROUP, row.group, "deleted")
    if row.event == REPLACED:
        text = f"{_named(row.joined, row.joined_count or 0, row.clients)} came back under a new id"
        return ClusterEvent(row.timestamp, EventKind.MEMBER, row.group, text)
    if row.event == FENCED:
        return ClusterEvent(row.timestamp, EventKind.MEMBER, row.group, f"fenced: {row.reason}")
    if row.event not in (STABLE, EMPTY) or (row.cause == RESTARTED and not row.joined_count and not row.left_count):
        return None
    seconds = ((row.prepare_ms or 0) + (row.complete_ms or 0)) / 1000 if row.prepare_ms is not None else None
    changes = _changes(row.joined, row.joined_count or 0, row.left, row.left_count or 0, row.left_causes, row.clients)
    return _rebalance(row.timestamp, row.group, seconds, row.event == EMPTY, changes or row.cause, row.partitions_moved)


def of_rebalance(group: str, row: Rebalance, clients: Mapping[str, MemberClient]) -> ClusterEvent | None:
    """An observed rebalance that has ended. `clients` are those of members by member id."""
    at_ms = row.started_ms if row.ended_ms is None else row.ended_ms
    if row.outcome not in _ENDED or (row.outcome is Outcome.EMPTY and not row.left_count):
        return None
    seconds = None if row.prepare_ms is None else (row.prepare_ms + (row.complete_ms or 0)) / 1000
    changes = _changes(row.joined, row.joined_count, row.left, row.left_count, (), clients)
    return _rebalance(at_ms, group, seconds, row.outcome is Outcome.EMPTY, changes, row.partitions_moved)


def _rebalance(
    at_ms: int, group: str, seconds: float | None, is_empty: bool, changes: str | None, moved: int | None
) -> ClusterEvent:
    took = "" if seconds is None else f" in {span(seconds) if seconds >= SHORTEST_S else f'< {span(SHORTEST_S)}'}"
    parts = [("empty" if is_empty else f"rebalanced{took}") + (f": {changes}" if changes else "")]
    if moved and not is_empty:
        parts.append(f"{counted(moved, 'partition')} moved")
    return ClusterEvent(at_ms, EventKind.REBALANCE, group, ", ".join(parts), seconds=seconds)


def _changes(
    joined: Sequence[str],
    joined_count: int,
    left: Sequence[str],
    left_count: int,
    causes: Sequence[str],
    clients: Mapping[str, MemberClient],
) -> str | None:
    parts = [f"{_named(joined, joined_count, clients)} joined"] if joined_count else []
    if left_count:
        kinds = set(causes)
        how = f"lost ({', '.join(sorted(kinds - {'member left'}))})"
        if kinds <= {"member left"}:
            how = "left"
        elif kinds == {LEFT_OR_TIMED_OUT}:
            how = "left or timed out"
        parts.append(f"{_named(left, left_count, clients)} {how}")
    return ", ".join(parts) or None


def _named(members: Sequence[str], count: int, clients: Mapping[str, MemberClient]) -> str:
    names = ", ".join(_name(one, clients.get(one)) for one in members[:NAMED])
    more = count - min(len(members), NAMED)
    return f"{names} and {more:,} more" if names and more else names or counted(count, "member")


def _name(member_id: str, client: MemberClient | None) -> str:
    """The client id, and the host if it is known."""
    if client is None or not client.client_id:
        return client_of(member_id) or member_id
    return f"{client.client_id} ({host_name(client)})"


def host_name(client: MemberClient) -> str:
    """Without the slash with which Java writes an address."""
    return client.host.removeprefix("/")
