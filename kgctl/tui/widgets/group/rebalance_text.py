"""What is known about one rebalance, in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime

from kgctl.model.watched import Outcome, Rebalance
from kgctl.tui import cells
from kgctl.tui.widgets.group.bars import Bar
from kgctl.tui.widgets.group.names import name_of
from kgctl.watch.figures import counted


def sentences(bar: Bar, names: Mapping[str, str]) -> list[str]:
    """One line each: how it went, who joined and left and why, the reason that a client gave, when it began."""
    row = bar.rebalance
    lines = [phases(bar)]
    lines += _members("Joined", row.joined, row.joined_count, (), names)
    lines += _members("Left", row.left, row.left_count, row.left_causes, names)
    if row.reason and not row.is_observed:
        lines.append(f"Reason: \u201c{cells.name(row.reason)}\u201d")
    return [*lines, f"Began {_moment(row)}."]


def phases(bar: Bar) -> str:
    """How long both phases took, how many partitions moved, and how it ended if not with an assignment."""
    row = bar.rebalance
    if bar.is_under_way and bar.is_reconciliation:
        return f"Members reconcile for {cells.milliseconds(bar.took_ms)} so far."
    if bar.is_under_way:
        if row.prepare_ms is None:
            return f"Waiting for members for {cells.milliseconds(bar.took_ms)} so far."
        return f"All members joined after {cells.milliseconds(row.prepare_ms)}; waiting for the leader's assignment."
    if row.outcome is Outcome.INTERRUPTED:
        return "A broker restart interrupted it; its duration is not known."
    if row.outcome is Outcome.MEMBER_REPLACED:
        return "A static member came back with a new member id and took its place without a rebalance."
    text = _duration(bar)
    if row.outcome is Outcome.EMPTY and row.prepare_ms is not None:
        text = f"It took {cells.milliseconds(bar.took_ms)}"
    if row.outcome is Outcome.SUPERSEDED:
        return f"{text}; another rebalance superseded it before there was an assignment."
    if row.outcome is Outcome.EMPTY:
        return f"{text}; no members are left."
    if row.outcome is Outcome.DELETED:
        return f"{text}; the group was deleted."
    text += "" if row.members is None else f"; {counted(row.members, 'member')}"
    moved = "" if row.partitions_moved is None else f", {counted(row.partitions_moved, 'partition')} moved"
    return f"{text}{moved}."


def _duration(bar: Bar) -> str:
    row = bar.rebalance
    if bar.is_between_snapshots:
        return "It began and ended between two refreshes"
    if row.is_observed:
        return f"It took about {cells.milliseconds(bar.took_ms)}, as observed from outside"
    if row.prepare_ms is None:
        return f"It took {cells.milliseconds(bar.took_ms)}"
    if bar.is_reconciliation:
        return f"Members took {cells.milliseconds(bar.took_ms)} to reconcile"
    text = f"Members took {cells.milliseconds(row.prepare_ms)} to join"
    return text if row.complete_ms is None else f"{text}, the leader {cells.milliseconds(row.complete_ms)} to assign"


def _members(
    label: str, ids: Sequence[str], count: int, causes: Sequence[str], names: Mapping[str, str]
) -> Iterator[str]:
    """One line per cause with the members that it applies to."""
    by_cause: dict[str, list[str]] = {}
    for place, member in enumerate(ids):
        by_cause.setdefault(causes[place] if place < len(causes) else "", []).append(name_of(member, names))
    if count > len(ids):
        by_cause.setdefault("", []).append(f"{count - len(ids):,} {'more' if ids else 'members'}")
    for cause, found in by_cause.items():
        yield f"{label}{f' ({cells.name(cause)})' if cause else ''}: {', '.join(found)}"


def _moment(row: Rebalance) -> str:
    return f"{datetime.fromtimestamp(row.started_ms / 1000, UTC):%Y-%m-%d %H:%M:%S}.{row.started_ms % 1000:03d} UTC"
