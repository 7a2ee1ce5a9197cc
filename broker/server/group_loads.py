"""GroupLoads: reads the committed offsets of groups from the store when a request first needs them.

A group may have a million offsets, so a load may take several turns of the event loop; the requests that need it wait.
"""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from broker.cores.groups.records import OffsetCommitRecord, from_row

if TYPE_CHECKING:
    import asyncio

    from broker.cores.groups.coordinator import Coordinator
    from broker.storage import StoredGroups, TopicRow

# How long loads may take in one turn of the event loop.
TURN_S = 0.005
# After this number of rows, what is in memory is kept from the garbage collector.
FROZEN_ROWS = 20_000


class _Load:
    """The load of one group, and what runs after it."""

    def __init__(self, group_id: str, pages: Iterator[list[TopicRow]]) -> None:
        self.group_id = group_id
        self.pages = pages
        self.waiting: list[Callable[[], None]] = []


class GroupLoads:
    def __init__(
        self,
        coordinator: Coordinator,
        stored: Callable[[], StoredGroups],
        loop: asyncio.AbstractEventLoop,
        fail: Callable[[BaseException], None],
    ) -> None:
        """`fail` takes the error of a load, which is final: see `Runner.step`."""
        self._coordinator = coordinator
        self._stored = stored
        self._loop = loop
        self._fail = fail
        self._loads: dict[str, _Load] = {}
        self._queue: deque[_Load] = deque()
        self._stopped = False
        self._unfrozen = 0

    def stop(self) -> None:
        self._stopped = True

    def when_loaded(self, group_ids: Sequence[str], run: Callable[[], None]) -> None:
        """Call `run` once the offsets of these groups are in memory: now, unless they are many."""
        until = self._loop.time() + TURN_S
        for group_id in group_ids:
            if not self._coordinator.needs_load(group_id):
                continue
            load = self._loads.get(group_id) or self._begin(group_id)
            if self._loop.time() >= until or load in self._queue or not self._read(load, until):
                load.waiting.append(lambda: self.when_loaded(group_ids, run))
                self._enqueue(load)
                return
        run()

    def _begin(self, group_id: str) -> _Load:
        self._coordinator.begin_load(group_id)
        load = self._loads[group_id] = _Load(group_id, self._stored().offset_pages(group_id))
        return load

    def _enqueue(self, load: _Load) -> None:
        if load not in self._queue:
            self._queue.append(load)
            if len(self._queue) == 1:
                self._loop.call_soon(self._turn)

    def _turn(self) -> None:
        """Continue the first load, which then becomes the last."""
        if self._stopped:
            return
        load = self._queue.popleft()
        is_done = self._read(load, self._loop.time() + TURN_S)
        if not is_done:
            self._queue.append(load)
        if self._queue:
            self._loop.call_soon(self._turn)
        if is_done:
            for run in load.waiting:
                self._loop.call_soon(run)

    def _read(self, load: _Load, until: float) -> bool:
        """Read pages until this time, at least one. True: the load is complete, or the group was deleted."""
        try:
            while self._read_page(load):
                if self._loop.time() >= until:
                    return False
        except Exception as error:
            self._fail(error)
            raise
        self._coordinator.end_load(load.group_id)
        del self._loads[load.group_id]
        return True

    def _read_page(self, load: _Load) -> bool:
        page = next(load.pages, None)
        if page is None:
            return False
        self._unfrozen += len(page)
        if self._unfrozen > FROZEN_ROWS:
            # Offsets live long: the garbage collector takes a tenth of a second to visit a million of them.
            self._unfrozen = 0
            gc.freeze()
        return self._coordinator.add_loaded(load.group_id, offset_records(page))


def offset_records(rows: Iterable[TopicRow]) -> list[OffsetCommitRecord]:
    records = [from_row(row.key, row.value, row.timestamp_ms) for row in rows]
    return [record for record in records if isinstance(record, OffsetCommitRecord)]
