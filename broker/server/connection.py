"""Connection: frames in, answers out in order, bounded memory, and no effect on other clients."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from broker.protocol.codec import DecodeError
from broker.server.exchange import Exchange, RequestRefused
from broker.server.inbox import Inbox
from broker.server.outbox import Outbox
from broker.server.session import Session
from broker.storage import StorageError

if TYPE_CHECKING:
    from broker.protocol.wire_types import Message
    from broker.server.connections import Connections
    from broker.server.flush import Flusher
    from broker.server.listener import Listener
    from broker.server.router import Router
    from broker.server.session import Gate

    MakeGate = Callable[[Session, Callable[[], float], Callable[[], None]], Gate]

# asyncio's own 256 KiB per read cost an mmap and a munmap each time.
READ_BYTES = 64 * 1024
# Bytes of requests that may wait for the client's turn, or until it reads its answers; above it the connection stops reading.
QUEUE_BYTES = 128 * 1024
# Incomplete and queued requests up to this size are not counted.
SMALL_BYTES = 4096
# How long one client's pipelined requests may run before other clients get their turn.
TURN_S = 0.005

logger = logging.getLogger("broker.server")


class Connection(asyncio.Protocol):
    """Executes requests as they arrive. While one is parked (a join, a long poll), later ones of the same client wait."""

    __slots__ = (
        "_behind",
        "_connections",
        "_counted",
        "_deadline",
        "_ended",
        "_exchanges",
        "_flusher",
        "_inbox",
        "_leaving",
        "_loop",
        "_mute_end",
        "_outbox",
        "_parked",
        "_pumping",
        "_reading",
        "_refused",
        "_router",
        "_throttle",
        "_transport",
        "_watched",
        "active_at",
        "client_host",
        "lost",
        "session",
    )

    def __init__(
        self,
        router: Router,
        flusher: Flusher,
        connections: Connections,
        loop: asyncio.AbstractEventLoop,
        listener: Listener,
        make_gate: MakeGate | None = None,
    ) -> None:
        """A connection to a SASL listener has a gate."""
        self._router = router
        self._flusher = flusher
        self._connections = connections
        self._throttle = connections.throttle
        self._loop = loop
        self.session = session = Session(listener, authenticated=listener.security_protocol == "PLAINTEXT")
        if make_gate is not None:
            session.gate = make_gate(session, loop.time, self._opened)
        self._inbox = Inbox(connections.frame_bytes if session.gate is None else session.gate.frame_bytes)
        # Runs until the client has authenticated.
        self._deadline: asyncio.TimerHandle | None = None
        self._exchanges: deque[Exchange] = deque()
        self._parked: Exchange | None = None
        self._pumping = False
        self._reading = True
        self._behind = False
        self._counted = False
        self._watched: int | None = None
        # Set while the client is muted because it exceeded a quota.
        self._mute_end: asyncio.TimerHandle | None = None
        # The client has closed its side, which is known before all that it sent is read.
        self._leaving = False
        self._ended = False
        self._refused = False
        self.lost = False
        self.active_at = 0.0
        self.client_host = ""
        self._transport: asyncio.Transport
        self._outbox: Outbox

    # Called by the event loop.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        # An attribute of the selector transport that other transports ignore.
        self._transport.max_size = READ_BYTES  # type: ignore[attr-defined]
        self._outbox = Outbox(self._transport, self._loop)
        self.session.arrived(transport.get_extra_info("peername"))
        self.client_host = f"/{self.session.host}"
        self.active_at = self._loop.time()
        if not self._connections.admit(self):
            self.lost = True
            self._transport.abort()
        elif not self.session.authenticated:
            self._deadline = self._loop.call_later(self._connections.authenticate_within_s, self._expire)

    def secured(self, certificate: bytes | None) -> None:
        """The TLS handshake is complete."""
        self.active_at = self._loop.time()
        self.session.secured(certificate)
        if self.session.authenticated:
            self._end_deadline()

    def data_received(self, data: bytes) -> None:
        self.active_at = self._loop.time()
        self._inbox.put(data)
        self._pump()

    def eof_received(self) -> bool:
        """Execute what the client has sent, except behind a parked request; then close. True: the connection closes itself."""
        self._ended = self._leaving = True
        self._end_mute()
        self._pump()
        return True

    def pause_writing(self) -> None:
        self._outbox.pause()

    def resume_writing(self) -> None:
        self.active_at = self._loop.time()
        self._outbox.resume()
        if not self._outbox.blocked:
            self._pump()

    def connection_lost(self, error: Exception | None) -> None:
        self.lost = True
        self._end_deadline()
        self._unwatch()
        self._end_mute()
        self._connections.forget(self)
        self._inbox.drop()
        if self._parked is not None and self._parked.abandon is not None:
            self._parked.abandon()
        self._parked = None
        self._exchanges.clear()
        self.session.at_end()

    # Called by other parts of the server.

    def answered(self, exchange: Exchange, response: Message) -> None:
        """Encode the answer of an exchange and send it once it is durable and next in order."""
        if self.lost:
            return
        try:
            if exchange.work is None:
                exchange.parts = self._router.encode(exchange, response)
            else:
                exchange.parts, throttle_ms = self._throttle.charge(
                    exchange, exchange.work, response, self._router.encode
                )
                self._mute(throttle_ms)
        except Exception:
            # An answer that cannot be encoded must not stop the flush that serves other clients.
            logger.exception("cannot encode %s for %s", type(response).__name__, self.client_host)
            self.abort()
            return
        self._flusher.release(exchange)
        if self._parked is exchange and not self._pumping:
            self._parked = None
            self.active_at = self._loop.time()
            self._loop.call_soon(self._pump)

    def released(self) -> None:
        """Write the answers that are released and next in order."""
        if self._pumping or self.lost:
            return
        exchanges, outbox, client, now_s = self._exchanges, self._outbox, self.session.client, self._loop.time()
        while exchanges and exchanges[0].released:
            exchange = exchanges.popleft()
            self._connections.times.add(exchange.api_key, now_s - exchange.begun_s)
            client.bytes_out += sum(map(len, exchange.parts))
            outbox.put(exchange.parts)
        outbox.flush()
        self.active_at = now_s
        if self._refused and not exchanges:
            outbox.close()

    def finish(self) -> None:
        """Accept no more requests; close once those in progress, parked ones excepted, are answered."""
        if self._parked is not None and self._parked.abandon is not None:
            self._parked.abandon()
        self._end_mute()
        self._refuse("")
        self.released()

    @property
    def now_s(self) -> float:
        return self._loop.time()

    def soon(self, run: Callable[[], None]) -> None:
        """Continue the parked request in another turn of the event loop."""
        if self._parked is not None and self._parked.work is not None:
            run = self._parked.work.timed(run)
        self._loop.call_soon(self._guarded, run)

    def regulate_reading(self) -> None:
        """Pause or resume reading. While it is paused for a parked request or a quota, watch for the end of the connection."""
        if self.lost or self._ended or self._transport.is_closing():
            return
        full = self._refused or self._is_full()
        if full and self._reading:
            self._reading = False
            self._transport.pause_reading()
        elif not full and not self._reading:
            self._reading = True
            self._transport.resume_reading()
        if not full or (self._parked is None and self._mute_end is None):
            self._unwatch()
        elif self._watched is None:
            self._watched = self._transport.get_extra_info("socket").fileno()
            self._connections.hangups.watch(self._watched, self._hung_up)

    def abort(self) -> None:
        """Close now."""
        self._transport.abort()

    @property
    def parked(self) -> bool:
        """Whether the client waits for the broker: a request will be answered, or the client is muted."""
        return self._mute_end is not None or (self._parked is not None and self._parked.abandon is not None)

    def _pump(self) -> None:
        if self._pumping or self.lost or self._refused:
            return
        if not self._stalled():
            self._pumping = True
            self._behind = False
            self._guarded(self._execute)
            self._pumping = False
            if self._behind:
                self._loop.call_soon(self._pump)
            self._flusher.schedule_if_dirty()
            self.released()
        if self._ended and not self._behind and (self._parked is not None or not self._outbox.blocked):
            self.finish()
        self.regulate_reading()
        self._count_held()

    def _guarded(self, run: Callable[[], None]) -> None:
        """Run requests. A request that fails closes its connection; storage that fails stops the broker."""
        try:
            run()
        except RequestRefused as refusal:
            self._refuse(str(refusal), refusal.answer, refusal.delay_s)
        except DecodeError as error:
            self._refuse(str(error))
        except StorageError as error:
            self._flusher.fail(error)
        except Exception:
            logger.exception("a request from %s failed", self.client_host)
            self._refuse("")
        if not self._pumping and self._refused:
            self.released()

    def _stalled(self) -> bool:
        return self._parked is not None or self._mute_end is not None or self._outbox.blocked

    def _mute(self, throttle_ms: int) -> None:
        """Run no request of this client for a while. One that has closed its side has nothing left to slow down."""
        if throttle_ms and not self._leaving:
            self._end_mute()
            self._mute_end = self._loop.call_later(throttle_ms / 1000, self._unmute)

    def _unmute(self) -> None:
        self._end_mute()
        self.active_at = self._loop.time()
        self._pump()

    def _end_mute(self) -> None:
        if self._mute_end is not None:
            self._mute_end.cancel()
            self._mute_end = None

    def _execute(self) -> None:
        """Run the requests that have arrived; set `_behind` if some are left for the next turn."""
        inbox, router, throttle, gate = self._inbox, self._router, self._throttle, self.session.gate
        time = self._loop.time
        give_way_at = (now_s := time()) + TURN_S
        while (frame := inbox.next_frame()) is not None:
            if gate is not None and (token := gate.take(frame)) is not None:
                self._send_bare(token)
                continue
            exchange, request = router.open(frame, self)
            exchange.begun_s = now_s
            self._exchanges.append(exchange)
            self._parked = exchange
            if throttle.enforced:
                exchange.work = throttle.begin(exchange, len(frame))
            router.dispatch(exchange, request)
            if exchange.work is not None:
                self._mute(throttle.settle(exchange, exchange.work))
            if not exchange.answered:
                return
            self._parked = None
            if self._mute_end is not None:
                return
            if (now_s := time()) > give_way_at:
                self._behind = True
                return

    def _send_bare(self, token: bytes) -> None:
        """Send a SASL token as a frame without a header."""
        exchange = Exchange(self, -1, 0, 0, None)
        exchange.parts = [len(token).to_bytes(4, "big") + token]
        exchange.answered = exchange.released = True
        self._exchanges.append(exchange)

    def _refuse(self, reason: str, answer: Message | None = None, delay_s: float = 0.0) -> None:
        """Accept no more requests. Close as soon as the earlier ones are answered, but not before `delay_s`."""
        if reason:
            logger.warning("closing the connection from %s: %s", self.client_host, reason)
        self._refused = True
        self._inbox.drop()
        failed, self._parked = self._parked, None
        if answer is not None or delay_s > 0:
            if failed is None:
                failed = Exchange(self, -1, 0, 0, None)
                self._exchanges.append(failed)
            self._loop.call_later(delay_s, self._end, failed, answer)
        elif failed is not None:
            # The failed request gets no answer; earlier ones do.
            self._exchanges.remove(failed)

    def _end(self, failed: Exchange, answer: Message | None) -> None:
        if answer is not None:
            failed.answer(answer)
        else:
            failed.forgo()
            self.released()

    def _opened(self) -> None:
        """The client has authenticated."""
        self._inbox.limit(self._connections.frame_bytes)
        self._end_deadline()

    def _expire(self) -> None:
        self._deadline = None
        logger.warning("closing the connection from %s: the client has not authenticated in time", self.client_host)
        self.abort()

    def _end_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _count_held(self) -> None:
        unfinished, queued = self._inbox.unfinished_bytes, self._inbox.queued_bytes
        held = unfinished + queued > SMALL_BYTES
        if held or self._counted:
            self._counted = held
            self._connections.held.count(self, unfinished if held else 0, queued if held else 0)

    def _is_full(self) -> bool:
        """Whether enough requests wait."""
        if self._parked is None and self._mute_end is None:
            return self._inbox.queued_bytes > QUEUE_BYTES and (self._behind or self._outbox.blocked)
        return not self._connections.held.may_queue(self, self._inbox.queued_bytes)

    def _unwatch(self) -> None:
        if self._watched is not None:
            self._connections.hangups.forget(self._watched)
            self._watched = None

    def _hung_up(self) -> None:
        self._watched = None
        self._leaving = True
        if self._parked is not None:
            self.eof_received()
        else:
            # What the client sent before its end is read and executed next, unless its request has just been answered.
            self._unmute()
