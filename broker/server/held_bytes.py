"""HeldBytes: the memory that received requests take before they run, over all connections."""

from __future__ import annotations

import logging
from heapq import nlargest
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import asyncio

# The most memory of all incomplete and queued requests together; two requests of the largest size may exceed it.
HELD_BYTES = 256 * 1024 * 1024
# The same of clients that have not authenticated, which must not take the memory of those that have.
STRANGERS_BYTES = 32 * 1024 * 1024
# What one connection may queue behind a parked request while memory is plentiful. The end of a connection arrives after its
# data, and this is more than a client's system sends after the client has died.
QUEUE_BYTES = 8 * 1024 * 1024
# Above this part of the limit, memory is scarce: connections with parked requests take turns in reading on.
SCARCE = 0.25
# Above the limit, closing connections that queue requests leaves this part of it, so that others get turns.
FREED = 0.75
# How often turns are checked, how many connections have one at a time, and up to which size their queues grow.
TURN_S = 0.02
TURNS_AT_ONCE = 8
TURN_BYTES = QUEUE_BYTES // 2
# How many connections are closed at once: finding the largest takes long if there are thousands.
CLOSED_AT_ONCE = 100
# After queues have shrunk by this much, the allocator returns free memory to the system, which takes some milliseconds.
RETURNED_BYTES = 16 * 1024 * 1024
RETURN_DELAY_S = 0.5

logger = logging.getLogger("broker.server")


class Client(Protocol):
    authenticated: bool


class Holder(Protocol):
    """A connection, as far as its memory is concerned."""

    client_host: str

    @property
    def session(self) -> Client: ...
    def regulate_reading(self) -> None: ...
    def abort(self) -> None: ...


class HeldBytes:
    """Counts the bytes that connections hold, slows down those that queue requests, and closes the largest above the limit."""

    def __init__(self, loop: asyncio.AbstractEventLoop, frame_bytes: int) -> None:
        self._loop = loop
        self._limit = max(HELD_BYTES, 2 * frame_bytes)
        self._unfinished = _Account()
        self._queued = _Account()
        # Of clients that have not authenticated; the other accounts do not contain them.
        self._strangers = _Account()
        # A dictionary serves as an ordered set: the longest wait ends first.
        self._waiting: dict[Holder, None] = {}
        # Connections that have a turn, and the size of their queue when it was checked.
        self._reading: dict[Holder, int] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._most_queued = 0
        self._return_timer: asyncio.TimerHandle | None = None

    @property
    def total(self) -> int:
        return self._unfinished.total + self._queued.total

    def may_queue(self, holder: Holder, size: int) -> bool:
        """Whether a connection that has queued `size` bytes behind a parked request may read more.

        If only memory is scarce, `regulate_reading` is called later, to try again.
        """
        if size >= QUEUE_BYTES:
            return False
        if self.total <= self._limit * SCARCE or (holder in self._reading and size < TURN_BYTES):
            return True
        self._waiting[holder] = None
        if self._timer is None:
            self._timer = self._loop.call_later(TURN_S, self._end_turns)
        return False

    def count(self, holder: Holder, unfinished: int, queued: int) -> None:
        """Note the bytes of an incomplete request and of queued requests. Above the limit, close connections."""
        if not holder.session.authenticated:
            self._strangers.set(holder, unfinished + queued)
            if self._strangers.total > STRANGERS_BYTES:
                self._close_largest("unauthenticated", self._strangers, self._strangers.total - STRANGERS_BYTES)
            return
        self._strangers.set(holder, 0)
        self._unfinished.set(holder, unfinished)
        self._set_queued(holder, queued)
        if self.total > self._limit:
            # Those that send large requests must not make room for those that queue requests, and vice versa.
            if self._queued.total >= self._unfinished.total:
                self._close_largest("queued", self._queued, self.total - self._limit * FREED)
            else:
                self._close_largest("unfinished", self._unfinished, self.total - self._limit)

    def forget(self, holder: Holder) -> None:
        self._strangers.set(holder, 0)
        self._unfinished.set(holder, 0)
        self._set_queued(holder, 0)
        self._waiting.pop(holder, None)
        if holder in self._reading:
            del self._reading[holder]
            self._loop.call_soon(self._begin_turns)

    def close(self) -> None:
        self._waiting.clear()
        for timer in (self._timer, self._return_timer):
            if timer is not None:
                timer.cancel()

    def _set_queued(self, holder: Holder, size: int) -> None:
        self._queued.set(holder, size)
        total = self._queued.total
        if total > self._most_queued:
            self._most_queued = total
        elif self._return_timer is None and self._most_queued - total > RETURNED_BYTES:
            self._return_timer = self._loop.call_later(RETURN_DELAY_S, self._return_memory)

    def _return_memory(self) -> None:
        self._return_timer = None
        self._most_queued = self._queued.total
        _return_free_memory()

    def _close_largest(self, kind: str, account: _Account, excess: float) -> None:
        closing = account.largest(excess)
        logger.warning(
            "%s requests fill the memory: closing %s, the largest from %s",
            kind,
            "a connection" if len(closing) == 1 else f"{len(closing)} connections",
            closing[0].client_host,
        )
        for holder in closing:
            self.forget(holder)
            holder.abort()

    def _end_turns(self) -> None:
        """End the turns of connections that have nothing more to read, and begin those of connections that wait longest."""
        self._timer = None
        for holder, before in list(self._reading.items()):
            now = self._queued.size(holder)
            if now > before and now < TURN_BYTES:
                self._reading[holder] = now
            else:
                del self._reading[holder]
                holder.regulate_reading()
        self._begin_turns()
        if self._timer is None and (self._waiting or self._reading):
            self._timer = self._loop.call_later(TURN_S, self._end_turns)

    def _begin_turns(self) -> None:
        for holder in list(self._waiting):
            if len(self._reading) >= TURNS_AT_ONCE or self.total >= self._limit:
                return
            del self._waiting[holder]
            self._reading[holder] = -1
            holder.regulate_reading()
            if holder in self._waiting:
                # Its queue is too long for a turn: it waits until memory is plentiful.
                del self._reading[holder]


class _Account:
    """Bytes by connection, and their total."""

    def __init__(self) -> None:
        self.total = 0
        self._sizes: dict[Holder, int] = {}

    def set(self, holder: Holder, size: int) -> None:
        self.total += size - self._sizes.pop(holder, 0)
        if size:
            self._sizes[holder] = size

    def size(self, holder: Holder) -> int:
        return self._sizes.get(holder, 0)

    def largest(self, size: float) -> list[Holder]:
        """The largest connections, which hold at least `size` bytes together."""
        found: list[Holder] = []
        for holder in nlargest(CLOSED_AT_ONCE, self._sizes, key=self._sizes.__getitem__):
            if size <= 0:
                break
            found.append(holder)
            size -= self._sizes[holder]
        return found


def _return_free_memory() -> None:
    """Return the allocator's free memory to the system. Only glibc retains much of it: chunks of this size fragment its heap."""
    try:
        import ctypes
    except ImportError:
        return
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
