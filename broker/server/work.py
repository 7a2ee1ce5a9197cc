"""Work: what one request costs, if there are quotas."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from broker.cores.fetch_sessions.contexts import Context


class Work:
    """Its size in bytes, and the time that the broker spent on it. `fetch` is the context of a Fetch that is answered."""

    __slots__ = ("_clock", "_since_s", "charged", "fetch", "request_bytes", "spent_s")

    def __init__(self, request_bytes: int, clock: Callable[[], float]) -> None:
        self._clock = clock
        self.request_bytes = request_bytes
        self.spent_s = 0.0
        self._since_s: float | None = clock()
        self.charged = False
        self.fetch: Context | None = None

    def pause(self) -> None:
        """The request waits, or its work is done."""
        if self._since_s is not None:
            self.spent_s += self._clock() - self._since_s
            self._since_s = None

    def timed(self, run: Callable[[], None]) -> Callable[[], None]:
        """A part of the work that runs later."""

        def timed() -> None:
            self._since_s = self._clock()
            try:
                run()
            finally:
                self.pause()

        return timed
