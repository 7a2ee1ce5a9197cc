"""One client: frames in, answers out in order, bounded memory, and no harm to other clients."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, cast

from broker.protocol.codec import DecodeError
from broker.server.outbox import Outbox
from broker.server.router import RequestRefused
from broker.storage import StorageError

if TYPE_CHECKING:
    from broker.protocol.wire_types import Message
    from broker.server.connections import Connections
    from broker.server.exchange import Exchange

# asyncio's own 256 KiB per read costs an mmap and a munmap each time.
READ_BYTES = 64 * 1024
# Bytes of requests that may wait behind one that is not answered yet; beyond it nothing is read.
QUEUE_BYTES = 64 * 1024
# An unfinished request up to this size is not worth counting.
SMALL_BYTES = 4096
# How long one client's pipelined requests may hold up the others.
TURN_S = 0.005


class Connection(asyncio.Protocol):
    """Executes requests as they arrive, until one of them waits (a join, a long poll): then later ones wait behind it."""

    __slots__ = (
        "_behind",
        "_buffer",
        "_chunk_bytes",
        "_chunks",
        "_counted",
        "_exchanges",
        "_frames",
        "_outbox",
        "_parked",
        "_pumping",
        "_reading",
        "_refused",
        "_router",
        "_shared",
        "_transport",
        "active_at",
        "client_host",
        "lost",
    )

    def __init__(self, shared: Connections) -> None:
        self._shared = shared
        self._router = shared.router
        self._buffer = shared.new_frame_buffer()
        self._frames: Iterator[bytes] = iter(())
        # Received while a request waits; cut into frames when their turn comes.
        self._chunks: deque[bytes] = deque()
        self._chunk_bytes = 0
        self._exchanges: deque[Exchange] = deque()
        self._parked: Exchange | None = None
        self._pumping = False
        self._reading = True
        self._behind = False
        self._counted = False
        self._refused = False
        self.lost = False
        self.active_at = 0.0
        self.client_host = ""
        self._transport: asyncio.Transport
        self._outbox: Outbox

    # What the event loop calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        # An attribute of the selector transport that other transports ignore.
        self._transport.max_size = READ_BYTES  # type: ignore[attr-defined]
        self._outbox = Outbox(self._transport, self._shared.loop)
        peer = transport.get_extra_info("peername")
        self.client_host = f"/{peer[0]}" if peer else "/"
        self.active_at = self._shared.loop.time()
        if not self._shared.admit(self):
            self.lost = True
            self._transport.abort()

    def data_received(self, data: bytes) -> None:
        self.active_at = self._shared.loop.time()
        self._chunks.append(data)
        self._chunk_bytes += len(data)
        self._pump()
        unfinished = self._buffer.pending_bytes
        if unfinished > SMALL_BYTES or self._counted:
            self._counted = unfinished > SMALL_BYTES
            self._shared.count_unfinished(self, unfinished if self._counted else 0)

    def eof_received(self) -> bool:
        return False

    def pause_writing(self) -> None:
        self._outbox.pause()

    def resume_writing(self) -> None:
        self.active_at = self._shared.loop.time()
        self._outbox.resume()
        if not self._outbox.blocked:
            self._pump()

    def connection_lost(self, error: Exception | None) -> None:
        self.lost = True
        self._counted = False
        self._shared.forget(self)
        if self._parked is not None and self._parked.abandon is not None:
            self._parked.abandon()
        self._parked = None
        self._exchanges.clear()

    # What the other parts of the server call.

    def answered(self, exchange: Exchange, response: Message) -> None:
        """Called by an exchange of this connection that has its answer."""
        if self.lost:
            return
        try:
            exchange.parts = self._router.encode(exchange, response)
        except Exception:
            # One client's unsendable answer must not stop the round that serves the others.
            self._shared.log.exception("cannot encode %s for %s", type(response).__name__, self.client_host)
            self.abort()
            return
        self._shared.rounds.settle(exchange)
        if self._parked is exchange and not self._pumping:
            self._parked = None
            self._shared.loop.call_soon(self._pump)

    def released(self) -> None:
        """Write the answers whose turn has come."""
        if self._pumping or self.lost:
            return
        exchanges, outbox = self._exchanges, self._outbox
        while exchanges and exchanges[0].released:
            outbox.put(exchanges.popleft().parts)
        outbox.flush()
        self.active_at = self._shared.loop.time()
        if self._refused and not exchanges:
            outbox.close()

    def finish(self) -> None:
        """Take no more requests; close once those that were taken and do not wait are answered."""
        if self._parked is not None and self._parked.abandon is not None:
            self._parked.abandon()
        self._refuse("")
        self.released()

    @property
    def now_s(self) -> float:
        return self._shared.loop.time()

    def soon(self, go_on: Callable[[], None]) -> None:
        """Let the request that waits go on in another turn of the loop."""
        self._shared.loop.call_soon(self._guarded, go_on)

    def abort(self) -> None:
        """Close now."""
        self._transport.abort()

    @property
    def parked(self) -> bool:
        """Whether a request waits for something that is not the client's to do."""
        return self._parked is not None

    def _pump(self) -> None:
        if self._pumping or self.lost or self._refused:
            return
        if not self._stalled():
            self._pumping = True
            self._behind = False
            self._guarded(self._execute)
            self._pumping = False
            if self._behind:
                self._shared.loop.call_soon(self._pump)
            if self._shared.uncommitted():
                self._shared.rounds.schedule()
            self.released()
        self._regulate_reading()

    def _guarded(self, act: Callable[[], None]) -> None:
        """One client's request that fails ends its connection; a store that fails ends the broker."""
        try:
            act()
        except (RequestRefused, DecodeError) as error:
            self._refuse(str(error))
        except StorageError as error:
            self._shared.rounds.stop(error)
        except Exception:
            self._shared.log.exception("a request of %s failed", self.client_host)
            self._refuse("")
        if not self._pumping and self._refused:
            self.released()

    def _stalled(self) -> bool:
        return self._parked is not None or self._outbox.blocked

    def _execute(self) -> None:
        """Run the requests that are there; `_behind` says whether some were left for the next turn."""
        router, time = self._router, self._shared.loop.time
        give_way_at = time() + TURN_S
        while (frame := self._next_frame()) is not None:
            exchange, request = router.open(frame, self)
            self._exchanges.append(exchange)
            self._parked = exchange
            router.dispatch(exchange, request)
            if not exchange.answered:
                return
            self._parked = None
            if time() > give_way_at:
                self._behind = True
                return

    def _next_frame(self) -> bytes | None:
        while (frame := next(self._frames, None)) is None and self._chunks:
            chunk = self._chunks.popleft()
            self._chunk_bytes -= len(chunk)
            self._frames = self._buffer.feed(chunk)
        return frame

    def _refuse(self, reason: str) -> None:
        """Take no more requests, and close as soon as the earlier ones are answered."""
        if reason:
            self._shared.log.warning("closing the connection of %s: %s", self.client_host, reason)
        self._refused = True
        if self._parked is not None:
            # The request that failed has no answer; those before it get theirs.
            self._exchanges.remove(self._parked)
            self._parked = None

    def _regulate_reading(self) -> None:
        if self.lost or self._transport.is_closing():
            return
        waits = self._stalled() or self._behind
        full = self._refused or (waits and self._chunk_bytes > QUEUE_BYTES)
        if full and self._reading:
            self._reading = False
            self._transport.pause_reading()
        elif not full and not self._reading:
            self._reading = True
            self._transport.resume_reading()
