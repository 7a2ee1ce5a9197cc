"""Decides what an archive reads next, and refuses to continue it with the records of another log. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from kgctl.client.net.errors import Precondition
from kgctl.model.topic_partition import TopicPartition
from kgctl.pipelines.archive.layout import Hole, TopicFacts
from kgctl.pipelines.archive.manifest import Archive
from kgctl.pipelines.source.ranges import OffsetRange, share

Offsets = Mapping[TopicPartition, int]


class NotTheSame(Precondition):
    """The archive is of another cluster, of a topic that was recreated, or of a log that was truncated."""


@dataclass(frozen=True, slots=True)
class Log:
    """The log of a partition: its first offset, the end for readers of this archive, and its newest leader epoch or -1."""

    start: int
    end: int
    leader_epoch: int = -1


@dataclass(frozen=True, slots=True)
class Plan:
    """What the next commit adds. Ranges may be empty: they say where a partition begins that has no records yet."""

    ranges: tuple[OffsetRange, ...] = ()
    holes: tuple[Hole, ...] = ()

    @property
    def to_read(self) -> tuple[OffsetRange, ...]:
        return tuple(one for one in self.ranges if one.size)

    def __bool__(self) -> bool:
        return bool(self.ranges or self.holes)


def check_archive(archive: Archive, cluster_id: str, isolation_level: str) -> None:
    """Raises NotTheSame."""
    if not archive.commits:
        return
    if archive.cluster_id != cluster_id:
        raise NotTheSame(
            f"the archive in {archive.folder} is of another cluster ({archive.cluster_id}, this one is {cluster_id}); "
            "give another --out"
        )
    if archive.isolation_level != isolation_level:
        raise NotTheSame(
            f"the archive in {archive.folder} was written with --isolation-level {archive.isolation_level}; "
            "continue with that level, or give another --out"
        )


def check_topics(known: Mapping[str, TopicFacts], found: Iterable[TopicFacts]) -> None:
    """Raises NotTheSame if a topic was deleted and created again: its offsets begin again, and mean other records."""
    for topic in found:
        before = known.get(topic.name)
        if before is not None and before.id and topic.id and before.id != topic.id:
            raise NotTheSame(
                f"topic {topic.name!r} was deleted and created again since it was archived (its id was {before.id} and "
                f"is {topic.id}); give another --out for the new one"
            )


def check_epochs(ends: Offsets, epoch_ends: Mapping[TopicPartition, int | None]) -> None:
    """Raises NotTheSame if a leader epoch whose records are archived now ends before them."""
    for partition, end in sorted(epoch_ends.items()):
        if end is not None and end < ends.get(partition, 0):
            raise _truncated(partition, ends[partition], end)


def plan_next(
    archived: Offsets,
    logs: Mapping[TopicPartition, Log],
    begins: Offsets,
    until: Offsets,
    limit: int,
    now_ms: int,
) -> Plan:
    """`archived`: where each partition continues; `begins`: where new ones begin, by default at offset 0.

    Read up to the ends of the logs, but at most to `until` where it names a partition, and about `limit` offsets. Raises
    NotTheSame if a log ends before the archive does.
    """
    holes, starts, wanted = [], {}, []
    for partition, log in sorted(logs.items()):
        start = archived.get(partition, begins.get(partition, 0))
        if log.end < start:
            raise _truncated(partition, start, log.end)
        if start < log.start:
            holes.append(Hole(*partition, start, log.start, now_ms))
            start = log.start
        starts[partition] = start
        end = max(start, min(log.end, until.get(partition, log.end)))
        wanted.append(OffsetRange(partition, start, end))
    ends = share(wanted, limit)
    ranges = (OffsetRange(one.partition, one.start, ends[one.partition]) for one in wanted)
    return Plan(tuple(one for one in ranges if one.size or one.partition not in archived), tuple(holes))


def _truncated(partition: TopicPartition, archived: int, end: int) -> NotTheSame:
    return NotTheSame(
        f"{partition}: offsets up to {archived - 1} are archived, but the log now ends before {end}: the cluster has lost "
        "records; give another --out to archive what it has written since"
    )
