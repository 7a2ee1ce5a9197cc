"""What the jobs of one run share: session, settings, topics, and how they read and write."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from kgctl.pipelines.catalog import Job, upstream
from kgctl.pipelines.jobs.checkpoints import CLUSTER, batch_id, claim, read_until
from kgctl.pipelines.jobs.first_offsets import first_offsets
from kgctl.pipelines.progress import Progress
from kgctl.pipelines.schemas.model import Table
from kgctl.pipelines.settings import RunSettings
from kgctl.pipelines.source import connector
from kgctl.pipelines.tables.manifest import Note
from kgctl.pipelines.tables.spark import Written, read_table, write_batch

DEFAULT_OFFSETS_PER_TRIGGER = 2_000_000


@dataclass(frozen=True, slots=True)
class OutTables:
    """Writes to the tables in a folder. Over Connect, what writes a batch is pickled, and a session must not be part of it."""

    out: Path
    cluster_id: str

    def write(self, table: Table, rows: DataFrame, batch: str, notes: Mapping[str, Note] | None = None) -> Written:
        """Each batch names the cluster."""
        return write_batch(rows, self.out / table.name, batch, table, notes, {CLUSTER: self.cluster_id})


@dataclass(frozen=True, slots=True)
class RunContext:
    """`topics` are the cluster's internal topics that jobs can read; `stop` is set when the user ends the run.

    `connection_options` are what a secured cluster adds to the options of a source. `after_round` is called when all batch
    jobs have run: once, or with --follow after each round.
    """

    spark: SparkSession
    settings: RunSettings
    topics: frozenset[str]
    cluster_id: str
    emit: Callable[[Progress], None]
    stop: threading.Event
    connection_options: Mapping[str, str] = field(default_factory=dict)
    after_round: Callable[[], None] = lambda: None

    def topic_of(self, job: Job) -> str:
        """The topic that a stream reads on this cluster."""
        return next((topic for topic in job.topics if topic in self.topics), job.topics[-1])

    def stream(self, job: Job) -> DataFrame:
        """The records of the job's topic, from where its checkpoint ends."""
        topics, settings = (self.topic_of(job),), self.settings
        if settings.source == "kafka":
            for name, value in connector.session_conf(topics).items():
                self.spark.conf.set(name, value)
        limit = settings.max_offsets_per_trigger or DEFAULT_OFFSETS_PER_TRIGGER
        first = first_offsets(settings.checkpoint_dir / job.name, topics[0], settings)
        options = {"maxOffsetsPerTrigger": str(limit)} | {
            **self.connection_options,
            **connector.stream_options(settings, topics, first),
        }
        return self.spark.readStream.format(settings.source).options(**options).load()

    def start(self, job: Job, frame: DataFrame, write: Callable[[DataFrame, str], object]) -> StreamingQuery:
        """Start a stream. `write` gets each batch with its id; a batch that Spark repeats has the same id again.

        It can be pickled: it uses `tables` instead of the run.
        """
        settings = self.settings
        checkpoint = settings.checkpoint_dir / job.name
        name = claim(checkpoint, job, self.cluster_id, settings)

        def write_numbered(batch: DataFrame, number: int) -> None:
            write(batch, batch_id(name, number))

        writer = (
            frame.writeStream.queryName(job.name)
            .outputMode("append")
            .option("checkpointLocation", str(checkpoint))
            .foreachBatch(write_numbered)
        )
        if settings.follow:
            return writer.trigger(processingTime=f"{round(settings.trigger_s * 1000)} milliseconds").start()
        return writer.trigger(availableNow=True).start()

    def read(self, table: Table) -> DataFrame:
        return read_table(self.spark, self.settings.table_dir(table.name), table)

    def write(self, table: Table, rows: DataFrame, batch: str, notes: Mapping[str, Note] | None = None) -> Written:
        return self.tables.write(table, rows, batch, notes)

    @property
    def tables(self) -> OutTables:
        return OutTables(self.settings.out_dir, self.cluster_id)

    def inputs_complete_until(self, job: Job) -> int | None:
        """The time, ms since 1970, until which the job's tables hold every record of their topics; None if not known.

        A result for a later time would miss records, and would never be corrected.
        """
        streams = [one for one in upstream(job) if one.is_stream]
        times = [read_until(self.settings.checkpoint_dir / one.name) for one in streams]
        return min((time for time in times if time is not None), default=None)
