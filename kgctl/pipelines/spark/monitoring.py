"""Watches running queries and jobs: records read, rate, distance to the end of the topics, tasks done."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

from kgctl.client.net.errors import KgctlError
from kgctl.pipelines.progress import Progress
from kgctl.pipelines.source.lag_metrics import Offsets, behind_latest, offsets_of
from kgctl.pipelines.timings import timing_of_batch

_POLL_S = 0.5


class QueryMonitor:
    """Reads the progress of a query and reports each batch once; Spark remembers the last 100 batches."""

    def __init__(self, job: str, query: StreamingQuery) -> None:
        self.job = job
        self.records = 0
        self._last_batch = -1
        self._published: Offsets = {}
        self._ends: Offsets = {}
        self.watch(query)

    def watch(self, query: StreamingQuery) -> None:
        """Continue with the query that the job was started again with; its batches have the next numbers."""
        self.query = query
        # When Spark last checked the topics for new records, ms since 1970.
        self.checked_ms: int | None = None
        self._last_seen: tuple[int, str] | None = None
        self._behind: int | None = None

    def new_progress(self) -> list[Progress]:
        """Progress and timing of each batch that finished since the last call."""
        # `lastProgress` takes 3 ms, `recentProgress` 300 ms.
        last = self.query.lastProgress
        seen = None if last is None else (last.batchId, last.timestamp)
        if seen == self._last_seen:
            return []
        self._last_seen = seen
        if last is not None:
            self.checked_ms = round(datetime.fromisoformat(last.timestamp).timestamp() * 1000)
        found = []
        for progress in self.query.recentProgress:
            batch: dict[str, Any] = progress if isinstance(progress, dict) else json.loads(progress.json)
            if batch["batchId"] <= self._last_batch or "addBatch" not in batch.get("durationMs", {}):
                continue
            self._last_batch = batch["batchId"]
            found.append(self._progress(batch))
            found.append(timing_of_batch(self.job, batch["batchId"], batch["durationMs"]))
        return found

    def moved(self) -> Offsets:
        """The end offsets of the last finished batch, for the partitions in which they changed since the last call."""
        before, self._published = self._published, self._ends
        found = {
            topic: {part: offset for part, offset in parts.items() if before.get(topic, {}).get(part) != offset}
            for topic, parts in self._ends.items()
        }
        return {topic: parts for topic, parts in found.items() if parts}

    def partitions(self, topic: str) -> int:
        """How many partitions of the topic are read."""
        return len(self._ends.get(topic, {}))

    def is_at_end(self) -> bool:
        """Whether the query has read everything that existed at its last check."""
        status = self.query.status
        is_idle = not status["isDataAvailable"] and status["message"].startswith("Waiting for")
        return self._behind == 0 or (is_idle and not self._behind)

    def failure(self) -> Exception | None:
        """Why the query ended; None while it runs."""
        if self.query.isActive:
            return None
        return self.query.exception() or KgctlError("the query ended, and Spark gives no reason")

    def _progress(self, batch: dict[str, Any]) -> Progress:
        # Summed here: over Connect Spark's own sums over all sources are null.
        self.records += sum(int(one["numInputRows"] or 0) for one in batch["sources"])
        rate = sum(float(one.get("processedRowsPerSecond") or 0.0) for one in batch["sources"])
        source = batch["sources"][0] if batch["sources"] else {}
        self._ends = offsets_of(source.get("endOffset")) or self._ends
        lag = behind_latest(source)
        behind = self._behind = None if lag is None else lag.total
        eta = None if behind is None or rate <= 0 else behind / rate
        return Progress(
            "progress",
            job=self.job,
            records=self.records,
            records_per_s=round(rate, 1),
            behind=behind,
            metrics=None if lag is None else lag.metrics(),
            behind_by_partition=None if lag is None else lag.waiting(),
            eta_s=eta,
            batch=self._last_batch,
        )


@contextlib.contextmanager
def task_progress(
    spark: SparkSession, job: str, emit: Callable[[Progress], None], stop: threading.Event
) -> Iterator[None]:
    """While the block runs, report how many tasks are done, and cancel all of Spark's work once `stop` is set.

    Over Connect nothing is reported: the server's tasks are not visible.
    """
    context = getattr(spark, "_sc", None)
    finished = threading.Event()

    def poll() -> None:
        tracker, last = None if context is None else context.statusTracker(), ""
        while not finished.wait(_POLL_S):
            if stop.is_set():
                _cancel_all(spark)
            if tracker is None:
                continue
            stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
            live = [stage for stage in stages if stage is not None]
            text = f"{sum(one.numCompletedTasks for one in live)} of {sum(one.numTasks for one in live)} tasks"
            if live and text != last:
                last = text
                emit(Progress("progress", text, job=job))

    thread = threading.Thread(target=poll, name="task-progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        finished.set()
        thread.join()


def _cancel_all(spark: SparkSession) -> None:
    context = getattr(spark, "_sc", None)
    if context is None:
        spark.interruptAll()
    else:
        context.cancelAllJobs()
