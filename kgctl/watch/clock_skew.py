"""Estimates how far a coordinator's clock is from ours, from the state times that it reports."""

from __future__ import annotations

# The requests of one snapshot are answered at slightly different times.
SLACK_MS = 5_000


class ClockSkew:
    """`ahead_ms` is how far the coordinator's clock is ahead of ours; negative if behind.

    It starts at 0 and is the smallest correction that explains the snapshots.
    """

    __slots__ = ("_since_ms", "ahead_ms")

    def __init__(self) -> None:
        self.ahead_ms = 0
        self._since_ms: int | None = None

    def observe(self, since_ms: int | None, wall_ms: int, span_ms: int) -> None:
        """Add a snapshot taken at our `wall_ms`, `span_ms` after the previous one.

        `since_ms` is when the current state began, by the coordinator's clock.
        """
        known, self._since_ms = self._since_ms, since_ms
        if since_ms is None:
            return
        age_ms = wall_ms - since_ms
        if known is not None and known != since_ms:
            # The state began between the two snapshots, so it cannot be older than that.
            self.ahead_ms = min(self.ahead_ms, span_ms + SLACK_MS - age_ms)
        # A state cannot begin in the future.
        self.ahead_ms = max(self.ahead_ms, -age_ms)

    def age_ms(self, since_ms: int, wall_ms: int) -> int:
        """The age at our `wall_ms` of a state that began at the coordinator's `since_ms`."""
        return max(wall_ms + self.ahead_ms - since_ms, 0)
