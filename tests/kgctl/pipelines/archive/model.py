"""Logs in memory, and the steps of an archive that reads them without Spark and without a cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kgctl.model.topic_partition import TopicPartition
from kgctl.pipelines.archive.files import write_files
from kgctl.pipelines.archive.join_plans import Join, all_small
from kgctl.pipelines.archive.joining import join_all
from kgctl.pipelines.archive.layout import Addition, ArchivedFile, ReadRange, partition_of
from kgctl.pipelines.archive.manifest import Commit, writing
from kgctl.pipelines.archive.planning import Log, Plan, plan_next
from tests.kgctl.pipelines.archive.making import CLUSTER, Row, facts, raw


@dataclass
class LogModel:
    """A partition's log: some offsets hold no record."""

    start: int = 0
    end: int = 0
    rows: dict[int, Row] = field(default_factory=dict)

    def append(self, row: Row, gap: int = 0) -> None:
        self.rows[self.end + gap] = Row(self.end + gap, row.key, row.value, row.timestamp_ms)
        self.end += gap + 1

    def delete_before(self, offset: int) -> None:
        self.start = max(self.start, min(offset, self.end))
        self.rows = {at: row for at, row in self.rows.items() if at >= self.start}


Logs = Mapping[TopicPartition, LogModel]


def step(folder: Path, logs: Logs, limit: int = 1000) -> Plan:
    """Archive what the next step reads, as a run does."""
    with writing(folder) as writer:
        bounds = {one: Log(log.start, log.end) for one, log in logs.items()}
        begins = {one: log.start for one, log in bounds.items()}
        plan = plan_next(writer.archive.ends(), bounds, begins if not writer.archive.commits else {}, {}, limit, 1)
        if not plan:
            return plan

        def write(staging: Path) -> list[ArchivedFile]:
            parts = (
                (one.partition, [row for at, row in logs[one.partition].rows.items() if one.start <= at < one.end])
                for one in plan.to_read
            )
            return write_files((raw(partition, rows) for partition, rows in parts), staging)

        def complete(files: Sequence[ArchivedFile]) -> Addition:
            counts = {one.partition: 0 for one in plan.ranges}
            for file in files:
                counts[partition_of(file)] += file.records
            ranges = [ReadRange(*one.partition, one.start, one.end, counts[one.partition]) for one in plan.ranges]
            names = sorted({one.topic: 0 for one in logs})
            topics = [facts(name, sum(1 for one in logs if one.topic == name)) for name in names]
            news = [topic for topic in topics if writer.archive.topics.get(topic.name) != topic]
            return Addition(CLUSTER, "read_committed", tuple(news), tuple(ranges), plan.holes)

        writer.commit(write, complete)
        return plan


def join(folder: Path, first: int = 0, last: int | None = None) -> int:
    """Join the commits of a slice, by default all, as `pipeline maintain` does. Return the number of joins."""

    def plan(commits: Sequence[Commit]) -> Join | None:
        return next(iter(all_small(commits[first:last])), None)

    with writing(folder) as writer:
        return len(list(join_all(writer, plan, 0)))
