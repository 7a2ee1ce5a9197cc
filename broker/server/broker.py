"""Broker: the parts of one broker wired together, its start, its stop and its background work."""

from __future__ import annotations

import asyncio
import logging
import os
from functools import partial
from typing import TYPE_CHECKING

from broker.cores.groups.coordinator import Coordinator
from broker.server.connection import Connection
from broker.server.connection_limits import ConnectionLimits
from broker.server.connections import Connections
from broker.server.fetch_waiters import FetchWaiters
from broker.server.flush import Flusher
from broker.server.group_runner import GroupRunner
from broker.server.handlers import find_declaration
from broker.server.listener import Listener
from broker.server.log_topics import LogTopics
from broker.server.own_config_kinds import GROUP
from broker.server.resources import Resources, wall_ms
from broker.server.router import Router
from broker.server.throttle import Throttle
from broker.storage import StorageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from broker.config.config import BrokerConfig
    from broker.config.listeners import Endpoint
    from broker.server.connection import MakeGate
    from broker.server.listener_tls import ListenerTls
    from broker.server.metrics.server import MetricsServer
    from broker.server.share_runner import ShareRunner
    from broker.server.stored_acls import StoredAcls
    from broker.server.transaction_runner import TransactionRunner
    from broker.storage import Log

# How long a stop waits for clients to read their answers.
STOP_GRACE_S = 2.0
# How often an idle broker checks that its data directory is still in place.
DIRECTORY_CHECK_S = 0.5
# How soon after a flush the log may do background work.
SWEEP_DELAY_S = 1.0
# With Kafka's 50, hundreds of clients that connect at once wait for seconds: the system drops most of them, and they retry.
BACKLOG = 1024

logger = logging.getLogger("broker.server")


class Broker:
    """Serves one log. If the log or the coordinator fails, `failed` is done, `failure` is the cause, and no further answer is sent.

    The log belongs to the caller: `stop` flushes it but does not close it.
    """

    def __init__(
        self,
        config: BrokerConfig,
        log: Log,
        tls: Mapping[str, ListenerTls],
        metrics_listen: Endpoint | None = None,
    ) -> None:
        """`tls` has the TLS side of each listener that needs one (see listener_tls.py). `metrics_listen` is where metrics are read."""
        self._tls = tls
        self._metrics_listen = metrics_listen
        self.metrics: MetricsServer | None = None
        self._config = config
        self._log = log
        self._loop = asyncio.get_running_loop()
        self.failed: asyncio.Future[None] = self._loop.create_future()
        self._flusher = Flusher(log, self._loop, flushed=self._after_flush, wake=self._wake, failed=self._fail)
        # A client whose fetch waits is not idle, but Kafka closes its connection as if it were: answer the fetch before.
        self.waiters = FetchWaiters(self._loop, self._flusher.fail, config.connections_max_idle_ms)
        self.groups: GroupRunner
        self._resources: Resources
        self._transactions: TransactionRunner | None = None
        self._shares: ShareRunner | None = None
        self.listeners: list[Listener] = []
        self._throttle = Throttle(config, log, self._loop.time)
        self.connections = Connections(
            self._loop,
            self._throttle,
            frame_bytes=config.socket_request_max_bytes,
            idle_ms=config.connections_max_idle_ms,
            limits=ConnectionLimits.of(config),
            when_room=self._resume_accepting,
        )
        self._flusher.times = self.connections.times
        self._sweep_timer: asyncio.TimerHandle | None = None
        self._stopping = False

    @property
    def failure(self) -> BaseException | None:
        return self._flusher.failure

    async def start(self) -> None:
        """Recover, then accept connections. Raises CannotListen."""
        advertised = self._config.advertised
        try:
            for address in self._config.listen:
                tls = self._tls.get(address.name)
                self.listeners.append(Listener(address, advertised.get(address.name), tls))
            resources = self._recover()
            router = Router(find_declaration, resources)
            if self._metrics_listen is not None:
                self.metrics = self._serve_metrics(self._metrics_listen, resources, router)
            for listener in self.listeners:
                gate = self._make_gate(listener, resources)
                make = partial(Connection, router, self._flusher, self.connections, self._loop, listener, gate)
                listener.start(make, partial(self.connections.room, listener.name), self._loop, self._backlog)
        except BaseException:
            self._close_listeners()
            raise
        self._loop.set_exception_handler(_log_loop_error)
        self._sweep_later(self._log.next_sweep_ms(wall_ms()) / 1000)
        self._check_directory()

    async def stop(self) -> None:
        """Accept nothing more, answer what can be answered, flush, and close the connections."""
        self._stopping = True
        self._close_listeners()
        if self._sweep_timer is not None:
            self._sweep_timer.cancel()
        self._stop_cores()
        self.waiters.end_all()
        self._flusher.flush()
        await self.connections.close_all(STOP_GRACE_S)
        self._flusher.flush()

    def _serve_metrics(self, endpoint: Endpoint, resources: Resources, router: Router) -> MetricsServer:
        from broker.server.error_counts import ErrorCounts
        from broker.server.metrics.broker_families import BrokerFamilies
        from broker.server.metrics.server import MetricsServer

        router.errors = errors = ErrorCounts()
        families = BrokerFamilies(resources, self.connections, errors)
        server = MetricsServer(endpoint, families.collect, self._loop)
        server.start()
        return server

    def _recover(self) -> Resources:
        config = self._config
        authorizer = self._authorizer()
        topics = LogTopics(self._log, config.broker_rack, authorizer)
        coordinator = Coordinator(config.group_settings(), _new_id, topics, self._configs_of_group, self._find_shares)
        self.groups = GroupRunner(
            coordinator,
            self._log,
            self._flusher,
            self.waiters,
            self._loop,
            wall_ms,
            config.offsets_retention_check_interval_ms,
        )
        self._resources = Resources(
            config,
            self._log,
            self.groups,
            self.waiters,
            self._throttle,
            self._find_transactions,
            self._find_shares,
            authorizer,
            self.connections,
        )
        self.groups.recover()
        if not (self._log.transactions.is_empty and self._log.pending_offsets.is_empty) or any(
            self._log.open_transactions()
        ):
            self._find_transactions()
            # No client may see a transaction half ended.
            self._flusher.flush()
        return self._resources

    def _configs_of_group(self, group_id: str) -> Mapping[str, str]:
        return self._resources.own_configs().of(GROUP, group_id)

    def _find_transactions(self) -> TransactionRunner:
        """The runner of transactions, which a broker that serves none does not load."""
        if self._transactions is None:
            from broker.server.transaction_runner import start

            self._transactions = start(
                self._config, self._log, self.groups, self._flusher, self.waiters, self._loop, wall_ms
            )
        return self._transactions

    @property
    def shares(self) -> ShareRunner:
        return self._find_shares()

    def _find_shares(self) -> ShareRunner:
        """The runner of share groups, which a broker without any does not load."""
        if self._shares is None:
            from broker.server.share_runner import ShareRunner

            self._shares = ShareRunner(
                self._config, self._log, self._flusher, self.waiters, self._loop, wall_ms, self._configs_of_group
            )
        return self._shares

    def _stop_cores(self) -> None:
        self.groups.stop()
        if self._transactions is not None:
            self._transactions.stop()
        if self._shares is not None:
            self._shares.stop()

    def _authorizer(self) -> StoredAcls | None:
        if not self._config.authorizer_class_name:
            return None
        from broker.server.stored_acls import StoredAcls

        return StoredAcls(self._config, self._log.security_records)

    def _make_gate(self, listener: Listener, resources: Resources) -> MakeGate | None:
        """What makes the gate of each connection to a SASL listener."""
        if not listener.address.uses_sasl:
            return None
        from broker.server.authentication.gate import SaslGate
        from broker.server.authentication.offered import Offered

        return partial(SaslGate, Offered(self._config, listener.name, resources.scram_users))

    @property
    def _backlog(self) -> int:
        given = "socket.listen.backlog.size" in self._config.given
        return self._config.socket_listen_backlog_size if given else BACKLOG

    def _close_listeners(self) -> None:
        for listener in self.listeners:
            listener.close()
        if self.metrics is not None:
            self.metrics.close()

    def _resume_accepting(self) -> None:
        for listener in self.listeners:
            listener.resume()

    def _wake(self) -> None:
        self.waiters.wake()

    def _after_flush(self) -> None:
        self._sweep_later(SWEEP_DELAY_S)

    def _fail(self, cause: BaseException) -> None:
        logger.critical("stopping: %s", cause)
        self._close_listeners()
        self._stop_cores()
        self.connections.abort_all()
        if not self.failed.done():
            self.failed.set_result(None)

    def _check_directory(self) -> None:
        try:
            self._log.check_directory()
        except StorageError as error:
            self._flusher.fail(error)
        else:
            self._loop.call_later(DIRECTORY_CHECK_S, self._check_directory)

    def _sweep_later(self, delay_s: float) -> None:
        if self._stopping:
            return
        at = self._loop.time() + delay_s
        if self._sweep_timer is not None:
            if self._sweep_timer.when() <= at:
                return
            self._sweep_timer.cancel()
        self._sweep_timer = self._loop.call_at(at, self._sweep)

    def _sweep(self) -> None:
        self._sweep_timer = None
        # The log cannot checkpoint its WAL while the transaction is in use, and under load every turn uses it.
        self._flusher.flush()
        if self.failure is not None:
            return
        try:
            again_ms = self._log.sweep(wall_ms())
        except StorageError as error:
            self._flusher.fail(error)
            return
        except Exception as error:
            self._flusher.fail(error)
            raise
        self._flusher.schedule()
        if again_ms is None:
            again_ms = self._log.next_sweep_ms(wall_ms())
        self._sweep_later(again_ms / 1000)


def _new_id() -> str:
    text = os.urandom(16).hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def _log_loop_error(loop: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
    """Log an error that happened outside any request."""
    error = context.get("exception")
    logger.error("%s", context["message"], exc_info=error if isinstance(error, BaseException) else None)
