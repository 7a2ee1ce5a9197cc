"""`kgctl groups wait`: wait until a condition about a group holds."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Annotated

import typer

from broker.light_dataclasses import replace
from kgctl.client.admin.times import span_ms
from kgctl.client.net.errors import BadValue, KgctlError, TimedOut, from_row
from kgctl.commands.groups.condition_report import EXPLANATION, For, Junit, grammar, parsed, reporting, row_of
from kgctl.commands.groups.condition_values import Observed, Observer
from kgctl.commands.shared.arguments import Group
from kgctl.commands.shared.effects import shows, waits
from kgctl.commands.shared.help import examples
from kgctl.commands.shared.settings import settings
from kgctl.conditions.evaluation import failures, holds
from kgctl.conditions.syntax import Condition, references, text_of
from kgctl.conditions.variables import Reference
from kgctl.model.conditions import ConditionRow
from kgctl.render.status_line import StatusLine
from kgctl.watch.figures import span
from kgctl.watch.tracker import generation_of

if TYPE_CHECKING:
    from kgctl.client.admin.admin import Admin

# The pause between two polls grows to the longer one; a cluster that needs long to answer is asked less often.
_FIRST_PAUSE_S, _PAUSE_S, _SHARE = 0.1, 0.5, 4
_MOST_S = 7 * 86_400.0
_STATE = Reference("state")
EPILOG = (
    grammar()
    + "\n\n"
    + examples(
        "kgctl groups wait orders --for 'state == Stable and members >= 3'",
        "kgctl groups wait orders --for 'lag < 100' --stable-for 10s --timeout 2m",
        "kgctl groups wait orders --for 'lag(payments) == 0' --junit wait.xml",
        "kgctl groups wait orders --for 'state == Dead' --timeout 30s",
    )
)


@shows("group-conditions")
@waits
def wait(
    ctx: typer.Context,
    group: Group,
    condition: For,
    stable_for: Annotated[
        str, typer.Option("--stable-for", metavar="DURATION", help="The condition must hold for this long.")
    ] = "0s",
    timeout: Annotated[
        str, typer.Option("--timeout", metavar="SECONDS", help="Time limit for the condition, such as 90 or 2m.")
    ] = "30s",
    junit: Junit = None,
) -> None:
    """Wait until a condition about a group holds.

    Exit code 3 after the timeout (FAILED has the smallest parts that do not hold, with the last values), 5 if the group does
    not exist then, 7 if the cluster does not answer then. Until then, a group may be missing and brokers may restart. A group
    that does not exist has the state Dead, no members, and no other known value. With --stable-for, the condition must
    hold in each of several checks per second, and the group must not rebalance in between if the condition is about its state.
    """
    tree = parsed(condition)
    stable_s, limit_s = _seconds(stable_for, "--stable-for"), _seconds(timeout, "--timeout")
    if not stable_s < limit_s:
        raise typer.BadParameter("It must be shorter than --timeout.", param_hint="'--stable-for'")
    chosen = settings(ctx)
    chosen.explain(EXPLANATION)
    deadline = time.monotonic() + limit_s
    with reporting(chosen, "kgctl groups wait", tree, junit, [group]) as report:
        with chosen.admin() as admin, StatusLine(sys.stderr) as line:
            admin.stop_at(deadline)
            waiting = _Waiting(group, tree, stable_s, limit_s, deadline, line)
            row = waiting.run(admin, Observer(admin, chosen, references(tree)))
        report.conclude([row])


def _seconds(text: str, option: str) -> float:
    try:
        seconds = span_ms(text) / 1000
    except BadValue as error:
        raise typer.BadParameter(str(error), param_hint=f"'{option}'") from None
    if seconds > _MOST_S or (option == "--timeout" and not seconds):
        raise typer.BadParameter(f"{text!r} is not between 1ms and 7d.", param_hint=f"'{option}'")
    return seconds


class _Waiting:
    """Polls a group until the condition has held for `stable_s`, or until the deadline of time.monotonic()."""

    def __init__(
        self, group: str, condition: Condition, stable_s: float, limit_s: float, deadline: float, line: StatusLine
    ) -> None:
        self._group, self._condition, self._line = group, condition, line
        self._stable_s, self._limit_s, self._deadline = stable_s, limit_s, deadline
        self._is_about_state = _STATE in set(references(condition))
        self._seen: Observed | None = None
        self._failure: KgctlError | None = None
        self._held_since: float | None = None
        self._held_s = 0.0

    def run(self, admin: Admin, observer: Observer) -> ConditionRow:
        pause_s = _FIRST_PAUSE_S
        while (began := time.monotonic()) < self._deadline:
            try:
                self._take(observer.observe([self._group])[self._group], began)
            except KgctlError as error:
                self._lose(error)
                admin.close()
            if self._held_since is not None and self._held_s >= self._stable_s:
                break
            self._show()
            took_s = time.monotonic() - began
            pause_s = min(_PAUSE_S, pause_s * 1.5)
            self._sleep(max(pause_s, took_s * _SHARE))
        return self._row()

    def _take(self, seen: Observed, began: float) -> None:
        """Judge an observation that began at this reading of the clock."""
        error = seen.group.error
        if error is not None and error.name.endswith("AUTHORIZATION_FAILED"):
            raise from_row(error)
        before, self._seen, self._failure = self._seen, seen, None
        if not holds(self._condition, seen.values):
            self._held_since, self._held_s = None, 0.0
        elif self._held_since is None or (before is not None and self._has_rebalanced(before, seen)):
            self._held_since, self._held_s = time.monotonic(), 0.0
        else:
            self._held_s = began - self._held_since

    def _lose(self, error: KgctlError) -> None:
        """The cluster did not answer. It may restart, unless the error is one that stays."""
        if error.is_final or not (error.retriable or isinstance(error, TimedOut)):
            raise error
        self._held_since, self._held_s = None, 0.0
        if self._seen is None or time.monotonic() < self._deadline:
            self._failure = error

    def _has_rebalanced(self, before: Observed, now: Observed) -> bool:
        if not self._is_about_state:
            return False
        was, is_ = ((generation_of(one.group), one.group.state_since_ms) for one in (before, now))
        return was != is_

    def _sleep(self, pause_s: float) -> None:
        now = time.monotonic()
        if self._held_since is not None:
            pause_s = min(pause_s, max(0.0, self._held_since + self._stable_s - now))
        time.sleep(max(0.0, min(pause_s, self._deadline - now)))

    def _show(self) -> None:
        left = f"{span(max(0.0, self._deadline - time.monotonic()))} left"
        if self._failure is not None:
            self._line.show(f"{self._failure}; {left}")
        elif self._seen is not None:
            failed = "; ".join(map(str, failures(self._condition, self._seen.values)))
            self._line.show(f"{failed or f'holds for {span(self._held_s)}'}; {left}")

    def _row(self) -> ConditionRow:
        waited_ms = round((time.monotonic() - self._deadline + self._limit_s) * 1000)
        if self._seen is None:
            error = self._failure or TimedOut("the cluster did not answer")
            return ConditionRow(self._group, False, text_of(self._condition), waited_ms=waited_ms, error=error.as_row())
        row = row_of(self._condition, self._seen, waited_ms, round(self._held_s * 1000))
        if self._failure is not None:
            return replace(row, is_met=False, error=self._failure.as_row())
        is_met = self._held_since is not None and self._held_s >= self._stable_s
        return replace(row, is_met=is_met)
