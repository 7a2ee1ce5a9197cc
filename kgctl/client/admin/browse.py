"""Reads a part of a partition for people: around an offset, a time, an end of the log, or what a group has committed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from broker.light_dataclasses import dataclass, replace
from broker.protocol.messages.metadata import MetadataRequest
from broker.protocol.record_batch import Record
from kgctl.client.admin.offsets import OffsetAt, committed, list_offsets
from kgctl.client.admin.records_around import LogPart, log_parts, note_of, read_around
from kgctl.client.net.authorization import Asked
from kgctl.client.net.cluster import Cluster
from kgctl.client.net.errors import BrokerError, KgctlError, NotFound
from kgctl.client.net.steps import Steps
from kgctl.model.browsed import Gap, LogBounds
from kgctl.model.topic_partition import TopicPartition

# Large records end a page early.
MOST_BYTES = 8 << 20


@dataclass(frozen=True, slots=True)
class Where:
    """At most one of these; none is the end of the log. `time_ms` is the first record that is not older."""

    offset: int | None = None
    time_ms: int | None = None
    group: str | None = None


@dataclass(frozen=True, slots=True)
class Browsed:
    """What was read: the records that are wanted, what separates them, and what is special about the position."""

    bounds: LogBounds
    log: LogPart
    records: Sequence[Record]
    gaps: Sequence[Gap]
    note: str | None


def bounds(cluster: Cluster, key: TopicPartition, group: str | None) -> Steps[LogBounds]:
    """Raises the error of the partition. A group without a committed offset there has none."""
    (topic,) = (yield from cluster.metadata([key.topic])).topics
    count = len(topic.partitions)
    if topic.error_code:
        raise BrokerError(topic.error_code, f"topic {key.topic!r}", asked=Asked(MetadataRequest, topic=key.topic))
    if key.partition >= count:
        raise NotFound(f"Topic {key.topic!r} has no partition {key.partition}: it has {count}.")
    logs, failed = yield from log_parts(cluster, {key: 0})
    if key in failed:
        raise failed[key]
    position = None if group is None else (yield from _committed(cluster, key, group))
    return LogBounds(logs[key].start, logs[key].stable, logs[key].end, position, count)


def browse(cluster: Cluster, key: TopicPartition, where: Where, before: int, after: int) -> Steps[Browsed]:
    """Up to `before` records before the position, and `after` from it on. Raises the error of the partition."""
    found = yield from bounds(cluster, key, where.group)
    assert found.start is not None
    assert found.stable is not None
    assert found.end is not None
    position, note = found.end, None
    if where.offset is not None:
        position = where.offset
    elif where.group is not None:
        position = found.start if found.committed is None else found.committed
        if found.committed is None:
            note = f"{key}: group {where.group!r} has no committed offset; the log starts at {found.start}"
    elif where.time_ms is not None:
        at = (yield from list_offsets(cluster, {key: where.time_ms}))[key]
        if isinstance(at, KgctlError):
            raise at
        position = _within(at, found.end)
    log = LogPart(position, found.start, found.stable, found.end)
    yield from read_around(cluster, {key: log}, before, after, MOST_BYTES)
    if log.failure is not None and before and not any(offset >= position for offset in log.records):
        log = yield from _past_failure(cluster, key, log, after)
    offsets = sorted(log.records)
    later = [offset for offset in offsets if offset >= position]
    earlier = offsets[: len(offsets) - len(later)]
    chosen = [*(earlier[-before:] if before else ()), *later[:after]]
    if where.group is not None:
        note = note or note_of(key, log, later)
    elif where.offset is not None:
        note = note_of(key, log, later, "offset")
    return Browsed(found, log, [log.records[one] for one in chosen], list(_gaps(chosen, log)), note)


def _within(at: OffsetAt, end: int) -> int:
    return end if at.offset < 0 else at.offset


def _committed(cluster: Cluster, key: TopicPartition, group: str) -> Steps[int | None]:
    found = (yield from committed(cluster, [group]))[group]
    if isinstance(found, KgctlError):
        raise found
    one = found.get(key)
    return one.offset if one is not None else None


def _past_failure(cluster: Cluster, key: TopicPartition, log: LogPart, after: int) -> Steps[LogPart]:
    """The records from the position on, although one before it cannot be read; its error stays unless there is another."""
    rest = replace(log, failure=None)
    yield from read_around(cluster, {key: rest}, 0, after, MOST_BYTES)
    return replace(rest, failure=rest.failure or log.failure)


def _gaps(offsets: Sequence[int], log: LogPart) -> Iterator[Gap]:
    for first, second in pairwise(offsets):
        if second > first + 1:
            markers = sum(first < marker < second for marker in log.markers)
            yield Gap(first + 1, second - 1, markers)
