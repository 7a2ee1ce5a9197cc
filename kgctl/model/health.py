"""The health of a group or of a partition that a group reads: one vocabulary for the CLI, the dashboard and the Spark reports.

Where Burrow, LinkedIn's lag checker, has a status of the same meaning, its term is named.
"""

from __future__ import annotations

from enum import StrEnum


class Health(StrEnum):
    """A health word. `str(Health.DEAD_MEMBERS)` is what people and tables see: "DEAD MEMBERS"."""

    OK = "OK"
    """The group keeps up: there is no lag, or the lag does not grow. Burrow: OK."""

    LAGGING = "LAGGING"
    """Commits advance, but more slowly than records arrive. Burrow: WARN (warning)."""

    STALLED = "STALLED"
    """Records are waiting and the committed offset does not advance, although the group still has a consumer. Burrow: STALL."""

    STOPPED = "STOPPED"
    """Records are waiting and the consumer is gone: no commits, or no members. Burrow: STOP."""

    REWOUND = "REWOUND"
    """A committed offset moved back, by a reset or by a consumer that committed an older offset. Burrow: REWIND."""

    REBALANCING = "REBALANCING"
    """The group is in a rebalance and has no valid assignment yet. Burrow has no such status."""

    DEAD_MEMBERS = "DEAD MEMBERS"
    """The coordinator has not heard from one or more members for most of their session timeout. Burrow has no such status."""

    UNKNOWN = "UNKNOWN"
    """The health cannot be determined: the group or a partition leader returned an error, or there is no data. Burrow: NOTFOUND."""


WORST_FIRST = (
    Health.UNKNOWN,
    Health.DEAD_MEMBERS,
    Health.STOPPED,
    Health.STALLED,
    Health.REWOUND,
    Health.LAGGING,
    Health.REBALANCING,
    Health.OK,
)
"""The order in which groups need attention."""
