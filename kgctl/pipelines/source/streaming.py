"""The stream reader: plans micro-batches on the driver and ranges for the tasks. All state is in Spark's checkpoint."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)

from kgctl.client.admin.offsets import EARLIEST, LATEST
from kgctl.model.topic_partition import TopicPartition
from kgctl.pipelines.source import losses
from kgctl.pipelines.source.log_ends import LogEnds, check_found, within
from kgctl.pipelines.source.options import ReadOptions
from kgctl.pipelines.source.planning import (
    Offsets,
    check_stream_options,
    log_ends_of,
    next_end,
    plan_micro_batch,
    to_tasks,
)
from kgctl.pipelines.source.ranges import from_json, to_json
from kgctl.pipelines.source.tasks import TaskPartition, read_task
from kgctl.pipelines.source.trigger_delay import TriggerDelay

Json = dict[str, dict[str, int]]


class KgctlStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads new partitions, and new topics that match the pattern, from their beginning."""

    def __init__(self, options: ReadOptions) -> None:
        check_stream_options(options)
        self._options = options
        self._log_ends: LogEnds | None = None
        # For availableNow: where the logs ended when the query started.
        self._target: Offsets | None = None
        self._latest: Offsets | None = None
        self._delay: TriggerDelay | None = None
        if options.min_offsets_per_trigger is not None:
            self._delay = TriggerDelay(options.min_offsets_per_trigger, options.max_trigger_delay_s)

    def __getstate__(self) -> dict[str, Any]:
        """Tasks get a copy without the connections."""
        return self.__dict__ | {"_log_ends": None}

    def initialOffset(self) -> Json:
        options, log_ends = self._options, self._open()
        found = log_ends.find(options.selection)
        if options.selection.pattern is None:
            check_found(found, options.selection)
        bounds = log_ends.bounds(found.partitions)
        starting = LATEST if options.starting is None else options.starting
        offsets = log_ends.resolve(starting, bounds, "startingOffsets")
        return to_json(within(offsets, bounds, fail_on_data_loss=options.fail_on_data_loss))

    def getDefaultReadLimit(self) -> ReadLimit:
        most, least = self._options.max_offsets_per_trigger, self._options.min_offsets_per_trigger
        if most is not None:
            return ReadMaxRows(most)
        return ReadAllAvailable() if least is None else ReadMinRows(least)

    def latestOffset(self, start: Json, limit: ReadLimit) -> Json:
        self._latest = self._ends()
        fail, reached = self._options.fail_on_data_loss, from_json(start or {})
        ends = self._open().not_before(reached, self._latest if self._target is None else self._target)
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        # A run up to a fixed end must reach it, even if fewer records than the minimum are left.
        can_wait = self._target is None and not isinstance(limit, ReadAllAvailable)
        if self._delay is not None and can_wait and not self._delay.is_over(reached, ends, time.monotonic()):
            return start
        return to_json(next_end(reached, ends, self._beginnings, most, fail_on_data_loss=fail))

    def reportLatestOffset(self) -> Json | None:
        return None if self._latest is None else to_json(self._latest)

    def prepareForTriggerAvailableNow(self) -> None:
        self._target = self._ends()

    def partitions(self, start: Json, end: Json) -> Sequence[InputPartition]:
        fail = self._options.fail_on_data_loss
        ranges = plan_micro_batch(from_json(start or {}), from_json(end), self._beginnings, fail_on_data_loss=fail)
        return [TaskPartition(task) for task in to_tasks(ranges, self._options)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_task(partition.task) if isinstance(partition, TaskPartition) else iter(())

    def commit(self, end: Json) -> None:
        """Nothing to do: only the checkpoint counts, and Spark may skip this call after the last batch."""

    def stop(self) -> None:
        if self._log_ends is not None:
            self._log_ends.close()
            self._log_ends = None

    def _ends(self) -> Offsets:
        options, log_ends = self._options, self._open()
        found = log_ends.find(options.selection)
        if found.missing and options.fail_on_data_loss:
            raise losses.DataLoss(f"{found.missing[0]} no longer exists: {losses.ADVICE}")
        return log_ends.at(dict.fromkeys(found.partitions, LATEST))

    def _beginnings(self, partitions: Sequence[TopicPartition]) -> Offsets:
        return self._open().at(dict.fromkeys(partitions, EARLIEST))

    def _open(self) -> LogEnds:
        if self._log_ends is None:
            self._log_ends = log_ends_of(self._options)
        return self._log_ends
