"""The rebalances of one group as a timeline: from its history if the cluster keeps one, else derived from snapshots."""

from __future__ import annotations

from collections.abc import Sequence

from kgctl.model.groups import REBALANCING, SHARE
from kgctl.model.history import UNREADABLE, MemberClient
from kgctl.model.watched import Assignment, GroupSnapshot, Rebalance
from kgctl.watch import history
from kgctl.watch.assignments import assignment_of
from kgctl.watch.observed import ObservedRebalances
from kgctl.watch.rebalances import Rebalances
from kgctl.watch.restarts import RESTARTED, after_restart, came_back, is_soon, renamed
from kgctl.watch.tracker import generation_of

# How many members that joined or left are known by their clients.
CLIENTS = 10_000
# The description and the events of one snapshot are no further apart than this.
ONE_SNAPSHOT_MS = 60_000


class Timeline:
    """The newest rebalances, oldest first; see rebalances.REBALANCES for how many."""

    def __init__(self) -> None:
        self._rebalances = Rebalances()
        self._observed = ObservedRebalances(self._rebalances)
        self._restarts: list[int] = []  # when the broker started, as far as snapshots show
        self.has_history = False  # whether the cluster keeps a history of the group
        self.unreadable = 0  # events of the history that could not be read
        self.is_derived = False  # the history was derived from what the coordinator stores
        self.clients: dict[str, MemberClient] = {}  # of members that joined or left

    @property
    def rows(self) -> tuple[Rebalance, ...]:
        rows = self._rebalances.rows
        found = {self._first_since(rows, restart_ms) for restart_ms in self._restarts}
        return tuple(
            after_restart(row, self._rebalances.before(row)) if place in found else row
            for place, row in enumerate(rows)
        )

    @staticmethod
    def _first_since(rows: Sequence[Rebalance], restart_ms: int) -> int | None:
        place = next((place for place, row in enumerate(rows) if row.started_ms >= restart_ms), None)
        return None if place is None or not is_soon(rows[place].started_ms, restart_ms) else place

    def add(self, snapshot: GroupSnapshot, *, whole_history: bool = False) -> tuple[Rebalance, ...]:
        """Add a snapshot and return the rows. `whole_history`: its events are the whole history, not only the new ones."""
        started_ms = snapshot.group.broker_started_ms
        if started_ms is not None and started_ms not in self._restarts:
            self._restarts.append(started_ms)
        if snapshot.events is not None and (whole_history or not self.has_history):
            self._rebalances.clear()
            self.has_history, self.unreadable = True, 0
        for event in snapshot.events or ():
            self.unreadable += event.event == UNREADABLE
            self.is_derived = event.is_derived
            self.clients |= event.clients
        for old in list(self.clients)[:-CLIENTS]:
            del self.clients[old]
        if not self.has_history:
            self._observed.add(snapshot)
            self._observe_assignment(snapshot)
        elif snapshot.events is not None:
            self._observe_assignment(snapshot)
            if not snapshot.events and self._seems_over(snapshot):
                # It began before an earlier snapshot and no end event followed: none will.
                history.interrupt(self._rebalances)
            history.add_events(self._rebalances, snapshot.events)
            if self._seems_over(snapshot) and self._began_before(snapshot, is_whole=whole_history):
                history.interrupt(self._rebalances)
            self._observe_assignment(snapshot)
        return self.rows

    def assignment_before(self, rebalance: Rebalance) -> Assignment | None:
        """The assignment before this rebalance, by member id; None if not known.

        Members that came back after a restart of the broker have their new ids.
        """
        before = self._rebalances.before(rebalance)
        if before is None or rebalance.cause != RESTARTED or rebalance.assignment is None:
            return before
        left = [one for one in before if one not in rebalance.assignment]
        return renamed(before, came_back(left, [one for one in rebalance.assignment if one not in before]))

    def _observe_assignment(self, snapshot: GroupSnapshot) -> None:
        if snapshot.group.error is None:
            self._rebalances.observe(generation_of(snapshot.group), assignment_of(snapshot.group))

    def _seems_over(self, snapshot: GroupSnapshot) -> bool:
        """Whether the group is not rebalancing although the last row is under way; it may have begun after the description."""
        last, group = self._rebalances.last, snapshot.group
        # The state of a share group does not show its rebalances.
        is_settled = group.error is None and group.state not in REBALANCING and group.type != SHARE
        return last is not None and last.row.is_under_way and is_settled

    def _began_before(self, snapshot: GroupSnapshot, *, is_whole: bool) -> bool:
        """Whether the newest rebalance began before the group was described, by the coordinator's clock, which may differ."""
        last, since_ms = self._rebalances.last, snapshot.group.state_since_ms
        if last is None:
            return False
        if since_ms is not None and last.row.started_ms < since_ms:
            return True
        # After a broker restart the state may be older than the rebalance. Events that a snapshot adds are new;
        # those of the whole history need not be.
        return is_whole and last.row.started_ms < snapshot.wall_ms - ONE_SNAPSHOT_MS
