"""The newest rebalances of a group, and what was assigned before the oldest of them."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace

from kgctl.model.watched import Assignment, Rebalance

REBALANCES = 200
STABLE, EMPTY, DELETED = "stable", "empty", "deleted"
CUT_SHORT, INTERRUPTED, REPLACED = "cut short", "interrupted", "member replaced"
UNDER_WAY = ""


@dataclass(frozen=True, slots=True)
class Kept:
    """A rebalance, the generation that it ended, and who owned what before it as a look has shown it; None: not known."""

    row: Rebalance
    from_generation: int | None = None
    before: Assignment | None = None


class Rebalances:
    """REBALANCES rows, oldest first. Assignments that looks have shown complete those that the rows do not have."""

    def __init__(self) -> None:
        self._kept: deque[Kept] = deque(maxlen=REBALANCES)
        self._by_generation: dict[int, Assignment] = {}

    @property
    def rows(self) -> tuple[Rebalance, ...]:
        return tuple(kept.row for kept in self._kept)

    @property
    def last(self) -> Kept | None:
        return self._kept[-1] if self._kept else None

    def append(self, kept: Kept) -> None:
        self._kept.append(kept)

    def change_last(self, row: Rebalance) -> None:
        self._kept[-1] = replace(self._kept[-1], row=row)

    def clear(self) -> None:
        """The rows go; what looks have shown stays."""
        self._kept.clear()

    def note(self, generation: int | None, assignment: Assignment | None) -> None:
        """A look at a group that is Stable. The newest row of its generation takes the assignment if it has none."""
        if generation is None or not assignment:
            return
        self._by_generation.pop(generation, None)
        self._by_generation[generation] = assignment
        if len(self._by_generation) > REBALANCES:
            del self._by_generation[next(iter(self._by_generation))]
        for place in range(len(self._kept) - 1, -1, -1):
            row = self._kept[place].row
            if row.generation == generation and row.outcome in (STABLE, REPLACED):
                if row.assignment is None:
                    self._kept[place] = replace(self._kept[place], row=replace(row, assignment=assignment))
                return

    def before(self, rebalance: Rebalance) -> Assignment | None:
        """Who owned what before: as the newest row before it has it that led to an assignment, or took it away."""
        kept = list(self._kept)
        places = [place for place, each in enumerate(kept) if each.row == rebalance]
        # The row on display may have been under way, and may have ended meanwhile.
        places = places or [place for place, each in enumerate(kept) if each.row.started_ms == rebalance.started_ms]
        if not places:
            return None
        chosen = kept[places[-1]]
        if chosen.before is not None:
            return chosen.before
        for earlier in reversed(kept[: places[-1]]):
            row = earlier.row
            if row.outcome in (EMPTY, DELETED):
                return {}
            if row.outcome in (STABLE, REPLACED):
                return self._known(row.assignment, row.generation)
        # The generation of a group that is new.
        return {} if chosen.from_generation == 0 else self._known(None, chosen.from_generation)

    def _known(self, assignment: Assignment | None, generation: int | None) -> Assignment | None:
        return self._by_generation.get(-1 if generation is None else generation) if assignment is None else assignment
