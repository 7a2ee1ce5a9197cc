"""Resources: the parts of the broker that request handlers use."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol
from weakref import WeakValueDictionary

from broker.light_dataclasses import dataclass, field
from broker.server.access import UNRESTRICTED, Access
from broker.server.own_config_kinds import CLIENT_METRICS, KINDS

if TYPE_CHECKING:
    from broker.config.config import BrokerConfig
    from broker.cores.fetch_sessions.cache import FetchSessions
    from broker.security.credentials.scram_users import ScramUsers
    from broker.server.exchange import Origin
    from broker.server.fetch_waiters import FetchWaiters
    from broker.server.group_runner import GroupRunner
    from broker.server.own_configs import OwnConfigs
    from broker.server.request_times import RequestTimes
    from broker.server.session import Session
    from broker.server.share_runner import ShareRunner
    from broker.server.stored_acls import StoredAcls
    from broker.server.telemetry import SubscribedTelemetry
    from broker.server.throttle import Throttle
    from broker.server.transaction_runner import TransactionRunner
    from broker.storage import Log, Topic


class OpenConnection(Protocol):
    """A connection, as others see it. `active_at` is on the event loop's clock."""

    session: Session
    active_at: float


class Figures(Protocol):
    """What the broker counts about itself."""

    times: RequestTimes

    @property
    def most(self) -> int:
        """How many connections there may be."""
        ...

    def per_listener(self) -> Mapping[str, int]:
        """How many connections are open."""
        ...

    def page(self, after: int, most: int) -> tuple[Sequence[OpenConnection], bool]:
        """The first connections with higher numbers than `after`, and whether there are no others."""
        ...


@dataclass(slots=True)
class Resources:
    """The parts of one broker that handlers use. Without an authorizer, everything is allowed.

    `find_transactions` starts the coordinator of transactions at its first call, and `find_shares` what share groups need.
    """

    config: BrokerConfig
    log: Log
    groups: GroupRunner
    waiters: FetchWaiters
    throttle: Throttle
    find_transactions: Callable[[], TransactionRunner]
    find_shares: Callable[[], ShareRunner]
    authorizer: StoredAcls | None = None
    figures: Figures | None = None
    started_ms: int = field(default_factory=lambda: wall_ms(), init=False)
    _own_configs: OwnConfigs | None = field(default=None, init=False)
    _had_client_metrics: bool | None = field(default=None, init=False)
    _scram_users: ScramUsers | None = field(default=None, init=False)
    _telemetry: SubscribedTelemetry | None = field(default=None, init=False)
    _fetch_sessions: FetchSessions | None = field(default=None, init=False)
    _accesses: WeakValueDictionary[tuple[str, str], Access] = field(default_factory=WeakValueDictionary, init=False)

    @property
    def node_id(self) -> int:
        return self.config.node_id

    @property
    def transactions(self) -> TransactionRunner:
        return self.find_transactions()

    @property
    def shares(self) -> ShareRunner:
        """The share coordinator and the share partitions."""
        return self.find_shares()

    def scram_users(self) -> ScramUsers:
        """The users in the store, which are read when they are first needed."""
        if self._scram_users is None:
            from broker.security.credentials.scram_users import ScramUsers

            self._scram_users = ScramUsers(self.log.security_records)
        return self._scram_users

    def fetch_sessions(self) -> FetchSessions:
        """The sessions of consumers (KIP-227)."""
        if self._fetch_sessions is None:
            from broker.cores.fetch_sessions.cache import FetchSessions

            self._fetch_sessions = FetchSessions(self.config.max_incremental_fetch_session_cache_slots, _random_id)
        return self._fetch_sessions

    def telemetry(self) -> SubscribedTelemetry:
        """What clients say about themselves (KIP-714)."""
        if self._telemetry is None:
            from broker.server.telemetry import SubscribedTelemetry

            self._telemetry = SubscribedTelemetry(self.config.telemetry_max_bytes, self.own_configs())
        return self._telemetry

    def own_configs(self) -> OwnConfigs:
        """The configs of groups and client metrics, which are read when they are first needed."""
        if self._own_configs is None:
            from broker.server.own_configs import OwnConfigs

            self._own_configs = OwnConfigs(self.log.security_records)
        return self._own_configs

    def has_client_metrics(self) -> bool:
        """Whether a config subscribes to metrics of clients. Every connection asks: nothing is loaded for the answer."""
        if self._own_configs is not None:
            return bool(self._own_configs.names(CLIENT_METRICS))
        if self._had_client_metrics is None:
            self._had_client_metrics = bool(self.log.security_records.all(KINDS[CLIENT_METRICS]))
        return self._had_client_metrics

    def topic(self, name: str, topic_id: bytes, by_id: bool) -> Topic | None:
        """The topic that a request names; requests that name topics by name or id do so by version."""
        return self.log.topic_by_id(topic_id) if by_id else self.log.topics.get(name)

    def access(self, connection: Origin) -> Access:
        """What the sender of a connection's requests may do."""
        if self.authorizer is None:
            return UNRESTRICTED
        session = connection.session
        access = session.access
        if access is None or access.principal != session.principal:
            from broker.security.acls.hosts import host_name

            key = session.principal, host_name(session.host)
            access = self._accesses.get(key)
            if access is None:
                access = self._accesses[key] = Access(self.authorizer, *key)
            session.access = access
        return access


def _random_id() -> int:
    return int.from_bytes(os.urandom(4), "big") >> 1


def wall_ms() -> int:
    """Milliseconds since 1970, for timestamps. Deadlines use the event loop's clock."""
    return time.time_ns() // 1_000_000
