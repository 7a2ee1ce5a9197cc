"""The jobs: what each reads, what it writes, and in which order they build on each other. Knows nothing of Spark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

OFFSETS_TOPIC = "__consumer_offsets"
EVENTS_TOPIC = "__kgctl_group_events"


@dataclass(frozen=True, slots=True)
class Job:
    """`reads` and `writes` name topics and tables; a table that is read must have been written by an earlier job."""

    name: str
    summary: str
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    how: str


JOBS = {
    job.name: job
    for job in (
        Job(
            "decode",
            "the records of __consumer_offsets as rows",
            (OFFSETS_TOPIC,),
            ("commits", "group_events", "quarantine"),
            "A stream from the cluster's own topic. Keys and values of all versions are read by SQL expressions; what cannot "
            "be read goes to quarantine with its reason. Compaction has thinned out what lies behind the topic's tail.",
        ),
        Job(
            "lag",
            "committed offsets against the ends of the logs",
            ("commits", "log ends of the cluster"),
            ("log_ends", "f_lag"),
            "A point in time every --step, up to when decode last looked for commits. The cluster is asked where each log ended then, so lag is known for the past too. "
            "Lag in time is how long ago the first record behind the commit was written.",
        ),
        Job(
            "evaluate",
            "OK, WARN, STALL, STOP or REWIND for each partition of a group",
            ("commits", "log ends of the cluster"),
            ("health",),
            "Burrow's five rules over the last ten commits: no lag at any commit is OK; an offset that went back is REWIND; "
            "no commit for longer than the window covers is STOP; commits that do not move while there is lag are STALL; "
            "lag that never falls is WARN.",
        ),
        Job(
            "rebalances",
            "every rebalance with generation, cause, duration, members in and out, partitions moved",
            (EVENTS_TOPIC, "or " + OFFSETS_TOPIC),
            ("f_rebalance",),
            "A stateful stream. kgctl's own broker tells the story of each group; of any other cluster the group metadata is "
            "compared with the generation before: no duration and no cause, but members and partitions.",
        ),
    )
}

# These read topics and have a checkpoint; the others read tables.
STREAMING = frozenset({"decode", "rebalances"})


def in_order(names: Sequence[str]) -> list[str]:
    """The jobs each once, those whose tables others read first."""
    return [name for name in JOBS if name in names]
