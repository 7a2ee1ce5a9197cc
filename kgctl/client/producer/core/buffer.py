"""Counts the memory of batches (buffer.memory), and serves those who wait for it in the order of their requests."""

from __future__ import annotations

from collections import deque


class Reservation:
    """A request for memory. `is_granted` once the bytes belong to it; `error` if the buffer was closed before."""

    __slots__ = ("is_closed", "is_granted", "size_bytes")

    def __init__(self, size_bytes: int) -> None:
        self.size_bytes = size_bytes
        self.is_granted = False
        self.is_closed = False

    @property
    def is_settled(self) -> bool:
        return self.is_granted or self.is_closed


class Buffer:
    """Kafka's BufferPool: whoever asks first is served first, also if a later request would fit."""

    def __init__(self, total_bytes: int) -> None:
        self.total_bytes = total_bytes
        self.free_bytes = total_bytes
        self.is_closed = False
        self._waiting: deque[Reservation] = deque()

    @property
    def waiting(self) -> int:
        """How many requests wait for memory."""
        return len(self._waiting)

    def reserve(self, size_bytes: int) -> Reservation:
        """Take the bytes, or wait for them in line. A size above `total_bytes` is the caller's mistake."""
        assert size_bytes <= self.total_bytes
        made = Reservation(size_bytes)
        if self.is_closed:
            made.is_closed = True
        elif not self._waiting and size_bytes <= self.free_bytes:
            self._grant(made)
        else:
            self._waiting.append(made)
        return made

    def cancel(self, reservation: Reservation) -> None:
        """Give up a request, or give back what it got."""
        if reservation.is_granted:
            reservation.is_granted = False
            self.release(reservation.size_bytes)
        elif reservation in self._waiting:
            self._waiting.remove(reservation)
            self._serve()

    def release(self, size_bytes: int) -> None:
        """Give bytes back. They go to those who wait."""
        self.free_bytes += size_bytes
        self._serve()

    def close(self) -> None:
        """Refuse all further requests, and those that wait."""
        self.is_closed = True
        while self._waiting:
            self._waiting.popleft().is_closed = True

    def _serve(self) -> None:
        waiting = self._waiting
        while waiting and waiting[0].size_bytes <= self.free_bytes:
            self._grant(waiting.popleft())

    def _grant(self, reservation: Reservation) -> None:
        self.free_bytes -= reservation.size_bytes
        reservation.is_granted = True
