"""The shell around the coordinator core: requests in, effects out in order, one timer.

Records of a step are appended before anything else happens; the commit round that follows makes them durable and
then releases the replies, and every later reply too.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count
from typing import TYPE_CHECKING

from broker.coordinator.records import GenerationFloor, from_row, to_row
from broker.coordinator.step import Effects, RequestContext
from broker.log import OffsetsRow, StorageError

if TYPE_CHECKING:
    import asyncio

    from broker.api.groups import GroupApi
    from broker.coordinator.coordinator import Coordinator
    from broker.coordinator.records import HardRecord
    from broker.log import Log
    from broker.protocol.wire_types import Message
    from broker.server.commit_rounds import CommitRounds
    from broker.server.exchange import Exchange
    from broker.server.fetch_waiters import FetchWaiters

OFFSETS_TOPIC = "__consumer_offsets"
# Nobody is authenticated.
ANONYMOUS = "User:ANONYMOUS"
# A timer that fires this late met a stopped process; what clients sent meanwhile is read before anyone is expired.
LATE_S = 1.0


class CoordinatorRunner:
    """Owns the tickets: each stands for an exchange whose answer the core has not given yet."""

    def __init__(
        self,
        api: GroupApi,
        coordinator: Coordinator,
        log: Log,
        rounds: CommitRounds,
        waiters: FetchWaiters,
        loop: asyncio.AbstractEventLoop,
        wall_ms: Callable[[], int],
    ) -> None:
        self._api = api
        self._coordinator = coordinator
        self._log = log
        self._rounds = rounds
        self._waiters = waiters
        self._loop = loop
        self._wall_ms = wall_ms
        self._tickets: dict[int, Exchange] = {}
        self._next_ticket = count(1)
        self._timer: asyncio.TimerHandle | None = None
