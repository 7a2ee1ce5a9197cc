"""What the frames of a recording up to a place show together. It depends on the place alone, not on the way there."""

from __future__ import annotations

import asyncio
import pickle
from bisect import bisect_right

from kgctl.model.watched import GroupSnapshot, Snapshot
from kgctl.tui.feed.groups import AllGroups, OneGroup
from kgctl.tui.feed.read import NotRecorded, parts
from kgctl.tui.feed.replay import Answers, RecordedFrame, Recording, ReplayFeed
from kgctl.tui.feed.values import NotAValue
from kgctl.tui.observer import in_slices
from kgctl.watch.cluster import ClusterView, ClusterWatch
from kgctl.watch.limits import LIMITS, Limits
from kgctl.watch.opened import OpenedGroup
from kgctl.watch.tracker import GroupTracker

# How many frames apart checkpoints are.
CHECKPOINT = 30
ALL = parts(AllGroups())[0]


class ClusterFold:
    """All groups at a place of the recording. Checkpoints, which folds may share, make going back cheap."""

    def __init__(self, recording: Recording, checkpoints: dict[int, bytes], limits: Limits) -> None:
        self._limits = limits
        self._recording, self._checkpoints = recording, checkpoints
        self._groups = {question: name for name, question in recording.groups_of(OneGroup.__name__).items()}
        self._all = Answers(recording, Snapshot, ALL)
        self._own: dict[str, Answers[GroupSnapshot]] = {}
        self._watch = ClusterWatch(self._limits)
        self.view: ClusterView | None = None
        self.place = -1

    async def go(self, place: int) -> ClusterView | None:
        """The view at this place; None before the first snapshot."""
        self._restore(place)
        while self.place < place:
            number = self.place + 1
            await self._add(number)
            self.place = number
            if number % CHECKPOINT == 0 and number not in self._checkpoints:
                self._checkpoints[number] = pickle.dumps((self._watch, self.view), pickle.HIGHEST_PROTOCOL)
            await asyncio.sleep(0)
        return self.view

    def _restore(self, place: int) -> None:
        numbers = sorted(self._checkpoints)
        at = bisect_right(numbers, place) - 1
        best = numbers[at] if at >= 0 else -1
        if self.place <= place and self.place >= best:
            return
        self.place, self._watch, self.view = -1, ClusterWatch(self._limits), None
        if best >= 0:
            self._watch, self.view = pickle.loads(self._checkpoints[best])
            self.place = best

    async def _add(self, number: int) -> None:
        frame = self._recording.frames[number]
        if frame.error is not None:
            return
        if frame.question == ALL:
            snapshot = self._all.last(number)
            assert snapshot is not None
            self.view = await in_slices(self._watch.adding(snapshot))
        elif (name := self._groups.get(frame.question)) is not None:
            answers = self._own.setdefault(name, Answers(self._recording, GroupSnapshot, frame.question))
            one = answers.last(number)
            if one is not None and one.group.error is None:
                self._watch.tracker(name).add(one.at_s, one.wall_ms, one.group)


class GroupFold:
    """One group at a place of the recording: from the snapshots of all groups, and from its own once it was opened."""

    def __init__(self, recording: Recording, name: str, limits: Limits) -> None:
        self._limits = limits
        self._recording, self._name = recording, name
        self._question = parts(OneGroup(name))[0]
        own = recording.places.get(self._question, [])
        self._first_own = next((place for place in own if recording.frames[place].failure is None), None)
        self._places = sorted([*own, *recording.places.get(ALL, [])])
        self._start(is_opened=False)

    def _start(self, *, is_opened: bool) -> None:
        self._all = Answers(self._recording, Snapshot, ALL)
        self._own = Answers(self._recording, GroupSnapshot, self._question)
        self._tracker = GroupTracker(self._limits)
        self._found: OpenedGroup | None = None
        self._is_opened, self._next = is_opened, 0

    async def go(self, place: int) -> OpenedGroup | None:
        """The group at this place; None if it is not known yet."""
        # Once the group was opened, its trends begin there, as they did then.
        is_opened = self._first_own is not None and self._first_own <= place
        if is_opened != self._is_opened or (self._next and self._places[self._next - 1] > place):
            self._start(is_opened=is_opened)
        while self._next < len(self._places) and self._places[self._next] <= place:
            number = self._places[self._next]
            frame = self._recording.frames[number]
            if frame.error is None:
                self._add(number, frame)
            self._next += 1
            if self._next % CHECKPOINT == 0:
                await asyncio.sleep(0)
        return self._found

    def _add(self, number: int, frame: RecordedFrame) -> None:
        if frame.question == self._question:
            one = self._own.last(number)
            assert one is not None
            self._found = self._found or OpenedGroup(self._tracker)
            self._found.add(one, whole_history=bool(frame.hint("whole_history")))
            return
        everything = self._all.last(number)
        assert everything is not None
        described = everything.groups.get(self._name)
        if self._found is not None:
            self._found.add_from(everything, self._name)
        elif described is not None and self._is_opened:
            if described.error is None:
                self._tracker.add(everything.at_s, everything.wall_ms, described)
        elif described is not None:
            self._found = OpenedGroup(self._tracker)
            self._found.add(GroupSnapshot(everything.at_s, everything.wall_ms, described), whole_history=False)


class ReplayObserver:
    """The observer of a recording, at the place of its feed."""

    def __init__(self, feed: ReplayFeed, limits: Limits = LIMITS) -> None:
        self._feed, self._limits = feed, limits
        self._checkpoints: dict[int, bytes] = {}
        self._cluster = ClusterFold(feed.recording, self._checkpoints, limits)
        self._groups: dict[str, GroupFold] = {}
        self._ahead = ClusterFold(feed.recording, self._checkpoints, limits)
        self.events: tuple[int, ...] | None = None  # places of all events, once they are known

    async def cluster(self) -> ClusterView:
        try:
            view = await self._cluster.go(self._feed.place)
        except NotAValue as error:
            raise NotRecorded(f"A frame before this one is damaged: {error}.") from None
        if view is None:
            raise NotRecorded("Nothing is recorded at this moment: the cluster had not answered yet.")
        return view

    async def group(self, name: str, *, whole_history: bool) -> OpenedGroup:
        fold = self._groups.get(name)
        if fold is None:
            fold = self._groups[name] = GroupFold(self._feed.recording, name, self._limits)
        try:
            found = await fold.go(self._feed.place)
        except NotAValue as error:
            raise NotRecorded(f"A frame before this one is damaged: {error}.") from None
        if found is None:
            raise NotRecorded("The recording does not have this group at this moment.")
        return found

    async def look_ahead(self) -> None:
        """Go through the whole recording once: for the events, and for checkpoints."""
        recording = self._feed.recording
        try:
            view = await self._ahead.go(len(recording.frames) - 1)
        except NotAValue:
            view = self._ahead.view
        walls = [frame.wall_ms for frame in recording.frames]
        places = {min(bisect_right(walls, event.wall_ms - 1), len(walls) - 1) for event in view.events} if view else ()
        self.events = tuple(sorted(places))
