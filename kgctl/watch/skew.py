"""How far a coordinator's clock is from ours, as far as what it tells gives it away."""

from __future__ import annotations

# The parts of a look are not of one moment.
SLACK_MS = 5_000


class Skew:
    """`ahead_ms`: how far its clock is ahead of ours (behind: negative); no more than what was seen needs. 0 to begin with."""

    __slots__ = ("_since_ms", "ahead_ms")

    def __init__(self) -> None:
        self.ahead_ms = 0
        self._since_ms: int | None = None

    def note(self, since_ms: int | None, wall_ms: int, span_ms: int) -> None:
        """What a look tells, at our `wall_ms`: since when a state is, by its clock. `span_ms`: the time since the look before."""
        known, self._since_ms = self._since_ms, since_ms
        if since_ms is None:
            return
        age_ms = wall_ms - since_ms
        if known is not None and known != since_ms:
            # It came between the two looks: it is no older than that.
            self.ahead_ms = min(self.ahead_ms, span_ms + SLACK_MS - age_ms)
        # Nothing has begun later than now.
        self.ahead_ms = max(self.ahead_ms, -age_ms)

    def age_ms(self, since_ms: int, wall_ms: int) -> int:
        return max(wall_ms + self.ahead_ms - since_ms, 0)
