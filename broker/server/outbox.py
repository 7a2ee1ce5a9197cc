"""What one connection has yet to write: bytes, and slices of files that go out without being read into memory."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    import asyncio
    import socket

    from broker.log import FileSlice

# Below this a copy costs less than another system call.
SENDFILE_BYTES = 64 * 1024
# What one connection may send from files before other connections get their turn.
TURN_BYTES = 4 * 1024 * 1024
_IN_MEMORY = (bytes, memoryview, bytearray)


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

    @property
    def empty(self) -> bool:
        return not self._parts and self._transport.get_write_buffer_size() == 0

    def put(self, parts: Iterable[object]) -> None:
        """Take what is to be written next; small pieces of files are read at once."""
        for part in parts:
            small = type(part) not in _IN_MEMORY and len(cast("FileSlice", part)) <= SENDFILE_BYTES
            self._parts.append(cast("FileSlice", part).tobytes() if small else part)

    def close(self) -> None:
        """Close the transport once everything is written."""
        self._closing = True
        if not self._parts:
            self._transport.close()

    def flush(self) -> None:
        """Write what can be written now."""
        budget = TURN_BYTES
        while self._parts and not self.blocked:
            if type(self._parts[0]) in _IN_MEMORY:
                self._write_bytes()
            elif budget <= 0:
                self._flush_soon()
                return
            else:
                budget -= self._send_slice(cast("FileSlice", self._parts[0]))
        if self._closing and not self._parts:
            self._transport.close()

    def pause(self) -> None:
        self.blocked = True

    def resume(self) -> None:
        self.blocked = False
        self.flush()

    def _flush_soon(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._continue)

    def _continue(self) -> None:
        self._scheduled = False
        if not self._transport.is_closing():
            self.flush()

    def _write_bytes(self) -> None:
        parts = self._parts
        together = []
        while parts and type(parts[0]) in _IN_MEMORY:
            together.append(cast(bytes, parts.popleft()))
        self._transport.write(together[0] if len(together) == 1 else b"".join(together))

    def _send_slice(self, part: FileSlice) -> int:
        """Send some of a file; the number of bytes that left or lie in the transport's buffer."""
        position, left = part.position + self._sent, part.length - self._sent
        sent = 0
        if left > SENDFILE_BYTES and self._transport.get_write_buffer_size() == 0:
            sent = self._sendfile(part.fileno, position, min(left, TURN_BYTES))
            position += sent
            left -= sent
        # What sendfile left open the transport takes: it knows when the socket is writable again.
        copied = min(left, SENDFILE_BYTES)
        if copied:
            chunk = os.pread(part.fileno, copied, position)
            if len(chunk) < copied:
                # The client was told how long the answer is; only closing says that it does not come.
                self._parts.clear()
                self._transport.abort()
                raise OSError(f"a segment ended {copied - len(chunk)} bytes early while it was sent")
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
