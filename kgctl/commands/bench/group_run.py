"""Members of one group, in one asyncio loop: each is a whole consumer with its own connections and heartbeats."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import Callable, Collection

from broker.light_dataclasses import dataclass, field, replace
from kgctl.client.config.configuration import from_keywords
from kgctl.client.consumer.async_consumer import AsyncConsumer
from kgctl.client.consumer.errors import WakeupError
from kgctl.client.consumer.rebalance_listener import RebalanceListener
from kgctl.client.consumer.settings import ConsumerSettings, settings_of
from kgctl.client.net.connector import ConnectionSettings
from kgctl.client.net.errors import KgctlError, TimedOut
from kgctl.client.net.tracing import Exchanged, Opened, Trace
from kgctl.commands.bench.latencies import Latencies
from kgctl.commands.shared.interruption import Interruption
from kgctl.model.topic_partition import TopicPartition

# More at once would wait for the listen queue of a broker.
_STARTED_TOGETHER = 32
_BETWEEN_STARTS_S = 0.02
_SHOWN_EVERY_S = 0.2
_CLOSE_S = 10.0
_EPOCH_HEARTBEAT = "ConsumerGroupHeartbeat"


@dataclass(frozen=True, slots=True)
class GroupLoad:
    """What to do: bring `members` together, let one leave and join again `rebalances` times, and watch for `seconds` in all.

    `protocol` is classic or consumer; for the latter, the broker decides `heartbeat_s` and `session_s`.
    """

    topic: str
    group: str
    members: int
    partitions: int
    protocol: str
    assignor: str
    rebalances: int
    seconds: float
    heartbeat_s: float
    session_s: float
    stable_within_s: float


@dataclass(slots=True)
class GroupFigures:
    """What was measured, in seconds. Generations count from the first in which all members had their partitions."""

    stable_s: float | None = None
    generations: set[int] = field(default_factory=set)
    rebalances: Latencies = field(default_factory=Latencies)
    heartbeats: Latencies = field(default_factory=Latencies)
    heartbeats_failed: int = 0
    seconds: float = 0.0
    cpu_s: float = 0.0

    def note_request(self, one: Opened | Exchanged) -> None:
        """A trace of what the members send."""
        if isinstance(one, Exchanged) and one.api in ("Heartbeat", _EPOCH_HEARTBEAT):
            if one.ms is None:
                self.heartbeats_failed += 1
            else:
                self.heartbeats.add(one.ms / 1000)


class _Board:
    """Who is in which generation with how many partitions."""

    def __init__(self, load: GroupLoad, figures: GroupFigures) -> None:
        self._load, self._figures = load, figures
        self._members: Counter[int] = Counter()
        self._assigned = 0
        self.newest = -1
        self.changed = asyncio.Event()

    @property
    def together(self) -> int:
        return self._members[self.newest]

    @property
    def is_stable(self) -> bool:
        """All members are in one generation, and all partitions have an owner."""
        return self.together == self._load.members and self._assigned == self._load.partitions

    def move(self, before: tuple[int, int], after: tuple[int, int]) -> None:
        """A member had a generation and a number of partitions, and has others now."""
        self._members[before[0]] -= 1
        self._members[after[0]] += 1
        self._assigned += after[1] - before[1]
        if after[0] >= 0:
            self._figures.generations.add(after[0])
            self.newest = max(self.newest, after[0])
        self.changed.set()


_NOWHERE = (-1, 0)


class _Member(RebalanceListener):
    def __init__(
        self, connection: ConnectionSettings, settings: ConsumerSettings, trace: Trace, topic: str, board: _Board
    ) -> None:
        self._trace, self._topic, self._board = trace, topic, board
        self._place = _NOWHERE
        self._leaves = self._is_over = self._may_have_epoch = False
        self._consumer = AsyncConsumer.connect(replace(connection, trace=self._note), settings)

    def on_partitions_assigned(self, partitions: Collection[TopicPartition]) -> None:
        # The measurement is about the group, not about fetches.
        self._consumer.pause(partitions)
        self._move((self._consumer.group_metadata().generation_id, len(self._consumer.assignment())))

    def on_partitions_revoked(self, partitions: Collection[TopicPartition]) -> None:
        self._move((self._place[0], self._place[1] - len(partitions)))

    def on_partitions_lost(self, partitions: Collection[TopicPartition]) -> None:
        self._move(_NOWHERE)

    def leave_and_join(self) -> None:
        self._leaves = True
        self._consumer.wakeup()

    def end(self) -> None:
        self._is_over = True
        self._consumer.wakeup()

    async def run(self) -> None:
        """Be a member until `end`."""
        try:
            self._consumer.subscribe([self._topic], listener=self)
            while not self._is_over:
                with contextlib.suppress(WakeupError):
                    await self._poll()
                if self._may_have_epoch:
                    self._may_have_epoch = False
                    self._note_epoch()
        finally:
            with contextlib.suppress(KgctlError):
                await self._consumer.close(_CLOSE_S)

    async def _poll(self) -> None:
        if self._leaves:
            self._leaves = False
            await self._consumer.unsubscribe()
            self._move(_NOWHERE)
            self._consumer.subscribe([self._topic], listener=self)
        try:
            await self._consumer.poll(1.0)
        except KgctlError as error:
            if not error.retriable:
                raise

    def _note(self, one: Opened | Exchanged) -> None:
        """An epoch that leaves the assignment as it is calls no listener: see after each heartbeat of the consumer protocol."""
        self._trace(one)
        if isinstance(one, Exchanged) and one.api == _EPOCH_HEARTBEAT:
            self._may_have_epoch = True
            self._consumer.wakeup()

    def _note_epoch(self) -> None:
        epoch = self._consumer.group_metadata().generation_id
        self._move((epoch, len(self._consumer.assignment())) if epoch > 0 else _NOWHERE)

    def _move(self, place: tuple[int, int]) -> None:
        before, self._place = self._place, place
        self._board.move(before, place)


class GroupRun:
    """One measurement; `figures` has what is known so far."""

    def __init__(
        self, connection: ConnectionSettings, load: GroupLoad, interruption: Interruption, show: Callable[[str], None]
    ) -> None:
        self._load, self._interruption, self._show = load, interruption, show
        self.figures = GroupFigures()
        self._settings = _settings(connection, load)
        self._connection, self._trace = connection, self._traced(connection)
        self._began = 0.0
        self._tasks: list[asyncio.Task[None]] = []
        self._members: list[_Member] = []

    async def run(self) -> None:
        """Raises why a member ended, or TimedOut if they do not come together in time."""
        self._began, cpu = time.perf_counter(), time.process_time()
        self._board = _Board(self._load, self.figures)
        loop = asyncio.get_running_loop()
        loop.add_reader(self._interruption.fileno, self._board.changed.set)
        try:
            await self._play()
        finally:
            loop.remove_reader(self._interruption.fileno)
            self.figures.seconds = time.perf_counter() - self._began
            self.figures.cpu_s = time.process_time() - cpu
            await self._end()

    async def _play(self) -> None:
        load = self._load
        await self._start()
        if not await self._until_stable(-1, "joining"):
            return
        self.figures.stable_s = stable_s = time.perf_counter() - self._began
        for number in range(load.rebalances):
            before, began = self._board.newest, time.perf_counter()
            self._members[-1 - number % load.members].leave_and_join()
            if not await self._until_stable(before, f"rebalance {number + 1} of {load.rebalances}"):
                return
            self.figures.rebalances.add(time.perf_counter() - began)
        end = self._began + stable_s + load.seconds
        await self._until(lambda: False, "stable", end)

    async def _start(self) -> None:
        for number in range(self._load.members):
            if self._interruption.requested:
                return
            member = _Member(self._connection, self._settings, self._trace, self._load.topic, self._board)
            self._members.append(member)
            self._tasks.append(asyncio.create_task(member.run(), name=f"member {number + 1}"))
            if number % _STARTED_TOGETHER == _STARTED_TOGETHER - 1:
                self._show(f"started {number + 1:,} of {self._load.members:,} members")
                await asyncio.sleep(_BETWEEN_STARTS_S)

    async def _until_stable(self, after: int, what: str) -> bool:
        """Whether all members are together in a generation newer than `after`; False after a signal."""
        board, load = self._board, self._load
        limit = time.perf_counter() + load.stable_within_s
        if await self._until(lambda: board.is_stable and board.newest > after, what, limit):
            return True
        if not self._interruption.requested:
            raise TimedOut(
                f"{board.together:,} of {load.members:,} members were in one generation after {load.stable_within_s:g} s;"
                " allow them more time with --stable-within"
            )
        return False

    async def _until(self, condition: Callable[[], bool], what: str, limit: float) -> bool:
        board = self._board
        while not condition():
            self._check()
            left = limit - time.perf_counter()
            if self._interruption.requested or left <= 0:
                return False
            board.changed.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(board.changed.wait(), min(left, _SHOWN_EVERY_S))
            self._show(
                f"{what}: {board.together:,} of {self._load.members:,} members in generation {max(board.newest, 0)},"
                f" {self.figures.heartbeats.count:,} heartbeats, {time.perf_counter() - self._began:.0f} s"
            )
        return True

    def _check(self) -> None:
        for task in self._tasks:
            if task.done():
                task.result()

    async def _end(self) -> None:
        self._show("leaving")
        for member in self._members:
            member.end()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _traced(self, connection: ConnectionSettings) -> Trace:
        given, note = connection.trace, self.figures.note_request
        if given is None:
            return note

        def both(one: Opened | Exchanged) -> None:
            note(one)
            given(one)

        return both


def _settings(connection: ConnectionSettings, load: GroupLoad) -> ConsumerSettings:
    options: dict[str, object] = {
        "group_id": load.group,
        "group_protocol": load.protocol,
        "enable_auto_commit": False,
        "auto_offset_reset": "latest",
    }
    if load.protocol == "consumer":
        options["group_remote_assignor"] = load.assignor
    else:
        options["partition_assignment_strategy"] = [load.assignor]
        options["heartbeat_interval_ms"] = round(load.heartbeat_s * 1000)
        options["session_timeout_ms"] = round(load.session_s * 1000)
    settings = settings_of(from_keywords("consumer", options))
    network = replace(settings.network, client_id=connection.client_id, read_only=connection.read_only)
    return replace(settings, network=network)
