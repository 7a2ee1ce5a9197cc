"""TlsTransport: the broker's end of a TLS connection, for a Protocol as asyncio's own transports.

asyncio's TLS cannot answer a client that has closed its half of the connection, copies each byte twice more, and keeps 256 KiB
per connection. Here OpenSSL reads from the socket and writes to it, and no more than one unfinished write waits in memory.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import ssl
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from broker.security.principals import NoPrincipal

if TYPE_CHECKING:
    from broker.server.handshake_turns import HandshakeTurns

# A client that does not complete its handshake in this time is disconnected.
HANDSHAKE_S = 10.0
# What one turn of the event loop reads from one client.
READ_BYTES = 64 * 1024
# Kafka's answer to a client that does not speak TLS: a fatal alert, "internal error".
ALERT = bytes.fromhex("15030300020250")
_PLAINTEXT = frozenset(("HTTP_REQUEST", "HTTPS_PROXY_REQUEST", "WRONG_VERSION_NUMBER"))

logger = logging.getLogger("broker.server")


class SecuredProtocol(Protocol):
    """What a TLS transport calls: an asyncio.Protocol that learns the client's certificate before the first data."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None: ...
    def secured(self, certificate: bytes | None) -> None:
        """The handshake is complete. `certificate` (DER) is the client's, if one was demanded and presented. Raises
        NoPrincipal if it has no principal."""
        ...

    def data_received(self, data: bytes) -> None: ...
    def eof_received(self) -> bool | None: ...
    def pause_writing(self) -> None: ...
    def resume_writing(self) -> None: ...
    def connection_lost(self, error: Exception | None) -> None: ...


class TlsTransport(asyncio.Transport):
    """The connection is made at once, so that it counts in the limits; data arrives after the handshake."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        client: socket.socket,
        context: ssl.SSLContext,
        protocol: SecuredProtocol,
        turns: HandshakeTurns,
    ) -> None:
        """Raises OSError if the client has disconnected."""
        peer = client.getpeername()
        self._socket = context.wrap_socket(client, server_side=True, do_handshake_on_connect=False)
        super().__init__({"socket": self._socket, "peername": peer, "sslcontext": context})
        self._loop = loop
        self._protocol = protocol
        self._turns = turns
        self._file = self._socket.fileno()
        self._unwritten: deque[bytes] = deque()
        self._unwritten_bytes = 0
        self._write_limit = 64 * 1024
        self._secured = False
        self._reading = True
        self._ended = False
        self._paused_protocol = False
        self._closing = False
        self._closed = False
        self._wants_write = False
        self._timer = loop.call_later(HANDSHAKE_S, self._fail_handshake, f"no handshake within {HANDSHAKE_S:g} s")
        protocol.connection_made(self)
        if not self._closed:
            self._watch()

    # Called by the protocol.

    def is_closing(self) -> bool:
        return self._closing

    def is_reading(self) -> bool:
        return self._reading and not self._closing

    def pause_reading(self) -> None:
        self._reading = False
        self._watch()

    def resume_reading(self) -> None:
        self._reading = True
        self._watch()
        if self._secured and not self._closed and self._socket.pending():
            self._loop.call_soon(self._read)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """The protocol is paused above `high` bytes and resumed when everything is written."""
        self._write_limit = 64 * 1024 if high is None else high

    def get_write_buffer_size(self) -> int:
        return self._unwritten_bytes

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self._closing or not data:
            return
        if not self._unwritten:
            data = memoryview(data)[self._send(data) :]
            if not data:
                return
        if not self._closing:
            self._unwritten.append(bytes(data))
            self._unwritten_bytes += len(data)
            self._watch()
            if self._unwritten_bytes > self._write_limit and not self._paused_protocol:
                self._paused_protocol = True
                self._protocol.pause_writing()

    def close(self) -> None:
        """Read no more, and disconnect once everything is written."""
        if not self._closing:
            self._closing = True
            if self._unwritten:
                self._watch()
            else:
                self._say_goodbye()

    def abort(self) -> None:
        self._disconnect(None)

    # Called by the event loop.

    def _shake_hands(self) -> None:
        if self._closed:
            return
        self._wants_write = False
        try:
            self._socket.do_handshake()
        except ssl.SSLWantReadError:
            self._watch()
        except ssl.SSLWantWriteError:
            self._wants_write = True
            self._watch()
        except (ssl.SSLEOFError, ssl.SSLZeroReturnError, ConnectionError):
            # The client has disconnected, as port scanners and health checks do.
            self._disconnect(None)
        except OSError as error:
            if getattr(error, "reason", None) in _PLAINTEXT:
                # OpenSSL sends no alert then. Clients recognize Kafka's as a sign that they need TLS.
                with contextlib.suppress(OSError):
                    socket.socket.send(self._socket, ALERT)
            self._fail_handshake(_explain(error))
        else:
            self._timer.cancel()
            self._secured = True
            self._watch()
            try:
                self._protocol.secured(self._socket.getpeercert(binary_form=True))
            except NoPrincipal as error:
                self._fail_handshake(str(error))
            except BaseException:
                # A client without a principal must not be served.
                self._disconnect(None)
                raise

    def _read(self) -> None:
        parts: list[bytes] = []
        size = 0
        try:
            while size < READ_BYTES and self._reading and not self._closing:
                part = self._socket.recv(READ_BYTES)
                if not part:
                    self._ended = True
                    break
                parts.append(part)
                size += len(part)
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            pass
        except OSError as error:
            self._disconnect(error)
            return
        if parts:
            self._protocol.data_received(parts[0] if len(parts) == 1 else b"".join(parts))
        if self._ended and not self._closing:
            self._watch()
            if not self._protocol.eof_received():
                self.close()

    def _write(self) -> None:
        while self._unwritten:
            data = self._unwritten[0]
            sent = self._send(data)
            if self._closed:
                return
            self._unwritten_bytes -= sent
            if sent < len(data):
                self._unwritten[0] = data[sent:]
                return
            self._unwritten.popleft()
        self._watch()
        if self._closing:
            self._say_goodbye()
        elif self._paused_protocol:
            self._paused_protocol = False
            self._protocol.resume_writing()

    def _send(self, data: bytes | bytearray | memoryview) -> int:
        try:
            return self._socket.send(data)
        except (ssl.SSLWantWriteError, ssl.SSLWantReadError):
            # OpenSSL wants the same bytes again.
            return 0
        except OSError as error:
            self._disconnect(error)
            return 0

    def _watch(self) -> None:
        """Wait for what the connection needs next."""
        if self._closed:
            return
        if not self._secured:
            reads, writes = not self._wants_write, self._wants_write
            on_ready: Callable[[], object] = self._begin_turn
        else:
            reads, writes = self._reading and not self._closing and not self._ended, bool(self._unwritten)
            on_ready = self._read
        if reads:
            self._loop.add_reader(self._file, on_ready)
        else:
            self._loop.remove_reader(self._file)
        if writes:
            self._loop.add_writer(self._file, self._write if self._secured else on_ready)
        else:
            self._loop.remove_writer(self._file)

    def _begin_turn(self) -> None:
        self._loop.remove_reader(self._file)
        self._loop.remove_writer(self._file)
        self._turns.run(self._shake_hands)

    def _fail_handshake(self, reason: str) -> None:
        logger.warning("TLS handshake with /%s failed: %s", self.get_extra_info("peername")[0], reason)
        # What the client has sent must be read, or the system resets the connection, and the client does not see the alert.
        with contextlib.suppress(OSError):
            socket.socket.recv(self._socket, READ_BYTES)
        self._disconnect(None)

    def _say_goodbye(self) -> None:
        if self._secured:
            # The alert is sent; the client's need not be awaited.
            with contextlib.suppress(OSError, ValueError):
                self._socket.unwrap()
        self._disconnect(None)

    def _disconnect(self, error: Exception | None) -> None:
        if self._closed:
            return
        self._closed = self._closing = True
        self._timer.cancel()
        self._loop.remove_reader(self._file)
        self._loop.remove_writer(self._file)
        self._unwritten.clear()
        self._unwritten_bytes = 0
        self._loop.call_soon(self._lose, error)

    def _lose(self, error: Exception | None) -> None:
        self._protocol.connection_lost(error)
        self._socket.close()


def _explain(error: OSError) -> str:
    reason: str = getattr(error, "reason", None) or ""
    if reason in _PLAINTEXT:
        return "the client does not speak TLS; its security.protocol must be that of the listener"
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the client's certificate is refused: {error.verify_message}"
    if reason == "PEER_DID_NOT_RETURN_A_CERTIFICATE":
        return "the client presents no certificate, but ssl.client.auth=required"
    if "ALERT_UNKNOWN_CA" in reason or "ALERT_CERTIFICATE" in reason or "ALERT_BAD_CERTIFICATE" in reason:
        return f"the client refuses the broker's certificate ({_words(reason)})"
    return _words(reason) or str(error)


def _words(reason: str) -> str:
    return reason.lower().replace("_", " ")
