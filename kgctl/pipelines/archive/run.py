"""Runs `kgctl pipeline archive` in the Spark process.

The archive itself says where it ends, so there is no checkpoint beside it: each step plans ranges from the manifest and the
ends of the logs, reads exactly these with Spark, and commits files and ranges together. A step that dies leaves nothing.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

from kgctl.client.net.connector import DEFAULT_CLIENT_ID
from kgctl.client.net.errors import KgctlError
from kgctl.exit_codes import PARTLY_FAILED
from kgctl.model.topic_partition import TopicPartition
from kgctl.pipelines.archive.cluster import ArchivedCluster
from kgctl.pipelines.archive.groups import read_groups, with_older, write_groups
from kgctl.pipelines.archive.join_plans import many_alike
from kgctl.pipelines.archive.layout import (
    JOB,
    Addition,
    ArchivedFile,
    GroupsSnapshot,
    Hole,
    ReadRange,
    TopicFacts,
    partition_of,
)
from kgctl.pipelines.archive.manifest import ArchiveWriter, writing
from kgctl.pipelines.archive.planning import (
    Log,
    Plan,
    check_archive,
    check_epochs,
    check_topics,
    plan_next,
)
from kgctl.pipelines.jobs.restarts import Restarts
from kgctl.pipelines.progress import Progress
from kgctl.pipelines.settings import RunSettings
from kgctl.pipelines.source.losses import DataLoss
from kgctl.pipelines.source.ranges import OffsetRange
from kgctl.pipelines.source.secured import check_secured, secured_options
from kgctl.pipelines.spark.failures import Interrupted, JobFailed
from kgctl.pipelines.tables.errors import Busy, Damaged

READ_COMMITTED = "read_committed"
DEFAULT_OFFSETS_PER_STEP = 2_000_000
# How often in a row retention may overtake a step before the run gives up.
_MAX_OVERTAKEN = 10
# How often --follow takes a snapshot of committed offsets.
_GROUPS_EVERY_S = 30.0
# How long a run without --follow waits for a cluster that has answered before: for the restart of a broker.
_MAX_OUTAGE_S = 120.0
# How long a merge waits for processes that read the archive.
_JOIN_WAIT_S = 1.0

Emit = Callable[[Progress], None]
# Reads ranges into files in a folder. A session starts when a reader is first asked for.
Read = Callable[[Sequence[OffsetRange], Path], list[ArchivedFile]]
Reading = Callable[[], Read]
Offsets = dict[TopicPartition, int]
Logs = dict[TopicPartition, Log]


class GroupsNotArchived(KgctlError):
    """The records are archived; the committed offsets in the archive, if any, are older."""

    exit_code = PARTLY_FAILED


def run_archive(
    settings: RunSettings, emit: Emit, stop: threading.Event, reading: AbstractContextManager[Reading]
) -> None:
    """Raises KgctlError, or Interrupted if the user ended the run."""
    with (
        ArchivedCluster(
            settings.connection(DEFAULT_CLIENT_ID),
            committed_only=settings.isolation_level == READ_COMMITTED,
            stop=stop,
            max_outage_s=settings.max_outage_s if settings.follow else _MAX_OUTAGE_S,
            on_outage=lambda error: emit(Progress("note", f"waiting for the cluster: {error}", job=JOB)),
        ) as cluster,
        reading as reader,
        writing(settings.out_dir) as writer,
    ):
        check_archive(writer.archive, cluster.id(), settings.isolation_level)
        Archiving(settings, cluster, writer, reader, emit, stop).run()


@contextmanager
def session_of_its_own(
    settings: RunSettings, emit: Emit, stop: threading.Event, catch_signals: Callable[[], None]
) -> Iterator[Reading]:
    """Reads in a session that starts when there is something to read.

    `catch_signals` is called once Spark has started, which installs handlers of its own. Raises CannotHandOver, JarsMissing.
    """
    from kgctl.pipelines.archive.reading import reader
    from kgctl.pipelines.spark.connector_jars import needed_jars
    from kgctl.pipelines.spark.session import open_session

    check_secured(settings)
    jars = needed_jars(settings) if settings.source == "kafka" else ()
    with ExitStack() as stack:
        opened: list[Read] = []

        def read() -> Read:
            if not opened:
                emit(Progress("starting", "starting Spark, which takes a few seconds"))
                began = time.monotonic()
                options = stack.enter_context(secured_options(settings))
                spark = stack.enter_context(open_session(settings, app_name="kgctl archive", jars=jars))
                catch_signals()
                opened.append(reader(spark, settings, options, emit, stop))
                emit(Progress("started", f"Spark {spark.version} started in {time.monotonic() - began:.1f} s"))
            return opened[0]

        yield read


class Archiving:
    """The steps of one run."""

    def __init__(
        self,
        settings: RunSettings,
        cluster: ArchivedCluster,
        writer: ArchiveWriter,
        reading: Reading,
        emit: Emit,
        stop: threading.Event,
    ) -> None:
        self.settings, self.emit, self.stop = settings, emit, stop
        self._cluster, self._writer, self._reading = cluster, writer, reading
        self._restarts = Restarts(self, JOB)
        # Where a run without --follow ends: where the logs ended when it began. None before the first step.
        self._until: Offsets | None = None
        # Where the topics begin that are new to the archive when the run begins. None before the first step.
        self._first_begins: Offsets | None = None
        # A snapshot that is kept once the archive has reached the ends of the logs after it.
        self._groups: GroupsSnapshot | None = None
        self._groups_due = 0.0
        self._epochs: Offsets = {}
        self._records = 0
        self._overtaken = 0
        self._joins = True
        self._lost_groups: KgctlError | None = None

    def run(self) -> None:
        self.emit(Progress("job", job=JOB))
        while True:
            self._check_stop()
            try:
                has_more = self._step()
            except JobFailed as failure:
                # Nothing was committed, so the next step reads the same offsets again.
                cause = failure.__cause__
                self._restarts.pause_after(cause if isinstance(cause, Exception) else failure)
                continue
            if has_more:
                continue
            self._join_commits()
            if not self.settings.follow:
                break
            self.stop.wait(self.settings.trigger_s)
        self.emit(Progress("done", job=JOB, records=self._records))
        if self._lost_groups is not None:
            is_damaged = isinstance(self._lost_groups, Damaged)
            raise GroupsNotArchived(
                f"the records are archived, but not the committed offsets of groups: {self._lost_groups}; "
                f"{'move the file away and ' if is_damaged else ''}run again to add them"
            )

    def _step(self) -> bool:
        """Read and commit what there is, up to the limit. True if there is more to read."""
        is_first = self._until is None
        topics = self._cluster.topics(self._names())
        check_topics(self._writer.archive.topics, topics)
        # Before the ends of the logs: no group is then ahead of the archive.
        if is_first or (self.settings.follow and self._groups is None and time.monotonic() >= self._groups_due):
            self._take_groups(topics)
        logs = self._cluster.logs(_partitions(topics))
        self._check_epochs(logs)
        if self._until is None:
            self._until = self._end(logs)
        until = {} if self.settings.follow else self._until
        if not self.settings.follow:
            # A partition that is new since the first step belongs to the next run.
            logs = {one: log for one, log in logs.items() if one in until}
        limit = self.settings.max_offsets_per_trigger or DEFAULT_OFFSETS_PER_STEP
        if self._first_begins is None:
            self._note_known(topics)
            self._first_begins = self._begins(topics, logs, self.settings.since)
        # A first step that failed begins at the same offsets again.
        begins = self._begins(topics, logs, "earliest") | self._first_begins
        plan = plan_next(self._writer.archive.ends(), logs, begins, until, limit, time.time_ns() // 1_000_000)
        if plan or _news(self._writer.archive.topics, topics):
            read = self._reading() if plan.to_read else None
            began = time.monotonic()
            records = self._commit(topics, plan, logs, read)
            self._restarts.succeeded()
            behind = self._behind(logs, until)
            self._report(records, time.monotonic() - began, behind)
            if behind:
                return True
        if self._groups is not None:
            known = read_groups(self.settings.out_dir)
            if known is None or known.offsets != self._groups.offsets:
                write_groups(self.settings.out_dir, self._groups)
            self._groups = None
        return False

    def _join_commits(self) -> None:
        """Join the smallest commits, if there are many. That it fails is no reason to end a run."""
        if not self._joins:
            return
        from kgctl.pipelines.archive.joining import join_all

        try:
            for _ in join_all(self._writer, many_alike, _JOIN_WAIT_S):
                self._check_stop()
        except Busy:
            # Another process reads the archive: the next time will do.
            pass
        except (Damaged, OSError) as error:
            self._joins = False
            self.emit(Progress("note", f"small files are not merged: {error}", job=JOB))

    def _names(self) -> Sequence[str]:
        return self._cluster.all_topics() if self.settings.archives_all else self.settings.archived

    def _take_groups(self, topics: Sequence[TopicFacts]) -> None:
        self._groups_due = time.monotonic() + _GROUPS_EVERY_S
        try:
            names = {topic.name for topic in topics} | self._other_topics()
            self._groups = with_older(self._cluster.groups(names), read_groups(self.settings.out_dir), names)
        except KgctlError as error:
            self.emit(Progress("note", f"the committed offsets of groups are not archived: {error}", job=JOB))
            self._lost_groups = None if self.settings.follow else error

    def _other_topics(self) -> set[str]:
        """Topics of earlier runs that still exist. The offsets in one that was created again say nothing about the archive."""
        known = self._writer.archive.topics
        others = known.keys() - set(self._names())
        there = self._cluster.topics(sorted(others.intersection(self._cluster.all_topics()))) if others else []
        return {topic.name for topic in there if topic.id == known[topic.name].id}

    def _commit(self, topics: Sequence[TopicFacts], plan: Plan, logs: Logs, read: Read | None) -> int:
        """Return the number of records, 0 also if retention overtook the reader; then nothing was committed."""

        def complete(files: Sequence[ArchivedFile]) -> Addition:
            # A topic that was recreated while it was read has another id now.
            check_topics({topic.name: topic for topic in topics}, self._cluster.topics([one.name for one in topics]))
            return Addition(
                cluster_id=self._cluster.id(),
                isolation_level=self.settings.isolation_level,
                topics=_news(self._writer.archive.topics, topics),
                ranges=tuple(_ranges(plan, files, logs)),
                holes=plan.holes,
            )

        try:
            addition = self._writer.commit(
                lambda staging: [] if read is None else read(plan.to_read, staging), complete
            )
        except JobFailed as failure:
            self._overtaken += 1
            if failure.name != DataLoss.name or self._overtaken > _MAX_OVERTAKEN:
                raise
            # Retention deleted records between plan and read: the next plan has a hole there, or refuses the log.
            return 0
        self._overtaken = 0
        for hole in plan.holes:
            self.emit(Progress("note", hole_text(hole), job=JOB))
        return sum(one.records for one in addition.ranges)

    def _begins(self, topics: Sequence[TopicFacts], logs: Logs, since: str | int) -> Offsets:
        """Where topics begin that are new to the archive. A partition added to a known topic begins at offset 0."""
        known = self._writer.archive.topics
        new = [one for one in _partitions([t for t in topics if t.name not in known]) if one in logs]
        if since == "earliest":
            return {one: logs[one].start for one in new}
        if since == "latest":
            return {one: logs[one].end for one in new}
        assert isinstance(since, int)
        return self._cluster.at_time(new, since, logs)

    def _note_known(self, topics: Sequence[TopicFacts]) -> None:
        """Say which topics do not begin where --from says."""
        known = [topic.name for topic in topics if topic.name in self._writer.archive.topics]
        if known and self.settings.since != "earliest":
            what = f"topic {known[0]} continues" if len(known) == 1 else f"{len(known)} topics continue"
            text = f"--from is only for topics that are new to the archive; {what} where the archive ends"
            self.emit(Progress("note", text, job=JOB))

    def _end(self, logs: Logs) -> Offsets:
        if self.settings.until_ms is None:
            return {one: log.end for one, log in logs.items()}
        return self._cluster.at_time(logs, self.settings.until_ms, logs)

    def _check_epochs(self, logs: Logs) -> None:
        """Of partitions whose leader epoch is not that of the step before, or of the last commit of an earlier run."""
        last = self._writer.archive.leader_epochs
        changed = {
            one: last[one]
            for one, log in logs.items()
            if one in last and log.leader_epoch != self._epochs.get(one, last[one])
        }
        check_epochs(self._writer.archive.ends(), self._cluster.epoch_ends(changed))
        self._epochs = {one: log.leader_epoch for one, log in logs.items()}

    def _behind(self, logs: Logs, until: Offsets) -> int:
        """How many offsets are left to read."""
        ends = self._writer.archive.ends()
        wanted = {one: min(log.end, until.get(one, log.end)) for one, log in logs.items()}
        return sum(max(0, end - ends.get(one, logs[one].start)) for one, end in wanted.items())

    def _report(self, records: int, seconds: float, behind: int) -> None:
        self._records += records
        rate = records / seconds if seconds > 0 else 0.0
        self.emit(
            Progress(
                "progress",
                job=JOB,
                records=self._records,
                records_per_s=round(rate, 1),
                behind=behind,
                eta_s=behind / rate if rate else None,
                batch=self._writer.archive.next_number - 1,
            )
        )

    def _check_stop(self) -> None:
        if self.stop.is_set():
            raise Interrupted


def hole_text(hole: Hole) -> str:
    return (
        f"{partition_of(hole)}: offsets {hole.start} to {hole.end - 1} are missing: they were deleted from the log before "
        "they were archived"
    )


def _partitions(topics: Sequence[TopicFacts]) -> list[TopicPartition]:
    return [TopicPartition(topic.name, number) for topic in topics for number in range(topic.partitions)]


def _news(known: dict[str, TopicFacts], found: Sequence[TopicFacts]) -> tuple[TopicFacts, ...]:
    return tuple(topic for topic in found if known.get(topic.name) != topic)


def _ranges(plan: Plan, files: Sequence[ArchivedFile], logs: Logs) -> Iterator[ReadRange]:
    for one in plan.ranges:
        records = sum(file.records for file in files if partition_of(file) == one.partition)
        yield ReadRange(*one.partition, one.start, one.end, records, logs[one.partition].leader_epoch)
