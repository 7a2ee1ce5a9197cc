"""Keeps the garbage collector from delaying keys while the dashboard watches many groups.

A full collection looks at every object: with 10,000 groups it takes half a second, and rates, trends and views make it due every
few snapshots. They contain no cycles, so they are freed without it. Only closed screens and dialogs leave something to collect.
"""

from __future__ import annotations

import gc

MANY = 1_000
NEVER = 1_000_000_000
# A full collection is due this long after the last one, once no key has come for a while.
DUE_S, QUIET_S = 600.0, 60.0


class Garbage:
    def __init__(self, now_s: float) -> None:
        self._usual: tuple[int, int, int] | None = None
        self._collected_s = self._used_s = now_s

    def used(self, now_s: float) -> None:
        """The user has pressed a key, or used the mouse."""
        self._used_s = now_s

    def answered(self, groups: int, now_s: float) -> None:
        """There is a new view of this many groups."""
        if groups < MANY:
            self.restore()
            return
        if self._usual is None:
            self._usual = gc.get_threshold()
            gc.set_threshold(*self._usual[:2], NEVER)
        if now_s - self._collected_s >= DUE_S and now_s - self._used_s >= QUIET_S:
            self._collected_s = now_s
            gc.unfreeze()
            gc.collect()
        else:
            gc.collect(1)
        gc.freeze()

    def restore(self) -> None:
        """Collect garbage as usual again."""
        if self._usual is not None:
            gc.set_threshold(*self._usual)
            gc.unfreeze()
            self._usual = None
