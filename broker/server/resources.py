"""Resources: the parts of the broker that request handlers use."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Protocol
from weakref import WeakValueDictionary

from broker.light_dataclasses import dataclass, field
from broker.server.access import UNRESTRICTED, Access

if TYPE_CHECKING:
    from broker.config.config import BrokerConfig
    from broker.security.credentials.scram_users import ScramUsers
    from broker.server.exchange import Origin
    from broker.server.fetch_waiters import FetchWaiters
    from broker.server.group_runner import GroupRunner
    from broker.server.own_configs import OwnConfigs
    from broker.server.request_times import RequestTimes
    from broker.server.stored_acls import StoredAcls
    from broker.server.throttle import Throttle
    from broker.server.transaction_runner import TransactionRunner
    from broker.storage import Log, Topic


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


@dataclass(slots=True)
class Resources:
    """The parts of one broker that handlers use. Without an authorizer, everything is allowed.

    `find_transactions` starts the coordinator of transactions at its first call.
    """

    config: BrokerConfig
    log: Log
    groups: GroupRunner
    waiters: FetchWaiters
    throttle: Throttle
    find_transactions: Callable[[], TransactionRunner]
    authorizer: StoredAcls | None = None
    figures: Figures | None = None
    started_ms: int = field(default_factory=lambda: wall_ms(), init=False)
    _own_configs: OwnConfigs | None = field(default=None, init=False)
    _scram_users: ScramUsers | None = field(default=None, init=False)
    _accesses: WeakValueDictionary[tuple[str, str], Access] = field(default_factory=WeakValueDictionary, init=False)

    @property
    def node_id(self) -> int:
        return self.config.node_id

    @property
    def transactions(self) -> TransactionRunner:
        return self.find_transactions()

    def scram_users(self) -> ScramUsers:
        """The users in the store, which are read when they are first needed."""
        if self._scram_users is None:
            from broker.security.credentials.scram_users import ScramUsers

            self._scram_users = ScramUsers(self.log.security_records)
        return self._scram_users

    def own_configs(self) -> OwnConfigs:
        """The configs of groups and client metrics, which are read when they are first needed."""
        if self._own_configs is None:
            from broker.server.own_configs import OwnConfigs

            self._own_configs = OwnConfigs(self.log.security_records)
        return self._own_configs

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


def wall_ms() -> int:
    """Milliseconds since 1970, for timestamps. Deadlines use the event loop's clock."""
    return time.time_ns() // 1_000_000
