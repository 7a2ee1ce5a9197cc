"""Which changes of verdicts are new in a view of all groups."""

from __future__ import annotations

from collections.abc import Sequence

from kgctl.model.cluster_view import ClusterEvent
from kgctl.model.health import FAULTS
from kgctl.watch.cluster import ClusterView


class Changes:
    """Changes that have held, as the list of events has them. What the first view has happened before."""

    def __init__(self) -> None:
        self._known: frozenset[ClusterEvent] | None = None

    def add(self, view: ClusterView) -> Sequence[ClusterEvent]:
        """The changes that no view before this one had, oldest first. The same verdict of many groups is one change."""
        verdicts = [event for event in view.events if event.health is not None]
        before, self._known = self._known, frozenset(verdicts)
        return [event for event in verdicts if event not in before] if before is not None else []


def is_fault(event: ClusterEvent) -> bool:
    """Whether the group needs somebody now."""
    return event.health in FAULTS
