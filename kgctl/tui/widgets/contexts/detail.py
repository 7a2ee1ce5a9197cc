"""What is known about the context under the cursor: the steps of its last test, and its settings."""

from __future__ import annotations

from collections.abc import Sequence

from textual.content import Content

from kgctl.client.net.errors import KgctlError
from kgctl.model.contexts import FAILED, SettingRow, StepRow
from kgctl.tui import cells
from kgctl.tui.feed.contexts import ContextTested
from kgctl.tui.widgets.contexts.table import ContextLine, Test
from kgctl.tui.widgets.frame import glyphs
from kgctl.tui.widgets.text.entries import Entry

UNTESTED = "Press c to test each step of the connection: name, port, TLS, SASL, brokers, permissions."
ONLY_CONTEXTS = "Only contexts can be tested. `kgctl context add NAME` makes one."
STEP_WIDTH, SETTING_WIDTH, TOOK_WIDTH = 12, 30, 7
DEFAULT = "default"


def steps(line: ContextLine | None) -> list[Entry]:
    """The steps of the last test, with what to do about the one that failed."""
    if line is None:
        return []
    outcome = line.outcome
    if isinstance(outcome, Test):
        return [Entry(outcome.value, style="$text-muted")]
    if isinstance(outcome, KgctlError):
        return [Entry(cells.name(str(outcome)))]
    if outcome is None:
        return [Entry(UNTESTED if line.row is not None else ONLY_CONTEXTS, style="$text-muted")]
    found = [_step(step) for step in outcome.steps]
    if outcome.failed is not None and outcome.failed.advice:
        found += [Entry(""), Entry(cells.name(outcome.failed.advice), style="bold")]
    return found


def _step(step: StepRow) -> Entry:
    is_failed = step.status == FAILED
    before = Content.assemble(
        (glyphs.FAULT, "bold $text-error") if is_failed else (glyphs.GOOD, "$text-success"),
        f" {cells.fitted(step.step, STEP_WIDTH)} ",
        (cells.fitted(cells.milliseconds(step.duration_ms), TOOK_WIDTH, right=True), "$text-muted"),
        "  ",
    )
    place = f"{step.address}: " if is_failed and step.address else ""
    return Entry(cells.name(place + (step.detail or "")), before)


def settings(rows: Sequence[SettingRow]) -> list[Entry]:
    """Names and values with where they come from; secrets are hidden."""
    width = min(SETTING_WIDTH, max((len(row.setting) for row in rows), default=0))
    found = []
    for row in rows:
        before = Content.styled(cells.fitted(row.setting, width) + "  ", "$text-muted")
        found.append(
            Entry(cells.name(row.value) + ("" if row.source == DEFAULT else f"   ({cells.name(row.source)})"), before)
        )
    return found


def tested_at(line: ContextLine | None) -> int | None:
    """When the test ended, in ms since 1970."""
    return line.outcome.wall_ms if line is not None and isinstance(line.outcome, ContextTested) else None
