"""How long a group was in each state the last time, and from which state it entered the current one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from broker.light_dataclasses import dataclass
from kgctl.model.groups import GroupDescription
from kgctl.model.watched import Outcome, Rebalance

EMPTY, STABLE = "Empty", "Stable"
_PREPARING = ("PreparingRebalance", "Assigning")
_COMPLETING = ("CompletingRebalance", "Reconciling")


@dataclass(frozen=True, slots=True)
class Visits:
    """`spent_s` has the seconds of the last stay in each state, up to now for the current one; unknown ones are absent.

    `came_from` is the state before the current one, None if not known.
    """

    spent_s: Mapping[str, float]
    came_from: str | None = None


def visits(
    path: Sequence[str], group: GroupDescription, state_s: float | None, rebalances: Sequence[Rebalance]
) -> Visits:
    """`path` has the states of a group of this type, `rebalances` the oldest first."""
    preparing = next((state for state in path if state in _PREPARING), None)
    completing = next((state for state in path if state in _COMPLETING), None)
    spent: dict[str, float] = {}
    if rebalances and preparing and completing:
        _add_phases(spent, rebalances, preparing, completing)
        _add_calm(spent, rebalances)
    if group.state in path and state_s is not None:
        spent[group.state or ""] = state_s
    return Visits(spent, _came_from(group.state, preparing, completing, rebalances))


def _add_phases(spent: dict[str, float], rebalances: Sequence[Rebalance], preparing: str, completing: str) -> None:
    """The two phases of the last rebalance that has them."""
    for row in reversed(rebalances):
        if row.prepare_ms is not None:
            spent[preparing] = row.prepare_ms / 1000
            if row.complete_ms is not None and row.outcome is not Outcome.EMPTY:
                spent[completing] = row.complete_ms / 1000
            return


def _add_calm(spent: dict[str, float], rebalances: Sequence[Rebalance]) -> None:
    """The time between the newest two rebalances with a Stable group between them, and with an Empty one."""
    for before, row in zip(reversed(rebalances[:-1]), reversed(rebalances), strict=False):
        state = {Outcome.STABLE: STABLE, Outcome.EMPTY: EMPTY}.get(before.outcome)
        if state is not None and before.ended_ms is not None:
            spent.setdefault(state, max(0, row.started_ms - before.ended_ms) / 1000)


def _came_from(
    state: str | None, preparing: str | None, completing: str | None, rebalances: Sequence[Rebalance]
) -> str | None:
    if state is None or not rebalances:
        return None
    last, earlier = rebalances[-1], rebalances[-2].outcome if len(rebalances) > 1 else None
    if state == completing:
        return preparing
    if state == preparing and last.is_under_way:
        return {Outcome.STABLE: STABLE, Outcome.EMPTY: EMPTY, Outcome.SUPERSEDED: completing}.get(
            earlier or last.outcome
        )
    if state == STABLE and last.outcome is Outcome.STABLE:
        return completing
    return preparing if state == EMPTY and last.outcome is Outcome.EMPTY else None
