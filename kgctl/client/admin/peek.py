"""Reads the records around the committed offsets of a group, and finds out what is special about those offsets."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from broker.light_dataclasses import dataclass, field, replace
from broker.protocol.record_batch import Record
from kgctl.client.admin.groups import describe_groups
from kgctl.client.admin.offsets import EARLIEST, LATEST, OffsetAt, committed, list_offsets
from kgctl.client.consumer.fetch_steps import fetch
from kgctl.client.consumer.fetched import Damaged, Fetched
from kgctl.client.consumer.fetcher import Fetcher, FetchSettings
from kgctl.client.net.cluster import Cluster
from kgctl.client.net.errors import KgctlError, NotFound, TimedOut
from kgctl.client.net.steps import Steps
from kgctl.model.groups import Committed
from kgctl.model.peek import ABORTED, AFTER, BEFORE, COMMITTED, NEXT, OPEN, PeekedHeader, PeekRow
from kgctl.model.topic_partition import TopicPartition

T = TypeVar("T")
# How many offsets to read for each wanted record: compacted logs have gaps, so a later attempt reads more.
ATTEMPTS = (1, 20, 400)
MOST_BYTES = 64 << 20
_READ = FetchSettings(max_wait_ms=0, min_bytes=0, max_partition_bytes=1 << 18)


@dataclass(slots=True)
class _Log:
    """A partition: where the group is, where the log starts, is stable and ends, and what was read so far."""

    position: int
    start: int
    stable: int
    end: int
    records: dict[int, Record] = field(default_factory=dict)
    in_transaction: set[int] = field(default_factory=set)
    is_aborted: set[int] = field(default_factory=set)
    markers: set[int] = field(default_factory=set)
    failure: KgctlError | None = None

    def window(self, before: int, after: int, factor: int) -> tuple[int, int]:
        nearest = min(max(self.position, self.start), self.end)
        return max(self.start, nearest - before * factor), min(self.end, nearest + max(after, 1) * factor)

    def lacks(self, before: int, after: int, window: tuple[int, int]) -> bool:
        """Whether a larger window may have records that are wanted."""
        earlier = sum(offset < self.position for offset in self.records)
        later = len(self.records) - earlier
        return (earlier < before and window[0] > self.start) or (later < max(after, 1) and window[1] < self.end)


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
    offsets = {key: one for key, one in sorted(found.items()) if _is_wanted(key, topics)}
    if not offsets:
        (described,) = yield from describe_groups(cluster, [group], offsets=False)
        if described.error is not None and described.error.name == NotFound.name:
            raise NotFound(described.error.message)
        where = " for these topics" if topics else ""
        raise NotFound(f"Group '{group}' has no committed offsets{where}.")
    logs, failed = yield from _logs(cluster, offsets)
    pending = {key: log for key, log in logs.items() if log.start < log.end}
    for factor in ATTEMPTS:
        windows = {key: log.window(before, after, factor) for key, log in pending.items()}
        yield from _read(cluster, pending, windows, is_committed=False)
        yield from _read(cluster, pending, windows, is_committed=True)
        pending = {
            key: log for key, log in pending.items() if not log.failure and log.lacks(before, after, windows[key])
        }
        if not pending:
            break
    rows = []
    for key, one in offsets.items():
        if key in failed:
            rows.append(PeekRow(group, *key, one.offset, error=failed[key].as_row()))
        else:
            rows += _rows(group, key, logs[key], before, after)
    return rows


def _is_wanted(key: TopicPartition, topics: Mapping[str, tuple[int, ...] | None]) -> bool:
    if not topics:
        return True
    numbers = topics.get(key.topic, ())
    return numbers is None or key.partition in numbers


def _logs(
    cluster: Cluster, offsets: Mapping[TopicPartition, Committed]
) -> Steps[tuple[dict[TopicPartition, _Log], dict[TopicPartition, KgctlError]]]:
    starts = yield from list_offsets(cluster, dict.fromkeys(offsets, EARLIEST))
    stables = yield from list_offsets(cluster, dict.fromkeys(offsets, LATEST), committed_only=True)
    ends = yield from list_offsets(cluster, dict.fromkeys(offsets, LATEST))
    logs: dict[TopicPartition, _Log] = {}
    failed: dict[TopicPartition, KgctlError] = {}
    for key, one in offsets.items():
        start, stable, end = starts[key], stables[key], ends[key]
        if isinstance(start, OffsetAt) and isinstance(stable, OffsetAt) and isinstance(end, OffsetAt):
            if one.offset is not None:
                logs[key] = _Log(one.offset, start.offset, stable.offset, end.offset)
            else:
                failed[key] = KgctlError(one.error.message if one.error else f"{key}: the offset is not known")
        else:
            failed[key] = next(found for found in (start, stable, end) if isinstance(found, KgctlError))
    return logs, failed


def _read(
    cluster: Cluster,
    logs: Mapping[TopicPartition, _Log],
    windows: Mapping[TopicPartition, tuple[int, int]],
    *,
    is_committed: bool,
) -> Steps[None]:
    """Read the windows. As a reader of committed records, which the answer lists aborted transactions for, only those matter."""
    begins, limits = {}, {}
    for key, (begin, limit) in windows.items():
        limit = min(limit, logs[key].stable) if is_committed else limit
        if begin < limit and (not is_committed or logs[key].in_transaction):
            begins[key], limits[key] = begin, limit
    fetcher = Fetcher(replace(_READ, committed_only=is_committed))
    fetcher.assign(begins, limits)
    left_bytes = MOST_BYTES
    while begins and not fetcher.all_finished and left_bytes > 0:
        try:
            arrived = yield from fetch(cluster, fetcher)
        except TimedOut:
            raise
        except KgctlError as error:
            for key in [key for key in fetcher.positions if not fetcher.is_finished(key)]:
                logs[key].failure = error
            return
        for key in list(fetcher.out_of_range):
            # Records were deleted since the log start was asked for.
            fetcher.remove(key)
        for fetched in arrived:
            left_bytes -= len(fetched.raw)
            try:
                _take(logs[fetched.partition], fetched, is_committed)
            except Damaged as error:
                logs[fetched.partition].failure = error
                fetcher.remove(fetched.partition)


def _take(log: _Log, fetched: Fetched, is_committed: bool) -> None:
    for position, header, is_wanted in fetched.checked_batches():
        if is_committed:
            if header.is_transactional and not header.is_control and not is_wanted:
                log.is_aborted |= set(range(header.base_offset, header.next_offset))
            continue
        for record in fetched.decode(position, header):
            if record.offset < fetched.offset or (fetched.limit is not None and record.offset >= fetched.limit):
                continue
            if header.is_control:
                log.markers.add(record.offset)
            else:
                log.records[record.offset] = record
                if header.is_transactional:
                    log.in_transaction.add(record.offset)


def _rows(group: str, key: TopicPartition, log: _Log, before: int, after: int) -> list[PeekRow]:
    offsets = sorted(log.records)
    earlier = [offset for offset in offsets if offset < log.position]
    later = [offset for offset in offsets if offset >= log.position]
    chosen = [*(_last(earlier, before)), *later[:after]]
    note = _note(key, log, later)
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


def _note(key: TopicPartition, log: _Log, later: Sequence[int]) -> str | None:
    """What is special about the committed offset, in one sentence."""
    at = f"{key}: the committed offset {log.position}"
    if log.position < log.start:
        lost = log.start - log.position
        return f"{at} is out of range: the log starts at {log.start}, so {_count(lost)} can no longer be read"
    if log.position > log.end:
        return f"{at} is out of range: the log ends at {log.end}"
    if log.position == log.end:
        return f"{at} is the end of the log: everything is read"
    if log.position >= log.stable:
        return f"{at} is inside an open transaction: read_committed consumers wait at {log.stable} for its end"
    if log.failure:
        return None
    following = later[0] if later else None
    to = f"the next record is at {following}" if following is not None else "no record follows nearby"
    if log.position in log.records:
        if _outcome(log, log.position) == ABORTED:
            return f"{at} is inside an aborted transaction: read_committed consumers skip it"
        return None
    if log.position in log.markers:
        return f"{at} is the end marker of a transaction; {to}"
    return f"{at} has no record: compaction removed it; {to}"


def _count(offsets: int) -> str:
    return "1 offset" if offsets == 1 else f"{offsets} offsets"


def _outcome(log: _Log, offset: int) -> str | None:
    if offset not in log.in_transaction:
        return None
    if offset >= log.stable:
        return OPEN
    return ABORTED if offset in log.is_aborted else COMMITTED


def _row(group: str, key: TopicPartition, log: _Log, record: Record, position: str, note: str | None) -> PeekRow:
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
        _outcome(log, record.offset),
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
