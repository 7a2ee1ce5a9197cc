"""A world with a clock, a network and processes that crash, pause and lose their connections. A seed decides everything."""

from __future__ import annotations

import random
from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any

Action = Callable[..., None]

LATENCY_MS = (1, 5)


class World:
    """Runs actions at their times. Two actions at the same time run in the order in which they were asked for."""

    def __init__(self, seed: str) -> None:
        self.random = random.Random(seed)
        self.now_ms = 0
        self.messages = 0
        """Requests, answers and notifications that a change of the group causes."""
        self.heartbeats = 0
        """Requests and answers that are sent as long as nothing changes."""
        self._due: list[tuple[int, int, Action, tuple[Any, ...]]] = []
        self._asked = 0

    def after(self, ms: int, action: Action, *arguments: Any) -> None:
        self._asked += 1
        heappush(self._due, (self.now_ms + ms, self._asked, action, arguments))

    def run_until(self, end_ms: int) -> None:
        while self._due and self._due[0][0] <= end_ms:
            self.now_ms, _, action, arguments = heappop(self._due)
            action(*arguments)
        self.now_ms = end_ms

    def latency(self) -> int:
        return self.random.randint(*LATENCY_MS)

    def count(self, messages: int = 1, *, heartbeat: bool = False) -> None:
        if heartbeat:
            self.heartbeats += messages
        else:
            self.messages += messages


class Process:
    """A member's process. What it was about to do is gone after a crash, and waits while it is paused."""

    def __init__(self, world: World, number: int) -> None:
        self.world, self.number = world, number
        self.name = f"member-{number:03}"
        self.is_alive, self.is_paused, self.is_cut_off = False, False, False
        self.incarnation = 0
        self._waiting: list[tuple[Action, tuple[Any, ...]]] = []
        # Messages arrive in the order in which they were sent.
        self._sent_ms = self._delivered_ms = 0

    @property
    def works(self) -> bool:
        """Whether it processes records."""
        return self.is_alive and not self.is_paused

    def start(self) -> None:
        self.incarnation += 1
        self.is_alive, self.is_paused, self.is_cut_off = True, False, False
        self._waiting = []

    def stop(self) -> None:
        self.incarnation += 1
        self.is_alive = False

    def resume(self) -> None:
        self.is_paused = False
        waiting, self._waiting = self._waiting, []
        for action, arguments in waiting:
            self.world.after(0, self._run, self.incarnation, action, arguments)

    def after(self, ms: int, action: Action, *arguments: Any) -> None:
        self.world.after(ms, self._run, self.incarnation, action, arguments)

    def send(self, to: Action, *arguments: Any, heartbeat: bool = False) -> None:
        """A message to the other side, which gets it unless this process is cut off then."""
        if self.works:
            self.world.count(heartbeat=heartbeat)
            self._sent_ms = max(self._sent_ms, self.world.now_ms + self.world.latency())
            self.world.after(self._sent_ms - self.world.now_ms, self._arrive, to, arguments)

    def deliver(self, action: Action, *arguments: Any, heartbeat: bool = False, incarnation: int = 0) -> None:
        """A message to this process, or to an earlier one of the same member, which is gone."""
        self.world.count(heartbeat=heartbeat)
        self._delivered_ms = max(self._delivered_ms, self.world.now_ms + self.world.latency())
        self.world.after(
            self._delivered_ms - self.world.now_ms, self._receive, incarnation or self.incarnation, action, arguments
        )

    def _arrive(self, to: Action, arguments: tuple[Any, ...]) -> None:
        if not self.is_cut_off:
            to(*arguments)

    def _receive(self, incarnation: int, action: Action, arguments: tuple[Any, ...]) -> None:
        if not self.is_cut_off:
            self._run(incarnation, action, arguments)

    def _run(self, incarnation: int, action: Action, arguments: tuple[Any, ...]) -> None:
        if incarnation != self.incarnation or not self.is_alive:
            return
        if self.is_paused:
            self._waiting.append((action, arguments))
        else:
            action(*arguments)
