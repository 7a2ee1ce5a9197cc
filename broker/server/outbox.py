"""Outbox: what one connection still has to write, as bytes and as slices of files that `sendfile` copies."""

from __future__ import annotations

import logging
import os
from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING, cast

from broker.storage import OutOfDescriptors, StorageError

if TYPE_CHECKING:
    import asyncio
    import socket

    from broker.storage import FileSlice

# Below this size a copy costs less than another system call.
SENDFILE_BYTES = 64 * 1024
# Small parts are joined into one write up to about this size.
WRITE_BYTES = 256 * 1024
# How much one connection may send before other connections get their turn.
TURN_BYTES = 4 * 1024 * 1024
# How often, and how many times, a file is opened again for which there was no descriptor.
RETRY_S, MOST_RETRIES = 0.1, 100
_IN_MEMORY = (bytes, memoryview, bytearray)

logger = logging.getLogger("broker.server")


def _is_small(part: object) -> bool:
    return type(part) in _IN_MEMORY or len(cast("FileSlice", part)) <= SENDFILE_BYTES


class Outbox:
    """Writes to a transport as fast as the client reads, with at most one chunk of a file in memory.

    Without TLS, `sendfile` writes large slices to the socket.

    While `blocked`, the client does not keep up, and the connection should not read from it.
    """

    __slots__ = (
        "_closing",
        "_failed",
        "_loop",
        "_parts",
        "_retries",
        "_scheduled",
        "_sent",
        "_socket",
        "_transport",
        "blocked",
    )

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        # With a limit of 0 the transport reports when its buffer is empty; only then may sendfile write to the socket.
        transport.set_write_buffer_limits(0)
        self._transport = transport
        is_plaintext = transport.get_extra_info("sslcontext") is None
        self._socket: socket.socket | None = transport.get_extra_info("socket") if is_plaintext else None
        self._loop = loop
        self._parts: deque[object] = deque()
        self._sent = 0
        self._retries = 0
        self._scheduled = False
        self._closing = False
        self._failed = False
        self.blocked = False

    def put(self, parts: Iterable[object]) -> None:
        """Add parts to write. Small slices of files are read when they are next, and joined with others into one write."""
        if not self._failed:
            self._parts.extend(parts)

    def close(self) -> None:
        """Close the transport once everything is written."""
        self._closing = True
        if not self._parts:
            self._transport.close()

    def flush(self) -> None:
        """Write what can be written now. A file that cannot be read closes this connection and affects no other."""
        try:
            self._flush()
            self._retries = 0
        except OutOfDescriptors as error:
            self._retries += 1
            if self._retries > MOST_RETRIES:
                self._fail(error)
            elif not self._scheduled:
                self._scheduled = True
                self._loop.call_later(RETRY_S, self._continue)
        except (OSError, StorageError) as error:
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        # The client knows the length of the answer; only closing shows that the rest is missing.
        logger.error("cannot read the records of an answer: %s", error)
        self._failed = True
        self._parts.clear()
        # In the next turn: a transport that resumes its protocol does not expect to be closed by it.
        self._loop.call_soon(self._transport.abort)

    def pause(self) -> None:
        self.blocked = True

    def resume(self) -> None:
        self.blocked = False
        self.flush()

    def _continue(self) -> None:
        self._scheduled = False
        if not self._transport.is_closing():
            self.flush()

    def _flush(self) -> None:
        parts = self._parts
        budget = TURN_BYTES
        while parts and not self.blocked:
            if budget <= 0:
                if not self._scheduled:
                    self._scheduled = True
                    self._loop.call_soon(self._continue)
                return
            if _is_small(parts[0]):
                budget -= self._write_small_parts()
            else:
                budget -= self._send_slice(cast("FileSlice", parts[0]))
        if self._closing and not parts:
            self._loop.call_soon(self._transport.close)

    def _write_small_parts(self) -> int:
        parts = self._parts
        joined: list[bytes] = []
        size = 0
        try:
            while parts and size < WRITE_BYTES and _is_small(parts[0]):
                part = parts[0]
                data = cast(bytes, part) if type(part) in _IN_MEMORY else cast("FileSlice", part).tobytes()
                parts.popleft()
                joined.append(data)
                size += len(data)
        finally:
            if joined:
                self._transport.write(joined[0] if len(joined) == 1 else b"".join(joined))
        return size

    def _send_slice(self, part: FileSlice) -> int:
        """Send a part of a file slice. Returns how many bytes are sent or in the transport's buffer."""
        position, left = part.position + self._sent, part.length - self._sent
        sent = 0
        file = part.open()
        if self._socket is not None and self._transport.get_write_buffer_size() == 0:
            sent = self._sendfile(self._socket, file.fd, position, min(left, TURN_BYTES))
            position += sent
            left -= sent
        # The transport writes what sendfile could not: it knows when the socket is writable again.
        copied = min(left, SENDFILE_BYTES)
        if copied:
            chunk = file.read(copied, position)
            if len(chunk) < copied:
                raise OSError(f"{file.path} ends {left - len(chunk)} bytes early")
            self._transport.write(chunk)
        self._sent += sent + copied
        if self._sent >= part.length:
            self._parts.popleft()
            self._sent = 0
        return sent + copied

    def _sendfile(self, connection: socket.socket, file: int, position: int, length: int) -> int:
        sent = 0
        try:
            while sent < length:
                step = os.sendfile(connection.fileno(), file, position + sent, length - sent)
                if step == 0:
                    break
                sent += step
        except OSError:
            # The socket is full, as usual, or closed; in that case the transport's write fails and closes.
            pass
        return sent
