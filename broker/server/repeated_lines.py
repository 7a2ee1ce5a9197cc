"""RepeatedLines: log lines that clients cause, at most one of a kind in some time: clients retry many times per second."""

from __future__ import annotations

import logging
from collections.abc import Callable

INTERVAL_S = 10.0
# Kinds of lines that are remembered; beyond it the oldest are forgotten, and may be repeated.
MOST_KINDS = 1000

logger = logging.getLogger("broker.server")


class RepeatedLines:
    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        # When a line may be logged again, and how many were not.
        self._kinds: dict[str, tuple[float, int]] = {}

    def warn(self, line: str) -> None:
        """Log a line, unless the same was logged a moment ago; the next one says how many were left out."""
        now = self._clock()
        again_at, left_out = self._kinds.get(line, (now, 0))
        if now < again_at:
            self._kinds[line] = again_at, left_out + 1
            return
        self._kinds.pop(line, None)
        if len(self._kinds) >= MOST_KINDS:
            del self._kinds[next(iter(self._kinds))]
        self._kinds[line] = now + INTERVAL_S, 0
        logger.warning("%s%s", line, f" ({left_out} more since the last line)" if left_out else "")
