"""The limits by which groups are judged, in seconds."""

from __future__ import annotations

from broker.light_dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Shorter limits bring verdicts sooner, and more false alarms.

    `stalled_s`: a partition with lag is stalled if its commit has not moved for this long; a group with lag is stopped if it has
    had no members, and never commits if it has been Stable without any commit, for this long. Kafka Connect sinks and many jobs
    with checkpoints commit once a minute.
    `growth_span_s`: snapshots must cover this much time before growth of the lag means anything.
    `growth_s`: lag grows between two commits (every 5 s by default) without meaning. It must exceed the records of this many
    seconds. Growth ends below half of that.
    `behind_s`: a lag of more than the records of this many seconds is LAGGING even if it does not grow, unless it shrinks, and
    until it is below four fifths of that.
    `unused_s`: a group without members and commits for this long is unused. A consumer that died an hour ago is a fault.
    `hold_s`: a verdict must hold for this long before its change is an event, and for `hold_again_s` in a group whose verdict
    changed in the last `again_s`.
    """

    stalled_s: float = 90.0
    growth_span_s: float = 30.0
    growth_s: float = 6.0
    behind_s: float = 90.0
    unused_s: float = 86_400.0
    hold_s: float = 10.0
    hold_again_s: float = 30.0
    again_s: float = 120.0


LIMITS = Limits()
