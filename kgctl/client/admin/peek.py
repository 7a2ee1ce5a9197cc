"""Shows the records around the committed offsets of a group."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from broker.protocol.record_batch import Record
from kgctl.client.admin.groups import describe_groups
from kgctl.client.admin.offsets import committed
from kgctl.client.admin.records_around import LogPart, log_parts, note_of, read_around
from kgctl.client.net.cluster import Cluster
from kgctl.client.net.errors import KgctlError, NotFound
from kgctl.client.net.steps import Steps
from kgctl.model.groups import SHARE, Committed
from kgctl.model.peek import AFTER, BEFORE, NEXT, PeekedHeader, PeekRow
from kgctl.model.topic_partition import TopicPartition

T = TypeVar("T")


def peek(
    cluster: Cluster,
    group: str,
    topics: Mapping[str, tuple[int, ...] | None],
    before: int,
    after: int,
) -> Steps[list[PeekRow]]:
    """Rows for the partitions that have a committed offset: up to `before` records before it, and `after` from it on.

    `topics` chooses topics, and some of their partitions; none chooses all. Raises NotFound if nothing is committed there.
    """
    found = (yield from committed(cluster, [group]))[group]
    if isinstance(found, KgctlError):
        raise found
    offsets, what = _wanted(found, topics), "committed offset"
    if not offsets:
        (described,) = yield from describe_groups(cluster, [group], offsets=False)
        if described.type == SHARE:
            starts = (yield from committed(cluster, [group]))[group]
            what, offsets = "start offset", {} if isinstance(starts, KgctlError) else _wanted(starts, topics)
    if not offsets:
        if described.error is not None and described.error.name == NotFound.name:
            raise NotFound(described.error.message)
        where = " for these topics" if topics else ""
        raise NotFound(f"Group '{group}' has no {what}s{where}.")
    positions = {key: one.offset for key, one in offsets.items() if one.offset is not None}
    logs, failed = yield from log_parts(cluster, positions)
    failed |= {
        key: KgctlError(one.error.message if one.error else f"{key}: the offset is not known")
        for key, one in offsets.items()
        if one.offset is None
    }
    yield from read_around(cluster, logs, before, after)
    rows = []
    for key, one in offsets.items():
        if key in failed:
            rows.append(PeekRow(group, *key, one.offset, error=failed[key].as_row()))
        else:
            rows += _rows(group, key, logs[key], before, after, what)
    return rows


def _wanted(
    found: Mapping[TopicPartition, Committed], topics: Mapping[str, tuple[int, ...] | None]
) -> dict[TopicPartition, Committed]:
    return {
        key: one
        for key, one in sorted(found.items())
        if _is_wanted(key, topics) and (one.offset is not None or one.error is not None)
    }


def _is_wanted(key: TopicPartition, topics: Mapping[str, tuple[int, ...] | None]) -> bool:
    if not topics:
        return True
    numbers = topics.get(key.topic, ())
    return numbers is None or key.partition in numbers


def _rows(group: str, key: TopicPartition, log: LogPart, before: int, after: int, what: str) -> list[PeekRow]:
    offsets = sorted(log.records)
    earlier = [offset for offset in offsets if offset < log.position]
    later = [offset for offset in offsets if offset >= log.position]
    chosen = [*(_last(earlier, before)), *later[:after]]
    note = note_of(key, log, later, what)
    rows = []
    for offset in chosen:
        position = BEFORE if offset < log.position else NEXT if offset == later[0] else AFTER
        rows.append(_row(group, key, log, log.records[offset], position, note if position == NEXT else None))
    if not any(row.position == NEXT for row in rows):
        error = log.failure.as_row() if log.failure else None
        rows.append(PeekRow(group, *key, log.position, NEXT if later else None, note=note, error=error))
    elif log.failure:
        rows.append(PeekRow(group, *key, log.position, error=log.failure.as_row()))
    return rows


def _last(items: Sequence[T], count: int) -> Sequence[T]:
    return items[-count:] if count else ()


def _row(group: str, key: TopicPartition, log: LogPart, record: Record, position: str, note: str | None) -> PeekRow:
    record_key, key_base64 = _text(record.key)
    value, value_base64 = _text(record.value)
    return PeekRow(
        group,
        *key,
        log.position,
        position,
        record.offset,
        None if record.timestamp < 0 else record.timestamp,
        record_key,
        value,
        tuple(_headers(record.headers)),
        log.outcome(record.offset),
        key_base64,
        value_base64,
        note,
    )


def _headers(headers: Iterable[tuple[str, bytes | None]]) -> Iterable[PeekedHeader]:
    for name, content in headers:
        yield PeekedHeader(name, *_text(content))


def _text(content: bytes | memoryview | None) -> tuple[str | None, str | None]:
    """As text, or in base64 if it is not UTF-8."""
    if content is None:
        return None, None
    data = bytes(content)
    try:
        return data.decode(), None
    except UnicodeDecodeError:
        return None, base64.b64encode(data).decode()
