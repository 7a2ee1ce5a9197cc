"""One run: jobs in turn in one Spark session, once up to what is there now, or following until it is told to stop."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from broker.protocol.offsets_topic import partition_for
from kgctl.pipelines import kafka_source
from kgctl.pipelines.catalog import EVENTS_TOPIC, OFFSETS_TOPIC, in_order
from kgctl.pipelines.jobs import decode, evaluate, lag, rebalances
from kgctl.pipelines.jobs.marker import claim, is_claimed
from kgctl.pipelines.jobs.reached import remember
from kgctl.pipelines.progress import Ends, Watch, watch_stages
from kgctl.pipelines.settings import Progress, RunSettings
from kgctl.pipelines.source.positions import group_of, publish
from kgctl.pipelines.spark.failures import Interrupted, JobFailed, reason_of

DEFAULT_OFFSETS_PER_TRIGGER = 2_000_000
LOOK_EVERY_S = 0.25

STREAMS: dict[str, Callable[[Run], StreamingQuery]] = {"decode": decode.start, "rebalances": rebalances.start}
BATCHES: dict[str, Callable[[Run], int]] = {"lag": lag.run, "evaluate": evaluate.run}


@dataclass(frozen=True, slots=True)
class Run:
    """What the jobs of one run share. `topics` are those of the cluster; `stop` is set when a person wants to end."""

    spark: SparkSession
    settings: RunSettings
    topics: frozenset[str]
    cluster_id: str
    emit: Callable[[Progress], None]
    stop: threading.Event

    @property
    def has_story(self) -> bool:
        """Whether the cluster tells what happens to its groups: only kgctl's own broker does."""
        return EVENTS_TOPIC in self.topics

    def topics_of(self, job: str) -> tuple[str, ...]:
        """What a streaming job reads of this cluster."""
        return (EVENTS_TOPIC,) if job == "rebalances" and self.has_story else (OFFSETS_TOPIC,)

    def stream(self, job: str) -> DataFrame:
        """The records of the job's topics, from where its checkpoint is."""
        topics = self.topics_of(job)
        settings = self.settings
        limit = settings.max_offsets_per_trigger or DEFAULT_OFFSETS_PER_TRIGGER
        for name, value in kafka_source.session_conf(topics).items():
            if settings.source == "kafka":
                self.spark.conf.set(name, value)
        reader = self.spark.readStream.format(settings.source)
        options = {"maxOffsetsPerTrigger": str(limit)} | kafka_source.stream_options(settings, topics)
        return reader.options(**options).load()

    def start(self, job: str, frame: DataFrame, write: Callable[[DataFrame, str], None], mode: str) -> StreamingQuery:
        """The query of a job: `write` gets each batch with an id that a repetition has again."""
        checkpoint = self.settings.checkpoint_dir / job
        name = claim(checkpoint, job, self.cluster_id, self.settings)

        def write_numbered(batch: DataFrame, number: int) -> None:
            write(batch, f"{name}-{number:06d}")

        writer = (
            frame.writeStream.queryName(job)
            .outputMode(mode)
            .option("checkpointLocation", str(checkpoint))
            .foreachBatch(write_numbered)
        )
        if self.settings.follow:
            return writer.trigger(processingTime=f"{round(self.settings.trigger_s * 1000)} milliseconds").start()
        return writer.trigger(availableNow=True).start()


def run_jobs(run: Run) -> None:
    """All jobs of the run; JobFailed names the one that could not go on, Interrupted that a person ended it."""
    names = in_order(run.settings.jobs)
    if run.settings.follow:
        _follow(run, names)
        return
    for name in names:
        _check_stop(run)
        run.emit(Progress("job", job=name))
        if name in STREAMS:
            _until_read(run, name)
        else:
            _whole(run, name)


def _until_read(run: Run, name: str) -> None:
    is_first = not is_claimed(run.settings.checkpoint_dir / name)
    began_ms = time.time_ns() // 1_000_000
    query = _started(run, name)
    watch = Watch(name, query)
    try:
        while not query.awaitTermination(LOOK_EVERY_S):
            _tell(run, watch)
            _check_stop(run)
    except Interrupted:
        query.stop()
        raise
    except Exception as error:
        raise JobFailed(name, reason_of(error)) from error
    _tell(run, watch)
    if is_first and run.settings.source == "kafka" and run.settings.since == "earliest":
        kafka_source.refuse_empty(run.settings.bootstrap, run.topics_of(name), watch.records)
    if name == "decode":
        remember(run.settings, began_ms)
    run.emit(Progress("done", job=name, records=watch.records))


def _whole(run: Run, name: str) -> None:
    try:
        with watch_stages(run.spark, name, run.emit, run.stop):
            rows = BATCHES[name](run)
    except Exception as error:
        _check_stop(run)
        raise JobFailed(name, reason_of(error)) from error
    run.emit(Progress("done", job=name, rows=rows))


def _follow(run: Run, names: Sequence[str]) -> None:
    watches = []
    for name in names:
        run.emit(Progress("job", job=name))
        if name in STREAMS:
            watches.append(Watch(name, _started(run, name)))
    try:
        due = 0.0
        while True:
            for watch in watches:
                _tell(run, watch)
                failure = watch.failure()
                if failure is not None:
                    raise JobFailed(watch.job, reason_of(failure)) from failure
            _check_stop(run)
            # A point in time that was told with only a part of its commits would never be told again.
            if time.monotonic() >= due and all(watch.is_at_head() for watch in watches):
                for watch in watches:
                    if watch.job == "decode" and watch.looked_ms is not None:
                        remember(run.settings, watch.looked_ms)
                for name in names:
                    if name in BATCHES:
                        _whole(run, name)
                due = time.monotonic() + run.settings.trigger_s
            run.stop.wait(LOOK_EVERY_S)
    finally:
        for watch in watches:
            watch.stop()


def _started(run: Run, name: str) -> StreamingQuery:
    return STREAMS[name](run)


def _tell(run: Run, watch: Watch) -> None:
    for progress in watch.news():
        run.emit(progress)
    moved = watch.moved()
    if moved and not is_echo(moved, watch.partitions(OFFSETS_TOPIC)):
        trouble = publish(run.settings.bootstrap, watch.job, moved)
        if trouble:
            run.emit(Progress("note", text=trouble, job=watch.job))


def is_echo(moved: Ends, partitions: int) -> bool:
    """Whether all that was read may be commits of what was read before, by this job or the other: it would go on for ever.

    `partitions`: how many of __consumer_offsets are read.
    """
    if moved.keys() != {OFFSETS_TOPIC}:
        return False
    return {partition_for(group_of(job), partitions) for job in STREAMS}.issuperset(moved[OFFSETS_TOPIC])


def _check_stop(run: Run) -> None:
    if run.stop.is_set():
        raise Interrupted
