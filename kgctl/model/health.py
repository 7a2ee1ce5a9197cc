"""The health of a group or of a partition that a group reads: one vocabulary for the CLI, the dashboard and the Spark reports.

Where Burrow, LinkedIn's lag checker, has a status of the same meaning, its term is named.
"""

from __future__ import annotations

from enum import StrEnum

from broker.light_named_tuples import NamedTuple


class Health(StrEnum):
    """A health word. `str(Health.NEVER_COMMITTED)` is what people and tables see: "NEVER COMMITTED"."""

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

    NEVER_COMMITTED = "NEVER COMMITTED"
    """Records are waiting, members own their partitions, and no offset is committed at all. Burrow has no such status."""

    REBALANCING = "REBALANCING"
    """The group is in a rebalance: it has no valid assignment yet, or members of a consumer group (KIP-848) have not reached
    their targets. Burrow has no such status."""

    SILENT = "SILENT"
    """One or more members are silent: no heartbeat for most of their session timeout, at which they are evicted. Not in Burrow."""

    UNUSED = "UNUSED"
    """The group has had no members and no commits for a long time, a day by default. Burrow has no such status."""

    UNKNOWN = "UNKNOWN"
    """The health cannot be determined: the group or a partition leader returned an error, or there is no data. Burrow: NOTFOUND."""


ATTENTION: tuple[Health | None, ...] = (
    Health.UNKNOWN,
    Health.SILENT,
    Health.STALLED,
    Health.NEVER_COMMITTED,
    Health.STOPPED,
    Health.REWOUND,
    Health.LAGGING,
    Health.REBALANCING,
    None,
    Health.OK,
    Health.UNUSED,
)
"""The order in which groups need attention. None stands for no verdict, because there is no evidence for one yet."""

WORDS = tuple(health for health in ATTENTION if health is not None)
"""All health words, in the order of attention."""

FAULTS = frozenset(WORDS[: WORDS.index(Health.REBALANCING)])
"""The words for groups that need somebody. A rebalance ends by itself."""

EVALUATED = (Health.STOPPED, Health.STALLED, Health.REWOUND, Health.LAGGING, Health.UNKNOWN, Health.OK)
"""The words of an evaluation of commits, worst first. UNKNOWN comes late: the partitions of a deleted topic stay unknown, and
must neither lead a report nor hide a fault."""

NO_VERDICT = "-"
_RANKS = {health: rank for rank, health in enumerate(ATTENTION)}


def attention(health: Health | None, lag: int | None, name: str) -> tuple[int, int, str]:
    """A sort key: the group that needs attention most comes first; among equals that with the largest lag, then by name."""
    return _RANKS[health], -(lag or 0), name


class Evidence(NamedTuple):
    """How many seconds of snapshots there are, and how many a verdict needs."""

    seen_s: float
    needed_s: float


class Judgement(NamedTuple):
    """The verdict about a group, None if there is no evidence for one, and the reason: a sentence with figures.

    `evidence` is how much there is where time will bring a verdict. `uncommitted_records` are those in partitions that a
    member owns and that have no committed offset, counted from the start of the log: an upper bound of what the group has
    not read. `brief` is the reason in about 30 characters, without the lag; empty if there is no shorter form. Both reasons
    contain names that clients chose, so a user interface must make them printable.
    """

    health: Health | None
    reason: str
    evidence: Evidence | None = None
    uncommitted_records: int | None = None
    brief: str = ""
