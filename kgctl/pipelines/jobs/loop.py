"""Runs jobs in one Spark session: one after the other up to the current end of the topics, or following them."""

from __future__ import annotations

import importlib
import time
from collections.abc import Sequence
from typing import Any

from broker.protocol.offsets_topic import partition_for
from kgctl.pipelines.catalog import JOBS, Job, in_order
from kgctl.pipelines.jobs.checkpoints import is_claimed, read_until, set_read_until
from kgctl.pipelines.jobs.context import RunContext
from kgctl.pipelines.jobs.readable import Readable, readable
from kgctl.pipelines.jobs.restarts import Restarts, until_it_ends
from kgctl.pipelines.progress import Progress
from kgctl.pipelines.schemas.sources import OFFSETS_TOPIC
from kgctl.pipelines.source import connector
from kgctl.pipelines.source.lag_metrics import Offsets
from kgctl.pipelines.source.options import SPARK_CLIENT_ID
from kgctl.pipelines.source.positions import PUBLISH_S, group_of, publish
from kgctl.pipelines.spark.failures import Interrupted
from kgctl.pipelines.spark.monitoring import QueryMonitor, task_progress
from kgctl.pipelines.tables.formats import PARQUET
from kgctl.pipelines.tables.manifest import Busy
from kgctl.pipelines.tables.merge_plans import many_alike
from kgctl.pipelines.tables.merging import merge
from kgctl.pipelines.timings import Timings

_POLL_S = 0.25
# With --follow, at most this long passes between two questions about open transactions.
_MOST_S = 2.0
# How often small files are merged, and how long a merge waits for a commit or a reader.
MERGE_EVERY_S, MERGE_WAIT_S = 60.0, 1.0
Stream = tuple[Job, QueryMonitor, Restarts]


def run_jobs(run: RunContext) -> None:
    """Raises JobFailed, which names the job, or Interrupted if the user ended the run."""
    jobs = in_order(run.settings.jobs)
    if run.settings.follow:
        _follow(run, jobs)
        return
    for job in jobs:
        _check_stop(run)
        run.emit(Progress("job", job=job.name))
        with Timings(run.emit).phase("job", job.name):
            if not job.is_stream:
                _run_batch(run, job)
            elif _has_topic(run, job):
                _read_to_end(run, job)
    run.after_round()


def _read_to_end(run: RunContext, job: Job) -> None:
    """Run a stream up to where its topics end now."""
    checkpoint = run.settings.checkpoint_dir / job.name
    is_first = not is_claimed(checkpoint)
    until_ms: int | None = None
    restarts = Restarts(run, job.name)
    monitor: QueryMonitor | None = None
    while True:
        try:
            until_ms = until_ms or _readable_until(run, job)
            with Timings(run.emit).phase("query", job.name):
                monitor = _watched(run, job, monitor)
            while not monitor.query.awaitTermination(_POLL_S):
                if _report(run, monitor):
                    restarts.succeeded()
                _check_stop(run)
            break
        except Interrupted:
            if monitor is not None:
                monitor.query.stop()
            raise
        except Exception as error:  # noqa: BLE001  (raised again unless it passes by itself)
            restarts.pause_after(error)
    _report(run, monitor)
    if is_first and run.settings.source == "kafka" and run.settings.since == "earliest":
        connector.refuse_empty(run.settings.connection(SPARK_CLIENT_ID), [run.topic_of(job)], monitor.records)
    set_read_until(checkpoint, until_ms)
    run.emit(Progress("done", job=job.name, records=monitor.records))


def _readable_until(run: RunContext, job: Job) -> int:
    """The time, ms since 1970, before which a stream that begins now finds every record of its topic."""
    if run.topic_of(job) != OFFSETS_TOPIC:
        return time.time_ns() // 1_000_000
    with readable(run) as commits:
        return commits.ask()


def _run_batch(run: RunContext, job: Job) -> None:
    def work() -> int:
        with task_progress(run.spark, job.name, run.emit, run.stop):
            return int(_call(job, run))

    rows = until_it_ends(Restarts(run, job.name), work)
    run.emit(Progress("done", job=job.name, rows=rows))


def _follow(run: RunContext, jobs: Sequence[Job]) -> None:
    """Keep the streams running; whenever all are at the end of their topics and the trigger is due, run the batch jobs."""
    streams: list[Stream] = []
    try:
        for job in jobs:
            run.emit(Progress("job", job=job.name))
            if job.is_stream and _has_topic(run, job):
                restarts = Restarts(run, job.name)
                streams.append((job, _started(run, job, restarts), restarts))
        with readable(run) as commits:
            _rounds(run, jobs, streams, commits)
    finally:
        for _, monitor, _ in streams:
            monitor.query.stop()


def _rounds(run: RunContext, jobs: Sequence[Job], streams: Sequence[Stream], commits: Readable) -> None:
    """Until the user ends the run."""
    due = rare_due = 0.0
    merge_due = time.monotonic() + MERGE_EVERY_S
    while True:
        for job, monitor, restarts in streams:
            if _report(run, monitor):
                restarts.succeeded()
            failure = monitor.failure()
            if failure is not None:
                restarts.pause_after(failure)
                _started(run, job, restarts, monitor)
        _check_stop(run)
        if any(run.topic_of(job) == OFFSETS_TOPIC for job, _, _ in streams):
            commits.poll(min(_MOST_S, run.settings.trigger_s / 4))
        if time.monotonic() >= due and _have_read_all(run, streams, commits):
            is_rare_due = time.monotonic() >= rare_due
            for job in jobs:
                if not job.is_stream and (is_rare_due or not job.is_rare):
                    _run_batch(run, job)
            run.after_round()
            due = time.monotonic() + run.settings.trigger_s
            if is_rare_due:
                rare_due = time.monotonic() + run.settings.scan_every_s
        if time.monotonic() >= merge_due:
            # In this thread, so that no batch job reads files that a merge deletes.
            _merge_small(run, jobs)
            merge_due = time.monotonic() + MERGE_EVERY_S
        run.stop.wait(_POLL_S)


def _have_read_all(run: RunContext, streams: Sequence[Stream], commits: Readable) -> bool:
    """Whether it is known until when the streams have read all: what is computed from a part is never computed again."""
    if not all(monitor.is_at_end() for _, monitor, _ in streams):
        return False
    for job, monitor, _ in streams:
        until_ms = monitor.checked_ms
        if until_ms is not None and run.topic_of(job) == OFFSETS_TOPIC:
            until_ms = commits.until(until_ms)
        if until_ms is not None:
            set_read_until(run.settings.checkpoint_dir / job.name, until_ms)
    return all(read_until(run.settings.checkpoint_dir / job.name) is not None for job, _, _ in streams)


def _has_topic(run: RunContext, job: Job) -> bool:
    """Whether the cluster has a topic for the stream; without one there is nothing to read yet, which is no failure."""
    topic = run.topic_of(job)
    if topic in run.topics:
        return True
    run.emit(Progress("note", f"the cluster has no topic {topic} yet: nothing to read", job=job.name))
    run.emit(Progress("done", job=job.name, records=0))
    return False


def _merge_small(run: RunContext, jobs: Sequence[Job]) -> None:
    if run.settings.table_format != PARQUET:
        return
    for job in jobs:
        for table in job.writes:
            try:
                merge(run.settings.table_dir(table.name), table, many_alike, MERGE_WAIT_S)
            except Busy:
                # A report reads the table, or a large batch is committed: the next time will do.
                continue


def _started(run: RunContext, job: Job, restarts: Restarts, before: QueryMonitor | None = None) -> QueryMonitor:
    while True:
        try:
            return _watched(run, job, before)
        except Exception as error:  # noqa: BLE001  (raised again unless it passes by itself)
            restarts.pause_after(error)


def _watched(run: RunContext, job: Job, before: QueryMonitor | None) -> QueryMonitor:
    """Start the job's query, and watch it with the monitor of the query before."""
    query = _call(job, run)
    if before is None:
        return QueryMonitor(job.name, query)
    before.watch(query)
    return before


def _call(job: Job, run: RunContext) -> Any:
    """Run the job's function: a stream's query, or the number of rows that a batch job wrote."""
    module, _, name = job.function.partition(":")
    return getattr(importlib.import_module(module), name)(run, job)


def _report(run: RunContext, monitor: QueryMonitor) -> bool:
    """Return whether a batch has finished."""
    batches = monitor.new_progress()
    for progress in batches:
        run.emit(progress)
    moved = monitor.moved()
    if moved and not run.settings.read_only and not is_echo(moved, monitor.partitions(OFFSETS_TOPIC)):
        trouble = publish(run.settings.connection(SPARK_CLIENT_ID, PUBLISH_S), monitor.job, moved)
        if trouble:
            run.emit(Progress("note", text=trouble, job=monitor.job))
    return bool(batches)


def is_echo(moved: Offsets, partitions: int) -> bool:
    """Whether the batch may hold nothing but positions that the streams published: publishing again would never end.

    `partitions`: how many partitions of __consumer_offsets are read.
    """
    if moved.keys() != {OFFSETS_TOPIC}:
        return False
    own = {partition_for(group_of(job.name), partitions) for job in JOBS.values() if job.is_stream}
    return own.issuperset(moved[OFFSETS_TOPIC])


def _check_stop(run: RunContext) -> None:
    if run.stop.is_set():
        raise Interrupted
