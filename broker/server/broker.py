"""One broker: its parts wired together, start, stop, and what it does in the background."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import resource
import socket
import sys
from typing import TYPE_CHECKING

from broker.api.groups import GroupApi, Node
from broker.cores.groups.coordinator import Coordinator
from broker.server.acceptor import Acceptor
from broker.server.commit_rounds import CommitRounds
from broker.server.connections import Connections
from broker.server.coordinator_runner import CoordinatorRunner
from broker.server.fetch_waiters import FetchWaiters
from broker.server.handlers import HANDLERS
from broker.server.resources import Resources, wall_ms
from broker.server.router import Router

if TYPE_CHECKING:
    from broker.config.config import BrokerConfig
    from broker.storage import Log

# How long a stop waits for clients to take the answers that they are owed.
STOP_GRACE_S = 2.0
# How soon after a commit the log may tidy up.
TIDY_S = 1.0
# Kafka's 50 make clients that come by the hundred wait for seconds: their system drops what does not fit, and they try again.
BACKLOG = 1024
# Database, lock, logs, listening sockets, what imports open: with the log's quarter of all files, what clients may not take.
RESERVED_FILES = 64
WILDCARDS = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}

logger = logging.getLogger("broker.server")


class Broker:
    """Serves one log. `failed` is set to the cause when log or coordinator can no longer be trusted: nothing is answered then.

    The log stays its owner's: `stop` commits, but does not close it.
    """

    def __init__(self, config: BrokerConfig, log: Log) -> None:
        self._config = config
        self._log = log
        self._loop = asyncio.get_running_loop()
        self.failed: asyncio.Future[BaseException] = self._loop.create_future()
        self._rounds = CommitRounds(log, self._loop, committed=self._after_commit, wake=self._wake, fail=self._fail)
        self._waiters = FetchWaiters(self._loop, self._rounds.stop)
        self._runner: CoordinatorRunner | None = None
        self._connections: Connections | None = None
        self._acceptors: list[Acceptor] = []
        self._sweep_timer: asyncio.TimerHandle | None = None
        self._stopping = False

    async def start(self) -> tuple[str, int]:
        """Recover, then accept connections; the address that was bound. Raises OSError if it cannot be."""
        sockets = _bind(self._config.listen.host, self._config.listen.port)
        host, port = sockets[0].getsockname()[:2]
        try:
            self._wire(host, port)
            assert self._connections is not None
            for bound in sockets:
                acceptor = Acceptor(bound, self._connections.accept, self._connections.room, self._loop)
                acceptor.start(self._backlog)
                self._acceptors.append(acceptor)
            self._connections.when_room = self._go_on_accepting
        except BaseException:
            for bound in sockets:
                bound.close()
            raise
        self._sweep_later(self._config.log_retention_check_interval_ms / 1000)
        return host, port

    @property
    def _backlog(self) -> int:
        given = "socket.listen.backlog.size" in self._config.given
        return self._config.socket_listen_backlog_size if given else BACKLOG

    async def stop(self) -> None:
        """Accept nothing more, answer what can be answered, commit, and close the connections."""
        self._stopping = True
        for acceptor in self._acceptors:
            acceptor.close()
        if self._sweep_timer is not None:
            self._sweep_timer.cancel()
        if self._connections is None or self._runner is None:
            return
        self._runner.stop()
        self._waiters.end_all()
        self._rounds.run()
        await self._connections.close_all(STOP_GRACE_S)
        self._rounds.run()

    def _wire(self, host: str, port: int) -> None:
        config = self._config
        told = config.advertised
        node = Node(config.node_id, *((told.host, told.port) if told else (WILDCARDS.get(host, host), port)))
        if told is None and host in WILDCARDS:
            logger.warning("clients on other machines will need advertised.listeners: they are told %s", node.host)
        coordinator = Coordinator(config.group_settings(), _new_id, _Catalog(self._log))
        api = GroupApi(coordinator, node)
        self._runner = CoordinatorRunner(
            coordinator,
            api,
            self._log,
            self._rounds,
            self._waiters,
            self._loop,
            wall_ms,
            config.offsets_retention_check_interval_ms,
        )
        self._runner.recover()
        resources = Resources(config, self._log, node, self._runner, self._waiters)
        self._connections = Connections(
            Router(HANDLERS, resources),
            self._rounds,
            self._loop,
            uncommitted=lambda: self._log.dirty,
            frame_bytes=config.socket_request_max_bytes,
            idle_ms=config.connections_max_idle_ms,
            most=min(config.max_connections, _room_for_connections()),
            most_per_host=config.max_connections_per_ip,
        )
        self._loop.set_exception_handler(_log_loop_error)

    def _go_on_accepting(self) -> None:
        for acceptor in self._acceptors:
            acceptor.go_on()

    def _wake(self) -> None:
        self._waiters.wake()

    def _after_commit(self) -> None:
        self._sweep_later(TIDY_S)

    def _fail(self, cause: BaseException) -> None:
        logger.critical("stopping: %s", cause)
        for acceptor in self._acceptors:
            acceptor.close()
        if self._runner is not None:
            self._runner.stop()
        if self._connections is not None:
            self._connections.abort_all()
        if not self.failed.done():
            self.failed.set_result(cause)

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
        if self._rounds.failed:
            return
        try:
            again_ms = self._log.sweep(wall_ms())
        except Exception as error:
            self._rounds.stop(error)
            raise
        self._rounds.schedule()
        if again_ms is None:
            again_ms = self._config.log_retention_check_interval_ms
        self._sweep_later(again_ms / 1000)


class _Catalog:
    """What the group requests see of the topics."""

    def __init__(self, log: Log) -> None:
        self._topics = log.topics

    def partition_count(self, topic: str) -> int | None:
        found = self._topics.get(topic)
        return None if found is None else found.partition_count


def _new_id() -> str:
    text = os.urandom(16).hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def _bind(host: str, port: int) -> list[socket.socket]:
    """A socket for each address of `host` that this machine has, all with the same port."""
    bound: list[socket.socket] = []
    absent: OSError | None = None
    found = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    try:
        for family, kind, protocol, _, address in dict.fromkeys(found):
            try:
                made = socket.socket(family, kind, protocol)
                bound.append(made)
                made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                if family == socket.AF_INET6:
                    made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                made.setblocking(False)
                made.bind((address[0], port, *address[2:]))
                port = made.getsockname()[1]
            except OSError as error:
                # A name like localhost may stand for an IPv6 address that is switched off.
                if error.errno not in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT):
                    raise
                absent = error
                if error.errno == errno.EADDRNOTAVAIL:
                    bound.pop().close()
        if absent is not None and not bound:
            raise absent
    except OSError:
        for made in bound:
            made.close()
        raise
    return bound


def _room_for_connections() -> int:
    """How many files may be open, without those that the log needs: a write that finds no room would be its end."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return sys.maxsize if limit == resource.RLIM_INFINITY else max(limit - limit // 4 - RESERVED_FILES, limit // 4)


def _log_loop_error(loop: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
    """What happened outside of any request."""
    error = context.get("exception")
    logger.error("%s", context["message"], exc_info=error if isinstance(error, BaseException) else None)
