"""Moves through a recording: steps, jumps, and plays it at a speed."""

from __future__ import annotations

import asyncio
import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable

from kgctl.tui.feed.replay import ReplayFeed
from kgctl.tui.replay.observer import ALL, ReplayObserver

SPEEDS = (0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 100.0)
# Nothing happens for longer than this while a recording plays: a pause of the recorded dashboard is skipped.
LONGEST_WAIT_S = 5.0
KEYS = "space play  , . step  < > 10  n N event  { } ends  + - speed"


class Player:
    """Sets the place of the feed and calls `moved` after each change. Steps stop at the ends."""

    def __init__(self, feed: ReplayFeed, observer: ReplayObserver, moved: Callable[[], None]) -> None:
        self._feed, self._observer, self._moved = feed, observer, moved
        self._frames = feed.recording.frames
        self._wanted = asyncio.Event()
        self.is_playing = False
        self.speed = 1.0
        self.note = ""

    @property
    def place(self) -> int:
        return self._feed.place

    @property
    def text(self) -> str:
        """Where the recording stands: time, frame, speed, and what is wrong with the file or with this frame."""
        frame, recording = self._feed.frame, self._feed.recording
        moment = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(frame.wall_ms / 1000))
        speed = f"playing {self.speed:g}x" if self.is_playing else f"paused, {self.speed:g}x"
        words = [f"REPLAY {moment}", f"frame {self.place + 1:,} of {len(self._frames):,}", speed]
        if frame.error is not None:
            words.append(f"no answer: {frame.error}")
        if recording.damage is not None and self.place == len(self._frames) - 1:
            words.append(f"the file ends here: {recording.damage}")
        return "  ".join([*words, *([self.note] if self.note else [KEYS])])

    def to(self, place: int) -> None:
        self.note = ""
        self._feed.place = min(max(0, place), len(self._frames) - 1)
        self._moved()

    def step(self, by: int) -> None:
        self.is_playing = False
        self.to(self.place + by)

    def to_first(self) -> None:
        """The first frame that shows all groups, or the first one."""
        self.is_playing = False
        self.to(self._feed.recording.places.get(ALL, [0])[0])

    def to_last(self) -> None:
        self.step(len(self._frames))

    def to_event(self, direction: int) -> None:
        """The next event, or the one before."""
        self.is_playing = False
        places = self._observer.events
        if places is None:
            self.note = "Still looking for events; try again in a moment."
            self._moved()
            return
        at = bisect_right(places, self.place) if direction > 0 else bisect_left(places, self.place) - 1
        if 0 <= at < len(places):
            self.to(places[at])
            return
        self.note = "No later event." if direction > 0 else "No earlier event."
        self._moved()

    def play(self) -> None:
        """Begin or stop to play; at the end, begin again at the start."""
        self.is_playing = not self.is_playing
        if self.is_playing and self.place == len(self._frames) - 1:
            self._feed.place = 0
        self._wanted.set()
        self.to(self.place)

    def change_speed(self, by: int) -> None:
        self.speed = SPEEDS[min(max(0, SPEEDS.index(self.speed) + by), len(SPEEDS) - 1)]
        self._moved()

    async def run(self) -> None:
        """Play while wanted, until this is cancelled."""
        while True:
            self._wanted.clear()
            while self.is_playing:
                at = self.place
                if at == len(self._frames) - 1:
                    self.is_playing = False
                    self._moved()
                    break
                apart_s = max(0.0, self._frames[at + 1].at_s - self._frames[at].at_s)
                await asyncio.sleep(min(apart_s / self.speed, LONGEST_WAIT_S))
                if self.is_playing and self.place == at:
                    self.to(at + 1)
            await self._wanted.wait()
