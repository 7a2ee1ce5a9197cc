"""The jobs: what each reads and writes, and the function that runs it. Does not import Spark."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from kgctl.pipelines.schemas.group_facts import (
    ANOMALIES,
    CHURN,
    COMMIT_RATES,
    EXPECTED,
    MEMBER_SKEW,
    PARTITION_SKEW,
    SESSIONS,
)
from kgctl.pipelines.schemas.groups import (
    COMMITS,
    GROUP_EVENTS,
    HEALTH,
    LAG,
    LOG_ENDS,
    MEMBERSHIPS,
    QUARANTINE,
    REBALANCES,
)
from kgctl.pipelines.schemas.model import Table
from kgctl.pipelines.schemas.sources import EVENTS_TOPIC, OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from kgctl.pipelines.schemas.topics import (
    COMPACTION,
    COMPACTION_KEYS,
    HOLDS,
    LOG_AGES,
    PRODUCERS,
    RETENTION,
    TRANSACTIONS,
)


@dataclass(frozen=True, slots=True)
class Job:
    """The declaration of a job; the command line, its help and the run derive from it.

    A job with `topics` is a stream: it reads the first of them that the cluster has, and keeps a checkpoint. A job with
    `tables` is a batch job: it reads tables that earlier jobs write and, with `asks_log_ends`, asks the cluster. `samples`
    says in words what else it reads of the cluster. With --follow, a job that `is_rare` runs only every --scan-every seconds;
    one that `selects_topics` reads only those that match --topics.
    `function` is "module:name" and is imported only in the Spark process. It takes a RunContext and the Job; a
    stream returns its query, a batch job the number of rows that it wrote.
    """

    name: str
    summary: str
    description: str
    writes: tuple[Table, ...]
    function: str
    topics: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    asks_log_ends: bool = False
    samples: str = ""
    is_rare: bool = False
    selects_topics: bool = False

    @property
    def is_stream(self) -> bool:
        return bool(self.topics)

    @property
    def reads(self) -> tuple[str, ...]:
        """The inputs as users see them."""
        first, others = self.topics[:1], [f"or {topic}" for topic in self.topics[1:]]
        log_ends = ("log ends of the cluster",) if self.asks_log_ends else ()
        samples = (self.samples,) if self.samples else ()
        return (*first, *others, *(table.name for table in self.tables), *log_ends, *samples)


# Each job after those whose tables it reads.
JOBS = {
    job.name: job
    for job in (
        Job(
            "decode",
            "turns the records of __consumer_offsets into rows",
            "Streams the cluster's own topic. SQL expressions decode all versions of keys and values; records that cannot be "
            "decoded go to quarantine with the reason. The topic is compacted: of older commits only the newest of each "
            "partition is left.",
            writes=(COMMITS, GROUP_EVENTS, QUARANTINE),
            function="kgctl.pipelines.jobs.decode:start",
            topics=(OFFSETS_TOPIC,),
        ),
        Job(
            "lag",
            "compares committed offsets with log ends over time",
            "Computes lag at points in time --step apart, up to the time until which decode has read all commits. The job "
            "asks the cluster where each log ended at each point, so it also computes lag for the past. With --once, the last "
            "point is when the run began; with --follow, points are multiples of --step. Lag in time is the age of the oldest "
            "record that the group has not committed.",
            writes=(LOG_ENDS, LAG),
            function="kgctl.pipelines.jobs.lag:run",
            tables=(COMMITS,),
            asks_log_ends=True,
        ),
        Job(
            "evaluate",
            "judges the health of each partition of a group: OK, LAGGING, STALLED, STOPPED or REWOUND",
            "Applies Burrow's rules to the last ten commits of a partition; the first one that applies decides. There is no "
            "commit, or the end of the log is not known: UNKNOWN. There is no lag now: OK. The last commit is longer ago than the "
            "time between the first and the last of the ten commits, and there has been lag for the last 100 s: STOPPED. At least "
            "one of the ten commits had no lag: OK. A committed offset is below the one before it: REWOUND. There is lag, and all "
            "ten commits have the same offset: STALLED. Lag never fell from one commit to the next: LAGGING. Otherwise: OK.",
            writes=(HEALTH,),
            function="kgctl.pipelines.jobs.evaluate:run",
            tables=(COMMITS,),
            asks_log_ends=True,
        ),
        Job(
            "rebalances",
            "lists every rebalance with generation, cause, duration, members that joined and left, partitions moved",
            "A stateful stream. kgctl's broker records the history of each group, with causes and durations. On any other "
            "cluster the job follows the records of each group in __consumer_offsets: those of consumer and share groups show "
            "cause and duration, those of classic groups only the members and partitions of each generation.",
            writes=(REBALANCES, MEMBERSHIPS),
            function="kgctl.pipelines.jobs.rebalances:start",
            topics=(EVENTS_TOPIC, OFFSETS_TOPIC),
        ),
        Job(
            "commit_rates",
            "counts commits in windows of time: rate, gaps, rewinds, commits that moved nothing",
            "Divides time into windows of --step and compares each commit with the one before it. A window without commits has no "
            "row. On a compacted log, counts of the past are lower bounds: the column complete shows how much is left. The last "
            "window of a run with --once ends when the run began, and the next run continues there.",
            writes=(COMMIT_RATES,),
            function="kgctl.pipelines.jobs.commit_rates:run",
            tables=(COMMITS, GROUP_EVENTS, QUARANTINE),
        ),
        Job(
            "churn",
            "shows how often members come and leave, how long they stay, and who flaps",
            "Follows each member from joining to leaving, and counts per group and client host in windows of 60 --step, with the "
            "default step an hour. A static member that returns has restarted. A member flaps if three or more of its sessions are "
            "shorter than a window. Only kgctl's broker records why a member left.",
            writes=(SESSIONS, CHURN),
            function="kgctl.pipelines.jobs.churn:run",
            tables=(GROUP_EVENTS, MEMBERSHIPS),
        ),
        Job(
            "skew",
            "compares what the members of each group hold: partitions, lag and traffic",
            "Asks the cluster who has which partitions now, and adds lag and rates at the last point of f_lag. A ratio is what a "
            "member or partition has, divided by the mean: 1 is even. Run it after lag. With --follow it asks again every --step "
            "seconds.",
            writes=(MEMBER_SKEW, PARTITION_SKEW),
            function="kgctl.pipelines.jobs.skew:run",
            tables=(LAG,),
            samples="members of the groups",
        ),
        Job(
            "anomalies",
            "finds groups whose lag, commit rate or rebalances are not what is usual for them at this time",
            "Compares each bucket of 5 --step with earlier ones of the same group: of the same hour of the week, while the history is "
            "short of the same hour of the day, else of the last day. An anomaly starts and ends with three buckets in a row, so a "
            "short spike is none, and neither is one that comes every week. An anomaly also ends after a day without buckets, as when the "
            "group is deleted. Fewer commits than usual count only if the lag is above "
            "its range. A group that was never well has no other baseline: see health.",
            writes=(EXPECTED, ANOMALIES),
            function="kgctl.pipelines.jobs.anomalies:run",
            tables=(LAG, COMMIT_RATES, REBALANCES),
        ),
        Job(
            "retention",
            "measures age, size and growth of each log, and what retention will delete when",
            "Asks the cluster at which offsets each log was at certain times, and how large it is; reads no records. All topics, "
            "internal ones included, or those that match --topics. Each run adds a measurement. Bytes of a part of a log are "
            "estimated at the mean size of its records. With --follow it runs every --scan-every seconds.",
            writes=(RETENTION, LOG_AGES),
            function="kgctl.pipelines.jobs.retention:run",
            samples="offsets, sizes and configs of topics",
            is_rare=True,
            selects_topics=True,
        ),
        Job(
            "compaction",
            "measures what compacted topics hold: keys, superseded records, tombstones, what compaction would free",
            "Reads all compacted topics from the beginning, internal ones included, or those of them that match --topics; always "
            "with kgctl's source. Each run adds a measurement. Records beyond the last stable offset do not count, because "
            "compaction does not see them either. Sizes are those of the compressed log. With --follow it runs every --scan-every "
            "seconds.",
            writes=(COMPACTION, COMPACTION_KEYS),
            function="kgctl.pipelines.jobs.compaction:run",
            samples="the records of compacted topics",
            is_rare=True,
            selects_topics=True,
        ),
        Job(
            "transactions",
            "lists every transaction that ended: outcome, duration, partitions",
            "A stateful stream of __transaction_state. The topic is compacted: of the transactions before the first run, only the "
            "last one of each transactional id is left, without partitions. A cluster where no producer has used transactions "
            "has no such topic yet; the job then reads nothing.",
            writes=(TRANSACTIONS,),
            function="kgctl.pipelines.jobs.transactions:start",
            topics=(TRANSACTIONS_TOPIC,),
        ),
        Job(
            "producers",
            "measures each transactional id, and lists the partitions where an open transaction holds back readers",
            "Counts the transactions of each id, and asks the coordinators for its state. f_hold has a row for each partition "
            "whose last stable offset is below its end, of all topics or of those that match --topics: whose transaction it is, "
            "and since when. Each run adds a measurement. Needs DESCRIBE on transactional ids: one that may not be seen looks "
            "hanging.",
            writes=(PRODUCERS, HOLDS),
            function="kgctl.pipelines.jobs.producers:run",
            tables=(TRANSACTIONS,),
            samples="open transactions and last stable offsets",
            selects_topics=True,
        ),
    )
}


def in_order(names: Iterable[str]) -> list[Job]:
    """The jobs of these names, each once, in an order in which every job finds its tables written."""
    wanted = set(names)
    return [job for name, job in JOBS.items() if name in wanted]


def writer_of(table: Table) -> Job:
    return next(job for job in JOBS.values() if table in job.writes)


def upstream(job: Job) -> list[Job]:
    """The jobs that write the tables this job reads."""
    return in_order(writer_of(table).name for table in job.tables)
