"""The clock of the cluster: what its brokers have reported of it, and an estimate of how far it is from ours."""

from __future__ import annotations

from collections.abc import Iterable

from kgctl.model.groups import GroupDescription

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


def newest_ms(groups: Iterable[GroupDescription]) -> int | None:
    """The latest time that coordinators of these groups have reported; None if they reported none."""
    newest = 0
    for group in groups:
        newest = max(newest, group.clock_ms or max(group.state_since_ms or 0, group.last_commit_ms or 0))
    return newest or None


def latest_now_ms(groups: Iterable[GroupDescription], wall_ms: int) -> int:
    """Now by the cluster's clock; where it does not report it, the latest that it may be. A record must be younger to be recent."""
    found = list(groups)
    clocks = [group.clock_ms for group in found if group.clock_ms is not None]
    return max(clocks) if clocks else max(wall_ms, newest_ms(found) or 0)
