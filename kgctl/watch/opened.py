"""A group that somebody has opened: its view and its timeline, from its own snapshots and from those of all groups."""

from __future__ import annotations

from kgctl.model.watched import GroupSnapshot, Snapshot
from kgctl.watch.group import GroupView, GroupWatch
from kgctl.watch.timeline import Timeline
from kgctl.watch.tracker import GroupTracker


class OpenedGroup:
    """It outlives the screen that shows the group, and is up to date when the group is opened again.

    `since_ms` is when the group was first opened; `view` and `snapshot` are None until a snapshot is added.
    """

    def __init__(self, tracker: GroupTracker | None = None) -> None:
        self._watch = GroupWatch(tracker)
        self.timeline = Timeline()
        self.since_ms = 0
        self.snapshot: GroupSnapshot | None = None
        self.view: GroupView | None = None
        self.lacks_events = True  # the whole history must be read, as events may have been missed

    def add(self, snapshot: GroupSnapshot, *, whole_history: bool) -> None:
        """Add a snapshot of this group."""
        self.since_ms = self.since_ms or snapshot.wall_ms
        self.snapshot, self.view = snapshot, self._watch.add(snapshot)
        self.timeline.add(snapshot, whole_history=whole_history)
        self.lacks_events = snapshot.events is None

    def add_from(self, everything: Snapshot, group: str) -> None:
        """Add the description of this group in a snapshot of all groups."""
        found, newest = everything.groups.get(group), self.snapshot
        if found is None or newest is None or everything.at_s <= newest.at_s:
            return
        snapshot = GroupSnapshot(everything.at_s, everything.wall_ms, found)
        self.view = self._watch.add(snapshot)
        if self.timeline.has_history:
            # Only its own snapshots have events.
            self.snapshot = GroupSnapshot(everything.at_s, everything.wall_ms, found, ())
        else:
            self.snapshot = snapshot
            self.timeline.add(snapshot)
