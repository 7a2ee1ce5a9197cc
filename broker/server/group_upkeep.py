"""GroupUpkeep: background work on the offsets in the store, a few milliseconds at a time.

Offsets of groups that are not loaded expire here, and the tombstones of offsets that were removed together are written here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from broker.cores.core import Effects
from broker.server.group_loads import offset_records

if TYPE_CHECKING:
    import asyncio

    from broker.cores.groups.coordinator import Coordinator
    from broker.cores.groups.events import GroupEvent
    from broker.cores.groups.records import StateRecord
    from broker.cores.groups.step import GroupEffects
    from broker.server.runner import Runner
    from broker.storage import StoredGroups, TopicRow

# How long the work may run at a time, and how long it then pauses.
TURN_S, PAUSE_S = 0.005, 0.01
MANY_ROWS = 1_000


class GroupUpkeep:
    def __init__(
        self,
        coordinator: Coordinator,
        runner: Runner[StateRecord, GroupEvent],
        stored: Callable[[], StoredGroups],
        append: Callable[[Sequence[TopicRow]], None],
        loop: asyncio.AbstractEventLoop,
        wall_ms: Callable[[], int],
        expiry_interval_ms: int,
    ) -> None:
        """`append` appends rows to `__consumer_offsets`."""
        self._coordinator = coordinator
        self._runner = runner
        self._stored = stored
        self._append = append
        self._loop = loop
        self._wall_ms = wall_ms
        self._expiry_interval_s = expiry_interval_ms / 1000
        self._expiry = _Work(loop, runner, self._expire, self._idle)
        self._removal = _Work(loop, runner, self._remove, self._idle)
        self._indexing = _Work(loop, runner, self._index, self._idle)

    def start(self) -> None:
        self._expiry.start(self._expiry_interval_s, every=self._expiry_interval_s)
        self.continue_removals()

    def stop(self) -> None:
        self._expiry.stop()
        self._removal.stop()
        self._indexing.stop()

    def continue_removals(self) -> None:
        """Write the tombstones of offsets that were removed together."""
        if self._stored().has_removals or self._coordinator.free():
            self._removal.start(0)

    def appended(self, rows: int) -> None:
        """Index many new rows before a query has to do it at once."""
        if rows >= MANY_ROWS:
            self._indexing.start(0)

    def _index(self) -> Iterator[GroupEffects]:
        while self._stored().settle_slice():
            yield self._idle()

    def _idle(self) -> GroupEffects:
        return Effects([], [], self._coordinator.wake_at())

    def _expire(self) -> Iterator[GroupEffects]:
        core = self._coordinator
        for group_id in core.unloaded_groups():
            pages = self._stored().offset_pages(group_id)
            kept = 0
            while core.can_expire_unloaded(group_id):
                page = next(pages, None)
                if page is None:
                    if not kept:
                        yield core.expire_emptied(group_id, self._runner.now_ms, self._wall_ms())
                    break
                effects = core.expire_unloaded(group_id, offset_records(page), self._runner.now_ms, self._wall_ms())
                kept += len(page) - len(effects.state_records)
                yield effects
        yield from self._resolve_doubts()

    def _remove(self) -> Iterator[GroupEffects]:
        while self._stored().has_removals or self._coordinator.free():
            for rows in self._stored().tombstones(self._wall_ms()):
                self._append(rows)
                self._coordinator.free()
                yield self._idle()
            yield from self._resolve_doubts()
            yield self._idle()

    def _resolve_doubts(self) -> Iterator[GroupEffects]:
        for _ in self._stored().resolve_doubts():
            yield self._idle()


class _Work:
    """One kind of work: an iterator over steps of the core, which runs in turns."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        runner: Runner[StateRecord, GroupEvent],
        begin: Callable[[], Iterator[GroupEffects]],
        idle: Callable[[], GroupEffects],
    ) -> None:
        self._loop = loop
        self._runner = runner
        self._begin = begin
        self._idle = idle
        self._steps: Iterator[GroupEffects] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._every: float | None = None

    def start(self, delay_s: float, *, every: float | None = None) -> None:
        """Run after a delay, unless it is about to run. `every`: again so long after each end."""
        self._every = every
        if self._timer is None:
            self._timer = self._loop.call_later(delay_s, self._turn)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _turn(self) -> None:
        until = self._loop.time() + TURN_S
        if self._steps is None:
            self._steps = self._begin()
        while self._steps is not None and not self._runner.has_failed:
            self._runner.step(self._step)
            if self._loop.time() >= until:
                break
        self._timer = None
        if self._steps is not None:
            self._timer = self._loop.call_later(PAUSE_S, self._turn)
        elif self._every is not None:
            self._timer = self._loop.call_later(self._every, self._turn)

    def _step(self) -> GroupEffects:
        assert self._steps is not None
        effects = next(self._steps, None)
        if effects is None:
            self._steps = None
            return self._idle()
        return effects
