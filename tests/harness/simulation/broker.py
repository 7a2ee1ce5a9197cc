"""The broker of a simulated world: the real core, runner and flusher, with the judge at every step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from broker.cores.core import Effects, RequestContext
from broker.cores.groups.coordinator import Coordinator
from broker.cores.groups.records import OffsetCommitRecord
from broker.cores.groups.settings import GroupSettings
from broker.cores.groups.topics import TopicCatalog
from broker.protocol.wire_types import Message
from broker.server.exchange import Exchange
from broker.server.flush import Flusher
from broker.server.group_runner import GroupRunner
from broker.server.handlers.groups import groups_to_load
from tests.harness.simulation.clock import BrokerLoop
from tests.harness.simulation.judge import Judge

if TYPE_CHECKING:
    from tests.harness.simulation.world import World


class Watched(Coordinator):
    """The core; the judge checks every step."""

    def __init__(self, settings: GroupSettings, new_id: Callable[[], str], topics: TopicCatalog, judge: Judge) -> None:
        super().__init__(settings, new_id, topics)
        self._judge = judge

    def handle(self, request: Message, context: RequestContext, now_ms: int) -> Effects:
        self._judge.before(request, context)
        return self._judged(super().handle(request, context, now_ms), request)

    def advance(self, now_ms: int, wall_ms: int) -> Effects:
        before = self._judge.synced_members()
        self._judge.due()
        effects = self._judged(super().advance(now_ms, wall_ms))
        self._judge.evicted(before)
        return effects

    def resume(self, now_ms: int, wall_ms: int) -> Effects:
        return self._judged(super().resume(now_ms, wall_ms))

    def expire_unloaded(
        self, group_id: str, records: Sequence[OffsetCommitRecord], now_ms: int, wall_ms: int
    ) -> Effects:
        return self._judged(super().expire_unloaded(group_id, records, now_ms, wall_ms))

    def expire_emptied(self, group_id: str, now_ms: int, wall_ms: int) -> Effects:
        return self._judged(super().expire_emptied(group_id, now_ms, wall_ms))

    def _judged(self, effects: Effects, request: Message | None = None) -> Effects:
        self._judge.after(request, effects)
        return effects


class NoFetches:
    """Replaces the parked fetches: no client reads `__consumer_offsets` here."""

    def moved(self, topic: str, partition: int) -> None:
        pass

    def wake(self) -> None:
        pass


class Broker:
    """One run of the broker, from its start to its crash, with the real core, runner and flusher."""

    def __init__(self, world: World, number: int, settings: GroupSettings) -> None:
        self.number = number
        self.settings = settings
        self.judge = world.judge
        self.loop = BrokerLoop(world.clock)
        self.core = Watched(settings, world.new_id, world.catalog, world.judge)
        loop: Any = self.loop
        waiters: Any = NoFetches()
        self.flusher = Flusher(
            world.disk,
            loop,
            flushed=lambda: None,
            wake=waiters.wake,
            failed=lambda cause: world.crash_broker(str(cause)),
        )
        disk: Any = world.disk
        interval_ms = settings.offsets_retention_check_interval_ms
        self.runner = GroupRunner(self.core, disk, self.flusher, waiters, loop, world.wall_ms, interval_ms)

    @property
    def now_ms(self) -> int:
        return int(self.loop.time() * 1000)

    def submit(self, request: Message, exchange: Exchange) -> None:
        self.judge.arrived(exchange, request)
        self.runner.load_and_submit(request, exchange, groups_to_load(request))
