"""The newest rebalances of a group, with the assignment before each."""

from __future__ import annotations

from collections import deque

from broker.light_dataclasses import dataclass, replace
from kgctl.model.watched import Assignment, Outcome, Rebalance

REBALANCES = 200


@dataclass(frozen=True, slots=True)
class Entry:
    """A rebalance, the generation that it ended, and the assignment before it if snapshots showed it."""

    row: Rebalance
    from_generation: int | None = None
    before: Assignment | None = None


class Rebalances:
    """Up to REBALANCES rows, oldest first. Assignments from snapshots fill in those that the rows lack."""

    def __init__(self) -> None:
        self._entries: deque[Entry] = deque(maxlen=REBALANCES)
        self._by_generation: dict[int, Assignment] = {}

    @property
    def rows(self) -> tuple[Rebalance, ...]:
        return tuple(entry.row for entry in self._entries)

    @property
    def last(self) -> Entry | None:
        return self._entries[-1] if self._entries else None

    def append(self, entry: Entry) -> None:
        self._entries.append(entry)

    def replace_last(self, row: Rebalance) -> None:
        self._entries[-1] = replace(self._entries[-1], row=row)

    def clear(self) -> None:
        """Remove the rows; keep the assignments that snapshots showed."""
        self._entries.clear()

    def observe(self, generation: int | None, assignment: Assignment | None) -> None:
        """Add the assignment of a Stable group. The newest row of its generation takes it if it has none."""
        if generation is None or not assignment:
            return
        self._by_generation.pop(generation, None)
        self._by_generation[generation] = assignment
        if len(self._by_generation) > REBALANCES:
            del self._by_generation[next(iter(self._by_generation))]
        for place in range(len(self._entries) - 1, -1, -1):
            row = self._entries[place].row
            if row.generation == generation and row.outcome in (Outcome.STABLE, Outcome.MEMBER_REPLACED):
                if row.assignment is None:
                    self._entries[place] = replace(self._entries[place], row=replace(row, assignment=assignment))
                return

    def before(self, rebalance: Rebalance) -> Assignment | None:
        """The assignment before a rebalance: that of the newest earlier row that made or removed an assignment."""
        entries = list(self._entries)
        places = [place for place, each in enumerate(entries) if each.row == rebalance]
        # The row may come from an earlier snapshot, when the rebalance was still under way.
        places = places or [place for place, each in enumerate(entries) if each.row.started_ms == rebalance.started_ms]
        if not places:
            return None
        chosen = entries[places[-1]]
        if chosen.before is not None:
            return chosen.before
        for earlier in reversed(entries[: places[-1]]):
            row = earlier.row
            if row.outcome in (Outcome.EMPTY, Outcome.DELETED):
                return {}
            if row.outcome in (Outcome.STABLE, Outcome.MEMBER_REPLACED):
                return self._known(row.assignment, row.generation)
        # Generation 0 is a new group.
        return {} if chosen.from_generation == 0 else self._known(None, chosen.from_generation)

    def _known(self, assignment: Assignment | None, generation: int | None) -> Assignment | None:
        return self._by_generation.get(-1 if generation is None else generation) if assignment is None else assignment
