"""Rebalances as rows with a bar: who caused them, how long both phases took, how they ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from broker.light_dataclasses import dataclass
from kgctl.model.history import LEFT_OR_TIMED_OUT, SESSION_TIMED_OUT
from kgctl.model.watched import Outcome, Rebalance
from kgctl.render.table import MISSING
from kgctl.tui import cells
from kgctl.tui.widgets.frame import glyphs
from kgctl.tui.widgets.group.names import name_of
from kgctl.watch.restarts import RESTARTED

PREPARE, COMPLETE, WHOLE, UNDER_WAY = glyphs.SHADE, glyphs.FULL, glyphs.HALF, glyphs.RIGHT
JOINED, LEFT = "member joined", "member left"
LEFT_OR_GONE = "left or timed out"
# They explain themselves; members that joined or left with them are in the details.
NAMELESS = (RESTARTED, "subscription changed", "topics changed")
# The duration of a full bar grows in steps, so that the other bars do not shrink at every refresh.
SCALES_MS = (100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 30_000, 60_000, 120_000, 300_000, 600_000)


@dataclass(frozen=True, slots=True)
class Bar:
    """A rebalance as a row. `took_ms` grows while the rebalance is under way; `key` does not change when it ends.

    `is_reconciliation`: of a consumer group (KIP-848), whose coordinator assigns and whose members then reconcile.
    """

    key: str
    rebalance: Rebalance
    took_ms: int
    cause: str
    is_reconciliation: bool = False

    @property
    def is_under_way(self) -> bool:
        return self.rebalance.is_under_way

    @property
    def is_between_snapshots(self) -> bool:
        """Whether one snapshot shows the state before the rebalance and the next the state after: the duration is unknown."""
        return self.rebalance.is_observed and not self.is_under_way and not self.took_ms


def bars(
    rebalances: Sequence[Rebalance], now_ms: int, names: Mapping[str, str], *, is_reconciliation: bool = False
) -> list[Bar]:
    """The rows, newest first. `now_ms` is a time of the clock that `started_ms` comes from; `names` has the current members."""
    starts: dict[int, int] = {}
    found = []
    for row in rebalances:
        # Two rebalances that began in the same ms are distinguished by their order.
        number = starts[row.started_ms] = starts.get(row.started_ms, 0) + 1
        key, took_ms = f"{row.started_ms} {number}", _took_ms(row, now_ms)
        found.append(Bar(key, row, took_ms, cause(row, names), is_reconciliation))
    return found[::-1]


def scale_ms(rows: Sequence[Bar]) -> int:
    """The duration of a full bar."""
    longest_ms = max((bar.took_ms for bar in rows), default=0)
    return next((scale for scale in SCALES_MS if scale >= longest_ms), longest_ms)


def bar_text(bar: Bar, scale: int, width: int) -> str:
    """The two phases to scale, with at least one cell for a phase that took any time. An arrow ends one that is under way."""
    row = bar.rebalance

    def cells_of(span_ms: int) -> int:
        return max(1, round(width * span_ms / scale)) if span_ms > 0 and scale else 0

    if row.prepare_ms is None:
        text = (PREPARE if bar.is_under_way else WHOLE) * cells_of(bar.took_ms)
    else:
        text = PREPARE * cells_of(row.prepare_ms) + COMPLETE * cells_of(bar.took_ms - row.prepare_ms)
    if bar.is_under_way:
        return text[: width - 1] + UNDER_WAY
    return text[:width]


def clock_time(moment_ms: int) -> str:
    return f"{datetime.fromtimestamp(moment_ms / 1000, UTC):%H:%M:%S}"


def took(bar: Bar) -> str:
    if bar.rebalance.outcome in (Outcome.INTERRUPTED, Outcome.MEMBER_REPLACED) or bar.is_between_snapshots:
        return MISSING
    # An observed duration is only as precise as the refresh interval.
    return ("~" if bar.rebalance.is_observed else "") + cells.age(bar.took_ms / 1000)


def joined_and_left(bar: Bar) -> str:
    row = bar.rebalance
    if bar.is_under_way and not row.is_observed:
        return MISSING
    parts = [f"+{row.joined_count}"] if row.joined_count else []
    parts += [f"-{row.left_count}"] if row.left_count else []
    return " ".join(parts) or "0"


def cause(row: Rebalance, names: Mapping[str, str]) -> str:
    """What caused the rebalance and, where members did, which; before that how it ended, if without an assignment."""
    if row.outcome is Outcome.MEMBER_REPLACED:
        return f"{_who(row.joined, row.joined_count, names)} came back" if row.joined_count else row.outcome.value
    if row.outcome is Outcome.DELETED:
        return "group deleted"
    text = _cause(row, names)
    return f"{row.outcome.value}: {text}" if row.outcome in (Outcome.SUPERSEDED, Outcome.INTERRUPTED) else text


def _cause(row: Rebalance, names: Mapping[str, str]) -> str:
    joined = f"{_who(row.joined, row.joined_count, names)} joined" if row.joined_count else ""
    kinds = set(row.left_causes)
    how = "timed out" if kinds == {SESSION_TIMED_OUT} else LEFT_OR_GONE if kinds == {LEFT_OR_TIMED_OUT} else "left"
    left = f"{_who(row.left, row.left_count, names)} {how}" if row.left_count else ""
    if row.cause == JOINED and joined:
        return joined
    if row.cause in (LEFT, SESSION_TIMED_OUT, LEFT_OR_TIMED_OUT) and left:
        return left
    if row.cause is None:
        return ", ".join(one for one in (joined, left) if one) or "cause not known"
    if row.cause in NAMELESS or not left:
        return cells.name(row.cause)
    return f"{cells.name(row.cause)}: {left}"


def _who(members: Sequence[str], count: int, names: Mapping[str, str]) -> str:
    if not members:
        return f"{count:,} member{'' if count == 1 else 's'}"
    more = count - 1
    return name_of(members[0], names) + (f" and {more:,} more" if more else "")


def _took_ms(row: Rebalance, now_ms: int) -> int:
    if row.is_under_way:
        return max(0, now_ms - row.started_ms)
    if row.ended_ms is None:
        return (row.prepare_ms or 0) + (row.complete_ms or 0)
    return max(0, row.ended_ms - row.started_ms)
