"""What an archive holds, as values, and where it is on disk. Imports neither Spark nor pyarrow.

DIR/records/topic=T/date=D/<batch>-<n>.parquet  the records; a file holds records of one partition, in offset order.
                                                D is the UTC day of their timestamps. merged-<n>-<n>.parquet: of several commits
DIR/records/_manifest/<batch>.json              a commit: files, offset ranges that were read, holes, facts of the topics
DIR/records/_manifest/.fold.json                commits since the newest merge and before, several joined into one
DIR/groups.json                                 the newest snapshot of committed offsets
DIR/_staging                                    files being written, and the lock of the run that writes

Records of aborted transactions, control records and what compaction removed leave offsets without a record inside a range
that was read. They are gaps, not losses.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Self

from kgctl.model.groups import CLASSIC
from kgctl.model.topic_partition import TopicPartition

# 2: a commit may stand for several that were joined.
FORMAT = 2
# The name of the work, in progress and errors.
JOB = "archive"
RECORDS, GROUPS_FILE = "records", "groups.json"
# Hive's name for null: the day of a record without a timestamp, or with one after the year 9999.
NO_DATE = "__HIVE_DEFAULT_PARTITION__"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
DAY_MS = 86_400_000
_LAST_DAY = (datetime(9999, 12, 31, tzinfo=UTC) - _EPOCH).days


@dataclass(frozen=True, slots=True)
class TopicFacts:
    """What it takes to create the topic again. `configs` are those set on the topic; `id` is a UUID, "" if there is none."""

    name: str
    id: str
    partitions: int
    replication_factor: int
    configs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ReadRange:
    """All offsets from `start` up to, but not including, `end` were read; `records` of them hold a record.

    `leader_epoch` is the newest of the partition before the range was read, -1 if the cluster gives none.
    """

    topic: str
    partition: int
    start: int
    end: int
    records: int
    leader_epoch: int = -1

    @property
    def gaps(self) -> int:
        """Offsets without a record."""
        return self.end - self.start - self.records


@dataclass(frozen=True, slots=True)
class ArchivedFile:
    """A Parquet file with records of one partition in offset order.

    `path` is relative to the archive; `size` in bytes; timestamps in ms since 1970, those of the records.
    """

    path: str
    topic: str
    partition: int
    first_offset: int
    last_offset: int
    records: int
    size: int
    sha256: str
    min_timestamp_ms: int
    max_timestamp_ms: int


@dataclass(frozen=True, slots=True)
class Hole:
    """Offsets that were gone before they were read: retention deleted them. `noticed_ms` is since 1970."""

    topic: str
    partition: int
    start: int
    end: int
    noticed_ms: int


@dataclass(frozen=True, slots=True)
class GroupOffset:
    """A committed offset. `leader_epoch` is -1 and `metadata` "" if there is none.

    `timestamp_ms` is that of the first record at or after the offset, `log_start` and `log_end` are those of the partition
    at that time. Each is None if it is not known; there was no such record if `offset` is `log_end`. `type` is Classic, Consumer,
    Share or Streams; for a share group the offset is where it begins to read.
    """

    group: str
    topic: str
    partition: int
    offset: int
    leader_epoch: int
    metadata: str
    timestamp_ms: int | None
    log_start: int | None
    log_end: int | None
    type: str = CLASSIC


@dataclass(frozen=True, slots=True)
class GroupsSnapshot:
    """The committed offsets of all groups for the archived topics at `taken_ms`, which is since 1970."""

    taken_ms: int
    offsets: tuple[GroupOffset, ...] = ()


@dataclass(frozen=True, slots=True)
class Addition:
    """What one commit adds to an archive. Paths of files are relative to the staging folder until the commit.

    `topics` has only those that are new or have changed.
    """

    cluster_id: str
    isolation_level: str
    topics: tuple[TopicFacts, ...] = ()
    ranges: tuple[ReadRange, ...] = ()
    holes: tuple[Hole, ...] = ()
    files: tuple[ArchivedFile, ...] = ()

    @property
    def steps(self) -> tuple[ReadRange | Hole, ...]:
        """Ranges and holes, which together continue each partition without a break."""
        return tuple(sorted((*self.ranges, *self.holes), key=lambda one: (one.topic, one.partition, one.start)))

    @property
    def records(self) -> int:
        return sum(one.records for one in self.ranges)

    def to_json(self) -> dict[str, Any]:
        return {"format": 1, **asdict(self)}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Self:
        """Raises ValueError, KeyError or TypeError if it is something else."""
        if content["format"] > FORMAT:
            raise ValueError(f"format {content['format']}, written by a newer kgctl; this one reads format {FORMAT}")
        return cls(
            cluster_id=content["cluster_id"],
            isolation_level=content["isolation_level"],
            topics=tuple(TopicFacts(**one) for one in content["topics"]),
            ranges=tuple(ReadRange(**one) for one in content["ranges"]),
            holes=tuple(Hole(**one) for one in content["holes"]),
            files=tuple(ArchivedFile(**one) for one in content["files"]),
        )


def date_of(day: int) -> str:
    """The name of the `date=` folder of a day since 1970."""
    return (_EPOCH + timedelta(days=day)).date().isoformat() if 0 <= day <= _LAST_DAY else NO_DATE


def day_of(timestamp_ms: int) -> int:
    return timestamp_ms // DAY_MS


def folder_of(topic: str, day: int) -> str:
    """Relative to DIR/records."""
    return f"topic={topic}/date={date_of(day)}"


def partition_of(one: ReadRange | ArchivedFile | Hole | GroupOffset) -> TopicPartition:
    return TopicPartition(one.topic, one.partition)


def records_folder(archive: Path) -> Path:
    return archive / RECORDS
