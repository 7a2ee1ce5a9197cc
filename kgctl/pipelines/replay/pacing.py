"""When a record may be sent: not faster than a rate, and not earlier than its recorded time demands. Pure: the time is an argument."""

from __future__ import annotations

from dataclasses import dataclass, field

from kgctl.pipelines.replay.records import NO_TIMESTAMP

# After a pause, at most what the rate allows in this time may follow at once.
BURST_S = 0.1
_MOST_RECORDS, _RUNS_PER_S = 500, 20


@dataclass(slots=True)
class Pace:
    """`rate` in records per second, `speed` in recorded seconds per second; None is no limit. Times in seconds."""

    rate: float | None = None
    speed: float | None = None
    _free_at: float = float("-inf")
    _began: tuple[int, float] | None = field(default=None, init=False)

    @property
    def most_records(self) -> int:
        """How many records may be sent without asking again."""
        if self.speed is not None:
            return 1
        return _MOST_RECORDS if self.rate is None else max(1, min(_MOST_RECORDS, int(self.rate / _RUNS_PER_S)))

    def wait(self, timestamp_ms: int, now: float) -> float:
        """How long a record of this timestamp has to wait. The first one begins the recorded time."""
        return max(0.0, self._free_at - now, self._due(timestamp_ms, now) - now)

    def sent(self, count: int, now: float) -> None:
        if self.rate is not None:
            self._free_at = max(self._free_at, now - BURST_S) + count / self.rate

    def _due(self, timestamp_ms: int, now: float) -> float:
        if self.speed is None or timestamp_ms == NO_TIMESTAMP:
            return now
        if self._began is None:
            self._began = (timestamp_ms, now)
        first_ms, began = self._began
        return began + (timestamp_ms - first_ms) / 1000 / self.speed
