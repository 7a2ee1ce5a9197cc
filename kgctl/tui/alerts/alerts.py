"""What happens when verdicts change: the bell rings, a command runs."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from kgctl.tui.alerts.changes import Changes, is_fault
from kgctl.tui.alerts.command import AlertCommand
from kgctl.watch.cluster import ClusterView

# The same failure is shown again no sooner than this.
AGAIN_S = 60.0


class Alerts:
    """`rings`: the bell rings when a group begins to need somebody. `command` runs for each change, also for the better."""

    def __init__(
        self,
        ring: Callable[[], object],
        warn: Callable[[str], object],
        *,
        rings: bool = False,
        command: Sequence[str] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.rings = rings
        self._ring, self._warn, self._clock = ring, warn, clock
        self._changes = Changes()
        self._shown: dict[str, float] = {}
        self.command = AlertCommand(command, self._failed) if command is not None else None

    def add(self, view: ClusterView) -> None:
        changes = self._changes.add(view)
        if self.rings and any(map(is_fault, changes)):
            self._ring()
        if self.command is not None:
            self.command.add(changes)

    def forget(self) -> None:
        """Begin again with another cluster."""
        self._changes = Changes()

    def _failed(self, sentence: str) -> None:
        now_s = self._clock()
        self._shown = {text: at_s for text, at_s in self._shown.items() if now_s - at_s < AGAIN_S}
        if sentence not in self._shown:
            self._shown[sentence] = now_s
            self._warn(sentence)
