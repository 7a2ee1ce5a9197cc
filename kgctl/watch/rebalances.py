"""The rebalances of one group as a timeline: from its story where the cluster keeps one, else as looks show them."""

from __future__ import annotations

from kgctl.model.groups import REBALANCING
from kgctl.model.watched import Assignment, GroupLook, Rebalance
from kgctl.watch import story
from kgctl.watch.assignments import assignment_of
from kgctl.watch.kept import UNDER_WAY, Rebalances
from kgctl.watch.seen import SeenRebalances
from kgctl.watch.track import generation_of

# The description and the events of one look are not further apart.
ONE_LOOK_MS = 60_000


class Timeline:
    """The newest rebalances (kept.REBALANCES), oldest first."""

    def __init__(self) -> None:
        self._rebalances = Rebalances()
        self._seen = SeenRebalances(self._rebalances)
        self.is_told = False  # whether the cluster keeps a story of the group

    @property
    def rows(self) -> tuple[Rebalance, ...]:
        return self._rebalances.rows

    def add(self, look: GroupLook, *, anew: bool = False) -> tuple[Rebalance, ...]:
        """The rows after one more look. `anew`: its events are the whole story, not what came since the look before."""
        if look.events is not None and (anew or not self.is_told):
            self._rebalances.clear()
            self.is_told = True
        if not self.is_told:
            self._seen.add(look)
            self._note(look)
        elif look.events is not None:
            self._note(look)
            if not look.events:
                self._interrupt_what_is_over(look, began_before_ms=look.wall_ms)
            story.tell(self._rebalances, look.events)
            self._interrupt_what_is_over(look, began_before_ms=look.wall_ms - ONE_LOOK_MS)
            self._note(look)
        return self.rows

    def assignment_before(self, rebalance: Rebalance) -> Assignment | None:
        """Who owned what before this rebalance, by member id; None where nobody knows."""
        return self._rebalances.before(rebalance)

    def _note(self, look: GroupLook) -> None:
        if look.group.error is None:
            self._rebalances.note(generation_of(look.group), assignment_of(look.group))

    def _interrupt_what_is_over(self, look: GroupLook, began_before_ms: int) -> None:
        """The group is described before its events are read, so one that is not rebalancing has told the end of what began before."""
        last, group = self._rebalances.last, look.group
        if last is None or last.row.outcome != UNDER_WAY or group.error is not None or group.state in REBALANCING:
            return
        if last.row.started_ms < began_before_ms:
            story.interrupt(self._rebalances)
