"""What a running query has done since one last looked, and how far its job is."""

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
from kgctl.pipelines.settings import Progress

Ends = dict[str, dict[int, int]]
LOOK_EVERY_S = 0.5


class Watch:
    """Reads a query's progress; every batch is told once, with what Spark still remembers of it (the last 100)."""

    def __init__(self, job: str, query: StreamingQuery) -> None:
        self.job = job
        self.records = 0
        self._query = query
        self._seen: tuple[int, str] | None = None
        self._told = -1
        self._behind: int | None = None
        # When Spark last looked for what is new, ms since 1970.
        self.looked_ms: int | None = None
        self._published: Ends = {}
        self._ends: Ends = {}

    def news(self) -> list[Progress]:
        # To ask for all that Spark remembers takes a third of a second, to ask for the last a hundredth of that.
        last = self._query.lastProgress
        seen = None if last is None else (last.batchId, last.timestamp)
        if seen == self._seen:
            return []
        self._seen = seen
        if last is not None:
            self.looked_ms = round(datetime.fromisoformat(last.timestamp).timestamp() * 1000)
        found = []
        for progress in self._query.recentProgress:
            told: dict[str, Any] = progress if isinstance(progress, dict) else json.loads(progress.json)
            if told["batchId"] <= self._told or "addBatch" not in told.get("durationMs", {}):
                continue
            self._told = told["batchId"]
            found.append(self._progress(told))
        return found

    def moved(self) -> Ends:
        """The offsets behind the last finished batch, of those partitions in which they have changed since the last call."""
        before, self._published = self._published, self._ends
        found = {
            topic: {part: offset for part, offset in parts.items() if before.get(topic, {}).get(part) != offset}
            for topic, parts in self._ends.items()
        }
        return {topic: parts for topic, parts in found.items() if parts}

    def partitions(self, topic: str) -> int:
        """How many partitions of the topic are read."""
        return len(self._ends.get(topic, {}))

    def is_at_head(self) -> bool:
        """Whether all that there was to read at the last look has been read."""
        status = self._query.status
        is_idle = not status["isDataAvailable"] and status["message"].startswith("Waiting for")
        return self._behind == 0 or (is_idle and not self._behind)

    def failure(self) -> BaseException | None:
        """Why the query has ended; None while it goes on."""
        if self._query.isActive:
            return None
        return self._query.exception() or KgctlError("the query has ended, and Spark does not say why")

    def stop(self) -> None:
        self._query.stop()

    def _progress(self, told: dict[str, Any]) -> Progress:
        # Not its sums over all sources: over Connect they are null.
        self.records += sum(int(one["numInputRows"] or 0) for one in told["sources"])
        rate = sum(float(one.get("processedRowsPerSecond") or 0.0) for one in told["sources"])
        source = told["sources"][0] if told["sources"] else {}
        self._ends = _offsets(source.get("endOffset")) or self._ends
        latest = _offsets(source.get("latestOffset"))
        behind = self._behind = _distance(latest, self._ends) if latest else None
        eta = None if behind is None or rate <= 0 else behind / rate
        return Progress(
            "progress",
            job=self.job,
            records=self.records,
            records_per_s=round(rate, 1),
            behind=behind,
            eta_s=eta,
            batch=self._told,
        )


def _offsets(told: Any) -> Ends:
    """Spark gives JSON as text or as objects; nothing yet is null."""
    if isinstance(told, str):
        try:
            told = json.loads(told)
        except ValueError:
            return {}
    if not isinstance(told, dict):
        return {}
    return {topic: {int(part): int(offset) for part, offset in parts.items()} for topic, parts in told.items()}


def _distance(latest: Ends, ends: Ends) -> int:
    return sum(
        max(0, offset - ends.get(topic, {}).get(part, 0))
        for topic, parts in latest.items()
        for part, offset in parts.items()
    )


@contextlib.contextmanager
def watch_stages(
    spark: SparkSession, job: str, emit: Callable[[Progress], None], stop: threading.Event
) -> Iterator[None]:
    """Tell how many tasks are done while the block runs, and let Spark drop them when `stop` is set.

    Says nothing where Spark is somewhere else (Connect).
    """
    context = getattr(spark, "_sc", None)
    over = threading.Event()

    def look() -> None:
        tracker, told = None if context is None else context.statusTracker(), ""
        while not over.wait(LOOK_EVERY_S):
            if stop.is_set():
                _cancel_all(spark)
            if tracker is None:
                continue
            stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
            live = [stage for stage in stages if stage is not None]
            text = f"{sum(one.numCompletedTasks for one in live)} of {sum(one.numTasks for one in live)} tasks"
            if live and text != told:
                told = text
                emit(Progress("progress", text, job=job))

    thread = threading.Thread(target=look, name="stages", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _cancel_all(spark: SparkSession) -> None:
    context = getattr(spark, "_sc", None)
    if context is None:
        spark.interruptAll()
    else:
        context.cancelAllJobs()
