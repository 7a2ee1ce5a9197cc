"""The cache of fetch sessions: a bounded number of them, and the rules by which a new one takes the place of another."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heapify, heappop, heappush

from broker.cores.fetch_sessions.session import NO_SESSION, FetchSession

# A session that was not used for longer is stale; one that exists for longer may make room for a larger one.
EVICTION_MS = 120_000
# Of all sessions together, so that their memory is bounded; a partition takes about 300 bytes.
MOST_PARTITIONS = 200_000
# Of one session: a request of a few bytes reads them all.
MOST_IN_SESSION = 10_000


class FetchSessions:
    """Kafka's FetchSessionCache, as one shard. No session is privileged: a single broker has no followers.

    A new session takes a free slot, or that of a stale session, or that of a smaller session that is not new.
    """

    def __init__(self, slots: int, draw: Callable[[], int], most_partitions: int = MOST_PARTITIONS) -> None:
        """`draw` returns a random number from 0 to 2**31 - 1."""
        self._slots = slots
        self._draw = draw
        self._most_partitions = most_partitions
        # The session that was not used for longest comes first.
        self._sessions: dict[int, FetchSession] = {}
        self._evictable: list[tuple[tuple[int, int], FetchSession]] = []
        self.partitions = 0
        self.evictions = 0

    def __len__(self) -> int:
        return len(self._sessions)

    def get(self, session_id: int, owner: str) -> FetchSession | None:
        """The session with this id, if it belongs to `owner`."""
        found = self._sessions.get(session_id)
        return found if found is not None and found.owner == owner else None

    def offer(self, size: int, now_ms: int) -> int:
        """An id for a session of `size` partitions, or NO_SESSION if there is no room. `add` takes it in the same turn."""
        if size > MOST_IN_SESSION:
            return NO_SESSION
        while self.partitions + size > self._most_partitions:
            stale = self._stale(now_ms)
            if stale is None:
                return NO_SESSION
            self._evict(stale)
        if len(self._sessions) >= self._slots and self._weaker(size, now_ms) is None:
            return NO_SESSION
        while True:
            drawn = self._draw()
            if drawn != NO_SESSION and drawn not in self._sessions:
                return drawn

    def add(self, session: FetchSession, now_ms: int) -> None:
        """Keep a session that was offered its id. It may take the slot of another."""
        if len(self._sessions) >= self._slots:
            weaker = self._weaker(len(session.partitions), now_ms)
            if weaker is None:
                return
            self._evict(weaker)
        self._sessions[session.id] = session
        self.touch(session, now_ms)

    def has_room(self, session: FetchSession, growth: int) -> bool:
        """Whether a session may grow by this number of partitions."""
        is_small = len(session.partitions) + growth <= MOST_IN_SESSION
        return is_small and self.partitions + growth <= self._most_partitions

    def touch(self, session: FetchSession, now_ms: int) -> None:
        """A request used the session, and may have changed its size."""
        if self._sessions.pop(session.id, None) is None:
            return
        self._sessions[session.id] = session
        session.used_ms = now_ms
        self.partitions += len(session.partitions) - session.size
        session.size = len(session.partitions)
        rank = session.size, session.id
        if now_ms - session.created_ms > EVICTION_MS and session.evictable_as != rank:
            session.evictable_as = rank
            heappush(self._evictable, (rank, session))
            if len(self._evictable) > 2 * len(self._sessions) + 64:
                self._evictable = [entry for entry in self._evictable if self._is_valid(entry)]
                heapify(self._evictable)

    def remove(self, session: FetchSession) -> None:
        if self._sessions.pop(session.id, None) is not None:
            self.partitions -= session.size
            session.size = 0

    def _stale(self, now_ms: int) -> FetchSession | None:
        """The session that was not used for longest, if it is stale."""
        oldest = next(iter(self._sessions.values()), None)
        return oldest if oldest is not None and now_ms - oldest.used_ms > EVICTION_MS else None

    def _weaker(self, size: int, now_ms: int) -> FetchSession | None:
        """The session whose slot a new one of this size may take."""
        stale = self._stale(now_ms)
        if stale is not None:
            return stale
        while self._evictable and not self._is_valid(self._evictable[0]):
            heappop(self._evictable)
        if not self._evictable:
            return None
        (smallest, _), session = self._evictable[0]
        return session if size > smallest else None

    def _is_valid(self, entry: tuple[tuple[int, int], FetchSession]) -> bool:
        rank, session = entry
        return session.evictable_as == rank and self._sessions.get(session.id) is session

    def _evict(self, session: FetchSession) -> None:
        self.remove(session)
        self.evictions += 1
