"""Reads the records around offsets, and finds out what is special about those offsets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from broker.light_dataclasses import dataclass, field, replace
from broker.protocol.record_batch import Record
from kgctl.client.admin.log_reads import LogReads
from kgctl.client.admin.offsets import EARLIEST, LATEST, OffsetAt, list_offsets
from kgctl.client.consumer.fetched import Damaged, Fetched
from kgctl.client.consumer.fetching.options import FetchOptions
from kgctl.client.net.cluster import Cluster
from kgctl.client.net.errors import KgctlError, TimedOut
from kgctl.client.net.steps import Steps
from kgctl.model.peek import ABORTED, COMMITTED, OPEN
from kgctl.model.topic_partition import TopicPartition

# How many offsets to read for each wanted record: compacted logs have gaps, so a later attempt reads more.
ATTEMPTS = (1, 20, 400)
MOST_BYTES = 64 << 20
_READ = FetchOptions(max_wait_ms=0, min_bytes=0, max_bytes=16 << 20, max_partition_bytes=1 << 18)


@dataclass(slots=True)
class LogPart:
    """Part of a partition around a position: where the log starts, is stable and ends, and what was read so far."""

    position: int
    start: int
    stable: int
    end: int
    records: dict[int, Record] = field(default_factory=dict)
    in_transaction: set[int] = field(default_factory=set)
    is_aborted: set[int] = field(default_factory=set)
    markers: set[int] = field(default_factory=set)
    failure: KgctlError | None = None

    def outcome(self, offset: int) -> str | None:
        """How the transaction of a record ended; None for a record outside of transactions."""
        if offset not in self.in_transaction:
            return None
        if offset >= self.stable:
            return OPEN
        return ABORTED if offset in self.is_aborted else COMMITTED

    def window(self, before: int, after: int, factor: int) -> tuple[int, int]:
        nearest = min(max(self.position, self.start), self.end)
        return max(self.start, nearest - before * factor), min(self.end, nearest + max(after, 1) * factor)

    def lacks(self, before: int, after: int, window: tuple[int, int]) -> bool:
        """Whether a larger window may have records that are wanted."""
        earlier = sum(offset < self.position for offset in self.records)
        later = len(self.records) - earlier
        return (earlier < before and window[0] > self.start) or (later < max(after, 1) and window[1] < self.end)


def log_parts(
    cluster: Cluster, positions: Mapping[TopicPartition, int]
) -> Steps[tuple[dict[TopicPartition, LogPart], dict[TopicPartition, KgctlError]]]:
    """The bounds of each log, without records; and the errors of partitions whose bounds cannot be read."""
    starts = yield from list_offsets(cluster, dict.fromkeys(positions, EARLIEST))
    stables = yield from list_offsets(cluster, dict.fromkeys(positions, LATEST), committed_only=True)
    ends = yield from list_offsets(cluster, dict.fromkeys(positions, LATEST))
    logs: dict[TopicPartition, LogPart] = {}
    failed: dict[TopicPartition, KgctlError] = {}
    for key, position in positions.items():
        start, stable, end = starts[key], stables[key], ends[key]
        if isinstance(start, OffsetAt) and isinstance(stable, OffsetAt) and isinstance(end, OffsetAt):
            logs[key] = LogPart(position, start.offset, stable.offset, end.offset)
        else:
            failed[key] = next(found for found in (start, stable, end) if isinstance(found, KgctlError))
    return logs, failed


def read_around(
    cluster: Cluster,
    logs: Mapping[TopicPartition, LogPart],
    before: int,
    after: int,
    most_bytes: int = MOST_BYTES,
) -> Steps[None]:
    """Read up to `before` records before the position of each log, and `after` from it on, where the log has them."""
    pending = {key: log for key, log in logs.items() if log.start < log.end}
    for factor in ATTEMPTS:
        windows = {key: log.window(before, after, factor) for key, log in pending.items()}
        yield from _read(cluster, pending, windows, most_bytes, is_committed=False)
        yield from _read(cluster, pending, windows, most_bytes, is_committed=True)
        pending = {
            key: log for key, log in pending.items() if not log.failure and log.lacks(before, after, windows[key])
        }
        if not pending:
            break


def _read(
    cluster: Cluster,
    logs: Mapping[TopicPartition, LogPart],
    windows: Mapping[TopicPartition, tuple[int, int]],
    left_bytes: int,
    *,
    is_committed: bool,
) -> Steps[None]:
    """Read the windows. As a reader of committed records, which the answer lists aborted transactions for, only those matter."""
    begins, limits = {}, {}
    for key, (begin, limit) in windows.items():
        limit = min(limit, logs[key].stable) if is_committed else limit
        if begin < limit and (not is_committed or logs[key].in_transaction):
            begins[key], limits[key] = begin, limit
    reads = LogReads(cluster, replace(_READ, committed_only=is_committed), begins, limits)
    while begins and not reads.all_finished and left_bytes > 0:
        try:
            arrived = yield from reads.fetch()
        except TimedOut:
            raise
        except KgctlError as error:
            for key in [key for key in reads.positions if not reads.is_finished(key)]:
                logs[key].failure = error
            return
        for key in list(reads.out_of_range):
            # Records were deleted since the log start was asked for.
            reads.remove(key)
        for fetched in arrived:
            left_bytes -= len(fetched.raw)
            try:
                _take(logs[fetched.partition], fetched, is_committed)
            except Damaged as error:
                logs[fetched.partition].failure = error
                reads.remove(fetched.partition)


def _take(log: LogPart, fetched: Fetched, is_committed: bool) -> None:
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


def note_of(key: TopicPartition, log: LogPart, later: Sequence[int], what: str = "committed offset") -> str | None:
    """What is special about the position, in one sentence; `what` names the position."""
    at = f"{key}: the {what} {log.position}"
    if log.position < log.start:
        lost = log.start - log.position
        return f"{at} is out of range: the log starts at {log.start}, so {_count(lost)} can no longer be read"
    if log.position > log.end:
        return f"{at} is out of range: the log ends at {log.end}"
    if log.position == log.end:
        return f"{at} is the end of the log: everything is read"
    if log.position >= log.stable:
        return f"{at} is inside an open transaction: read_committed consumers wait at {log.stable} for its end"
    if log.failure is not None:
        return None
    following = later[0] if later else None
    to = f"the next record is at {following}" if following is not None else "no record follows nearby"
    if log.position in log.records:
        if log.outcome(log.position) == ABORTED:
            return f"{at} is inside an aborted transaction: read_committed consumers skip it"
        return None
    if log.position in log.markers:
        return f"{at} is the end marker of a transaction; {to}"
    return f"{at} has no record: compaction removed it; {to}"


def _count(offsets: int) -> str:
    return "1 offset" if offsets == 1 else f"{offsets} offsets"
