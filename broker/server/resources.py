"""What the handlers of requests work on."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from broker.api.groups import Node
    from broker.config.config import BrokerConfig
    from broker.server.coordinator_runner import CoordinatorRunner
    from broker.server.fetch_waiters import FetchWaiters
    from broker.storage import Log, Topic

LEADER_EPOCH = 0


@dataclass(slots=True)
class Resources:
    """The parts of one broker that handlers use; `node` is how clients reach it."""

    config: BrokerConfig
    log: Log
    node: Node
    runner: CoordinatorRunner
    waiters: FetchWaiters

    def topic(self, name: str, topic_id: bytes, by_id: bool) -> Topic | None:
        """The topic of a request that names topics by id from some version on."""
        return self.log.topic_by_id(topic_id) if by_id else self.log.topics.get(name)


def wall_ms() -> int:
    """Milliseconds since 1970, for timestamps; deadlines have the loop's own clock."""
    return time.time_ns() // 1_000_000
