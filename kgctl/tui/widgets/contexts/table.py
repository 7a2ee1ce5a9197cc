"""The table of contexts: a line for each, and one for a cluster of the command line that has none."""

from __future__ import annotations

from enum import Enum

from broker.light_dataclasses import dataclass
from kgctl.client.net.errors import KgctlError
from kgctl.model.contexts import ContextRow
from kgctl.tui import cells
from kgctl.tui.feed.contexts import ContextTested
from kgctl.tui.widgets.frame import glyphs
from kgctl.tui.widgets.frame.badges import BADGES
from kgctl.tui.widgets.frame.filter import Field
from kgctl.tui.widgets.frame.looks import Look
from kgctl.tui.widgets.table.columns import Column

NO_CONTEXT = "(no context)"


class Test(Enum):
    UNDER_WAY = "testing \u2026"


Outcome = ContextTested | KgctlError | Test | None


@dataclass(frozen=True, slots=True)
class ContextLine:
    """`row` is None for the cluster without a context. `is_shown`: the dashboard shows this cluster."""

    row: ContextRow | None
    address: str | None
    is_shown: bool
    outcome: Outcome = None

    @property
    def key(self) -> str:
        return self.row.context if self.row is not None else ""

    @property
    def name(self) -> str:
        return self.key or NO_CONTEXT


def columns() -> list[Column[ContextLine]]:
    return [
        Column("context", "CONTEXT", lambda line: f" {cells.name(line.name)} ", 14, flex=1, most=40, style=_color,
               order=lambda line: line.key),
        Column("use", "USE", _use, 14, style=lambda line: "strong" if line.is_shown else ""),
        Column("access", "ACCESS", _access, 9, style=_access_style, order=_access),
        Column("color", "COLOUR", lambda line: (line.row and line.row.color) or "-", 7, style=_color, from_room=130),
        Column("address", "ADDRESS", _address, 22, flex=4, most=70, order=_address, priority=1),
        Column("security", "SECURITY", _security, 22, flex=1, most=28, priority=2),
        Column("connection", "CONNECTION", _connection, 16, most=34, style=_outcome_style),
    ]  # fmt: skip


def fields() -> list[Field[ContextLine]]:
    return [
        Field("address", lambda line: (line.address,)),
        Field("access", lambda line: (_access(line),)),
        Field("color", lambda line: (line.row.color if line.row else None,)),
    ]


def look(line: ContextLine) -> Look:
    """Whether the cluster could be reached."""
    if isinstance(line.outcome, Test):
        return Look(glyphs.MOVING, "dim")
    if line.outcome is None:
        return Look(glyphs.JUDGING, "dim")
    return Look(glyphs.FAULT, "bad") if _is_failed(line.outcome) else Look(glyphs.GOOD, "good")


def _is_failed(outcome: Outcome) -> bool:
    return isinstance(outcome, KgctlError) or (isinstance(outcome, ContextTested) and outcome.failed is not None)


def _color(line: ContextLine) -> str:
    color = (line.row.color if line.row is not None else None) or ""
    return color if color in BADGES else ""


def _use(line: ContextLine) -> str:
    is_current = line.row is not None and line.row.current
    return ", ".join([*(["shown"] if line.is_shown else []), *(["current"] if is_current else [])])


def _access(line: ContextLine) -> str:
    row = line.row
    if row is None:
        return "changes"
    if row.read_only:
        return "read-only"
    return "confirms" if row.confirm else "changes"


def _access_style(line: ContextLine) -> str:
    return "" if _access(line) == "changes" else "warn"


def _address(line: ContextLine) -> str:
    return cells.name(line.address or "the local broker")


def _security(line: ContextLine) -> str:
    row = line.row
    if row is None:
        return "-"
    return cells.name(" ".join([row.protocol, *([row.mechanism] if row.mechanism else [])]))


def _connection(line: ContextLine) -> str:
    outcome = line.outcome
    if outcome is None:
        return "not tested"
    if isinstance(outcome, Test):
        return str(outcome.value)
    if isinstance(outcome, KgctlError):
        return "cannot be tested"
    failed = outcome.failed
    return f"works, {cells.milliseconds(outcome.took_ms)}" if failed is None else f"fails at {failed.step}"


def _outcome_style(line: ContextLine) -> str:
    return str(look(line).style)
