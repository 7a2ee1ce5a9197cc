"""Reads and writes one open connection without blocking."""

from __future__ import annotations

import socket
from collections import deque
from collections.abc import Sequence
from io import BytesIO

from kgctl.client.net import wire

_CHUNK = 1 << 17
# One connection reads this much before others have their turn.
_ONE_TURN = 1 << 22


class Stream:
    """Cuts what arrives into frames. OSError, EOFError, NotKafka and TlsFailed end the connection."""

    def __init__(self, opened: socket.socket) -> None:
        opened.setblocking(False)
        self._socket = opened
        self._is_tls = hasattr(opened, "pending")
        self.descriptor = opened.fileno()
        # What was received, and how much of it is the start of a small frame whose end has not arrived.
        self._chunk = memoryview(bytearray(_CHUNK))
        self._rest = 0
        # A frame whose end has not arrived: BytesIO gives its buffer away as bytes without copying it.
        self._large: BytesIO | None = None
        self._size = self._at = 0
        self._out: deque[memoryview] = deque()
        self.has_more = False

    @property
    def is_writing(self) -> bool:
        return bool(self._out)

    def read(self) -> list[bytes]:
        """The frames that have arrived. `has_more`: call again without waiting for the socket."""
        frames: list[bytes] = []
        self.has_more = False
        left = _ONE_TURN
        while left > 0:
            try:
                count = self._read_large(frames) if self._large is not None else self._read_chunk(frames)
            except BlockingIOError:
                return frames
            except OSError as error:
                if self._is_tls and _is_waiting(error):
                    return frames
                raise
            left -= count
            if not self._is_tls and count < _CHUNK:
                return frames
        self.has_more = True
        return frames

    def _read_chunk(self, frames: list[bytes]) -> int:
        """The bytes that were read; fewer than _CHUNK: that was all."""
        chunk, rest = self._chunk, self._rest
        count = self._socket.recv_into(chunk[rest:] if rest else chunk)
        if not count:
            raise EOFError
        position, end = 0, rest + count
        while end - position >= 4:
            size = int.from_bytes(chunk[position : position + 4], "big", signed=True)
            wire.check_size(size)
            after = position + 4 + size
            if after > end:
                if size > _CHUNK - 4:
                    self._large, self._size, self._at = BytesIO(bytes(size)), size, end - position - 4
                    self._large.write(chunk[position + 4 : end])
                    position = end
                break
            frames.append(bytes(chunk[position + 4 : after]))
            position = after
        self._rest = end - position
        if position and self._rest:
            chunk[: self._rest] = chunk[position:end]
        return count if end < _CHUNK else _CHUNK

    def _read_large(self, frames: list[bytes]) -> int:
        """0: the rest has not arrived."""
        large = self._large
        assert large is not None
        with large.getbuffer() as view, view[self._at :] as rest:
            count = self._socket.recv_into(rest)
        if not count:
            raise EOFError
        self._at += count
        if self._at == self._size:
            frames.append(large.getvalue())
            self._large = None
            return _CHUNK
        return _CHUNK if self._is_tls else 0

    def write(self, buffers: Sequence[bytes | memoryview]) -> None:
        """Send as much as possible at once, the rest when the socket is writable."""
        was_writing = bool(self._out)
        self._out.extend(memoryview(each).cast("B") for each in buffers if len(each))
        if not was_writing:
            self.flush()

    def flush(self) -> bool:
        """Send what is left; whether nothing is."""
        out = self._out
        try:
            while out:
                if self._is_tls or len(out) == 1:
                    sent = self._socket.send(out[0])
                else:
                    sent = self._socket.sendmsg(list(out)[:64])
                while sent and sent >= len(out[0]):
                    sent -= len(out.popleft())
                if sent:
                    out[0] = out[0][sent:]
        except BlockingIOError:
            return False
        except OSError as error:
            if not (self._is_tls and _is_waiting(error)):
                raise
            return False
        return True

    def close(self) -> None:
        self._socket.close()


def _is_waiting(error: OSError) -> bool:
    import ssl

    return isinstance(error, ssl.SSLWantReadError | ssl.SSLWantWriteError)
