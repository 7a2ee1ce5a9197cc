"""The broker of a transactional world: everything of the real one except sockets."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from broker.config.config import BrokerConfig
from broker.cores.groups.coordinator import Coordinator
from broker.cores.groups.settings import GroupSettings
from broker.protocol.wire_types import Message
from broker.server.exchange import Exchange
from broker.server.fetch_waiters import FetchWaiters
from broker.server.flush import Flusher
from broker.server.group_runner import GroupRunner
from broker.server.handlers import find_declaration
from broker.server.resources import Resources
from broker.server.router import Route
from broker.server.transaction_runner import TransactionRunner, start
from broker.storage import Log, LogSettings, StorageError
from tests.harness.simulation.clock import SECOND, BrokerLoop, Clock, Handle

if TYPE_CHECKING:
    from broker.server.share_runner import ShareRunner
    from tests.harness.simulation.transactions.world import World

SETTINGS = LogSettings(
    segment_bytes=4_000, index_interval_bytes=200, offsets_topic_partitions=3, transactions_topic_partitions=2
)
GROUPS = GroupSettings(group_initial_rebalance_delay_ms=0)


@cache
def route(key: int) -> Route:
    declaration = find_declaration(key)
    assert declaration is not None
    return Route(declaration, is_guarded=False)


class SlowLoop(BrokerLoop):
    """The loop of a slow machine: each look at the clock takes time, so that long work needs several turns."""

    def __init__(self, clock: Clock, look_us: int) -> None:
        super().__init__(clock)
        self._look_us = look_us

    def time(self) -> float:
        if self._look_us:
            self.be_busy(self._look_us)
        return super().time()

    def call_at(self, when: float, run: Callable[..., None], *arguments: Any) -> Handle:
        # Never before the time that was asked for: the parked fetches would ask again at once.
        return super().call_at((int(when * SECOND) + 1) / SECOND, run, *arguments)


class Broker:
    """One run of the broker, from its start to its crash."""

    def __init__(self, world: World, number: int) -> None:
        self.number = number
        self.judge = world.judge
        self.loop = SlowLoop(world.clock, world.look_us)
        loop: Any = self.loop
        self.log = Log.open(Path(world.directory), SETTINGS, wall_ms=world.wall_ms(), file_ops=world.disk)
        self.flusher = Flusher(
            self.log,
            loop,
            flushed=lambda: None,
            wake=lambda: self.waiters.wake(),
            failed=lambda why: world.crash_broker(str(why)),
        )
        self.waiters = FetchWaiters(loop, self.flusher.fail, -1)
        self._config = self.config(world)
        self.core = self.make_core(world)
        self._world = world
        self._transactions: TransactionRunner | None = None
        self.groups = GroupRunner(self.core, self.log, self.flusher, self.waiters, loop, world.wall_ms, 1 << 40)
        unused: Any = None
        self.resources = Resources(
            self._config, self.log, self.groups, self.waiters, unused, self.find_transactions, self.find_shares
        )

    def config(self, world: World) -> BrokerConfig:
        return BrokerConfig(durability="power", given={}, unimplemented=(), of_listeners={})

    def make_core(self, world: World) -> Coordinator:
        return Coordinator(GROUPS, world.new_id, self)

    def find_shares(self) -> ShareRunner:
        raise AssertionError("no client of these worlds uses share groups")

    def recover(self) -> None:
        """As `broker.server.broker` starts."""
        self.groups.recover()
        log = self.log
        if not (log.transactions.is_empty and log.pending_offsets.is_empty) or any(log.open_transactions()):
            self.find_transactions()
            self.flusher.flush()

    def find_transactions(self) -> TransactionRunner:
        if self._transactions is None:
            loop: Any = self.loop
            self._transactions = start(
                self._config, self.log, self.groups, self.flusher, self.waiters, loop, self._world.wall_ms
            )
        return self._transactions

    @property
    def transactions(self) -> TransactionRunner | None:
        return self._transactions

    def partition_count(self, topic: str) -> int | None:
        found = self.log.topics.get(topic)
        return None if found is None else found.partition_count

    def submit(self, request: Message, exchange: Exchange) -> None:
        self.judge.arrived(exchange, request)
        try:
            response = route(exchange.api_key).handle(request, exchange, self.resources)
        except StorageError as error:
            self.flusher.fail(error)
            return
        if response is not None:
            exchange.answer(response)

    def close(self) -> None:
        """Leave the directory as kill -9 does."""
        self.log.close(clean=False)
