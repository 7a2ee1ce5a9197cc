"""The rebalances of one group as a timeline: from its story where the cluster keeps one, else as looks show them."""

from __future__ import annotations

from kgctl.model.groups import REBALANCING
from kgctl.model.history import UNREADABLE
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
        self.unreadable = 0  # events of the story that are known to be missing from it

    @property
    def rows(self) -> tuple[Rebalance, ...]:
        return self._rebalances.rows

    def add(self, look: GroupLook, *, anew: bool = False) -> tuple[Rebalance, ...]:
        """The rows after one more look. `anew`: its events are the whole story, not what came since the look before."""
        if look.events is not None and (anew or not self.is_told):
            self._rebalances.clear()
            self.is_told, self.unreadable = True, 0
        self.unreadable += sum(event.event == UNREADABLE for event in look.events or ())
        if not self.is_told:
            self._seen.add(look)
            self._note(look)
        elif look.events is not None:
            self._note(look)
            if not look.events and self._seems_over(look):
                # What began before an earlier look, and has had no end since, never will have one.
                story.interrupt(self._rebalances)
            story.tell(self._rebalances, look.events)
            if self._seems_over(look) and self._began_before(look, is_whole=anew):
                story.interrupt(self._rebalances)
            self._note(look)
        return self.rows

    def assignment_before(self, rebalance: Rebalance) -> Assignment | None:
        """Who owned what before this rebalance, by member id; None where nobody knows."""
        return self._rebalances.before(rebalance)

    def _note(self, look: GroupLook) -> None:
        if look.group.error is None:
            self._rebalances.note(generation_of(look.group), assignment_of(look.group))

    def _seems_over(self, look: GroupLook) -> bool:
        """A rebalance seems to be under way in a group that is not rebalancing; it may have begun after the description."""
        last, group = self._rebalances.last, look.group
        is_settled = group.error is None and group.state not in REBALANCING
        return last is not None and last.row.outcome == UNDER_WAY and is_settled

    def _began_before(self, look: GroupLook, *, is_whole: bool) -> bool:
        """Whether the newest rebalance began before the group was described: by the coordinator's clock, which may differ from ours."""
        last, since_ms = self._rebalances.last, look.group.state_since_ms
        if last is None:
            return False
        if since_ms is not None and last.row.started_ms < since_ms:
            return True
        # After a restart the state is an older one. What a look adds to the story is new; the whole of it is not.
        return is_whole and last.row.started_ms < look.wall_ms - ONE_LOOK_MS
