"""What one connection has yet to write: bytes, and slices of files that go out without being read into memory."""

from __future__ import annotations

import logging
import os
from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING, cast

from broker.storage import StorageError

if TYPE_CHECKING:
    import asyncio
    import socket

    from broker.storage import FileSlice

# Below this a copy costs less than another system call.
SENDFILE_BYTES = 64 * 1024
# What is put together for one write, at most about so much.
WRITE_BYTES = 256 * 1024
# What one connection may send from files before other connections get their turn.
TURN_BYTES = 4 * 1024 * 1024
_IN_MEMORY = (bytes, memoryview, bytearray)

logger = logging.getLogger("broker.server")


def _is_small(part: object) -> bool:
    return type(part) in _IN_MEMORY or len(cast("FileSlice", part)) <= SENDFILE_BYTES


class Outbox:
    """Writes to a transport as fast as the client reads, holding at most one chunk of a file in memory.

    `blocked` says that the client does not keep up: until `resume` is called nothing more should be read from it.
    """

    __slots__ = ("_closing", "_loop", "_parts", "_scheduled", "_sent", "_transport", "blocked")

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        # With a limit of 0 the transport says when its buffer is empty, which is when sendfile may take over.
        transport.set_write_buffer_limits(0)
        self._transport = transport
        self._loop = loop
        self._parts: deque[object] = deque()
        self._sent = 0
        self._scheduled = False
        self._closing = False
        self.blocked = False

    def put(self, parts: Iterable[object]) -> None:
        """Take what is to be written next; small pieces of files are read when their turn comes, in one write with others."""
        self._parts.extend(parts)

    def close(self) -> None:
        """Close the transport once everything is written."""
        self._closing = True
        if not self._parts:
            self._transport.close()

    def flush(self) -> None:
        """Write what can be written now. What cannot be read from its file ends the connection, and nothing else."""
        try:
            self._flush()
        except (OSError, StorageError) as error:
            # The client was told how long the answer is; only closing says that the rest does not come.
            logger.error("cannot read what is to be sent: %s", error)
            self._parts.clear()
            self._transport.abort()

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
            self._transport.close()

    def _write_small_parts(self) -> int:
        parts = self._parts
        together: list[bytes] = []
        size = 0
        while parts and size < WRITE_BYTES and _is_small(parts[0]):
            part = parts.popleft()
            data = cast(bytes, part) if type(part) in _IN_MEMORY else cast("FileSlice", part).tobytes()
            together.append(data)
            size += len(data)
        self._transport.write(together[0] if len(together) == 1 else b"".join(together))
        return size

    def _send_slice(self, part: FileSlice) -> int:
        """Send some of a file; the number of bytes that left or lie in the transport's buffer."""
        position, left = part.position + self._sent, part.length - self._sent
        sent = 0
        if self._transport.get_write_buffer_size() == 0:
            sent = self._sendfile(part.fileno, position, min(left, TURN_BYTES))
            position += sent
            left -= sent
        # What sendfile left open the transport takes: it knows when the socket is writable again.
        copied = min(left, SENDFILE_BYTES)
        if copied:
            chunk = os.pread(part.fileno, copied, position)
            if len(chunk) < copied:
                raise OSError(f"a segment ends {left - len(chunk)} bytes early")
            self._transport.write(chunk)
        self._sent += sent + copied
        if self._sent >= part.length:
            self._parts.popleft()
            self._sent = 0
        return sent + copied

    def _sendfile(self, file: int, position: int, length: int) -> int:
        connection = cast("socket.socket", self._transport.get_extra_info("socket"))
        sent = 0
        try:
            while sent < length:
                step = os.sendfile(connection.fileno(), file, position + sent, length - sent)
                if step == 0:
                    break
                sent += step
        except OSError:
            # Full (the usual end), or gone: then the transport's own write finds out and closes.
            pass
        return sent
