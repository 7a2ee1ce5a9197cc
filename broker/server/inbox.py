"""Inbox: received bytes, which are cut into frames when these are executed."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from broker.protocol.frames import FrameBuffer

# A chunk of received bytes takes this much more.
CHUNK_BYTES = 64


class Inbox:
    """The frames of one connection. `queued_bytes` is the size of the chunks that are not cut yet, or being cut."""

    __slots__ = ("_chunk_bytes", "_chunks", "_cut", "_frames", "queued_bytes")

    def __init__(self, max_frame_bytes: int) -> None:
        self._frames = FrameBuffer(max_frame_bytes)
        self._cut: Iterator[bytes] = iter(())
        self._chunks: deque[bytes] = deque()
        self._chunk_bytes = 0
        self.queued_bytes = 0

    @property
    def unfinished_bytes(self) -> int:
        """The size of the incomplete frame."""
        return self._frames.pending_bytes

    def limit(self, max_frame_bytes: int) -> None:
        """Change the size of the largest frame from now on."""
        self._frames.max_frame_bytes = max_frame_bytes

    def put(self, chunk: bytes) -> None:
        self._chunks.append(chunk)
        self.queued_bytes += len(chunk) + CHUNK_BYTES

    def next_frame(self) -> bytes | None:
        """The next frame, if it is complete. Raises DecodeError if its length is not valid."""
        while (frame := next(self._cut, None)) is None:
            self.queued_bytes -= self._chunk_bytes
            self._chunk_bytes = 0
            if not self._chunks:
                break
            chunk = self._chunks.popleft()
            self._chunk_bytes = len(chunk) + CHUNK_BYTES
            self._cut = self._frames.feed(chunk)
        return frame

    def drop(self) -> None:
        """Forget all but the incomplete frame."""
        self._cut = iter(())
        self._chunks.clear()
        self._chunk_bytes = self.queued_bytes = 0
