"""Lag per partition in records and in time, from samples of groups and facts about their partitions. `None` rather than a guess."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from broker.light_dataclasses import dataclass
from broker.light_named_tuples import NamedTuple
from kgctl.model.groups import GroupDescription, PartitionLag
from kgctl.model.lag import WORST_LAST, Confidence, LagFacts, LagRow, Retention
from kgctl.model.topic_partition import TopicPartition
from kgctl.watch.figures import counted
from kgctl.watch.health import CATCHING_UP
from kgctl.watch.limits import LIMITS
from kgctl.watch.rates import eta_s
from kgctl.watch.rows import is_left, key_of

# Rates measured for at least this long are sure.
LONG_S = 30.0
# The time between two commits measures a rate if it is not much longer than the samples: it may have been idle before.
_SPANS = 3
PARTITION, TOPIC, MEMBER, GROUP = "partition", "topic", "member", "group"
GROUPINGS = (PARTITION, TOPIC, MEMBER, GROUP)


@dataclass(frozen=True, slots=True)
class Sample:
    """Groups at one moment: `at_s` of a monotonic clock, `wall_ms` since 1970."""

    at_s: float
    wall_ms: int
    groups: Mapping[str, GroupDescription]


class _Rate(NamedTuple):
    per_s: float
    confidence: Confidence


class _Point(NamedTuple):
    """A partition in one sample; `commit_ms` is the time of its newest commit, if known."""

    at_s: float
    row: PartitionLag
    commit_ms: int | None


def lag_rows(samples: Sequence[Sample], facts: LagFacts) -> list[LagRow]:
    """A row for each partition of the newest sample, by group, topic and partition; a group that failed is one with its error.

    Rates need two samples or more.
    """
    rows = []
    for name in sorted(samples[-1].groups):
        group = samples[-1].groups[name]
        if group.error is not None:
            rows.append(LagRow(name, partitions=0, error=group.error))
            continue
        courses = _courses(samples, name)
        for row in sorted(group.partitions, key=lambda row: (row.topic or "", row.partition or 0)):
            rows.append(_row(courses[key_of(row)], facts, is_left=is_left(group, row)))
    return rows


def _courses(samples: Sequence[Sample], name: str) -> dict[TopicPartition, list[_Point]]:
    """Each partition of a group over the samples that know it."""
    found: dict[TopicPartition, list[_Point]] = {}
    for sample in samples:
        group = sample.groups.get(name)
        if group is None or group.error is not None:
            continue
        for row in group.partitions:
            found.setdefault(key_of(row), []).append(_Point(sample.at_s, row, group.committed_at.get(key_of(row))))
    return found


def _row(course: Sequence[_Point], facts: LagFacts, *, is_left: bool) -> LagRow:
    row = course[-1].row
    key, lag = key_of(row), row.lag
    confidence: dict[str, Confidence] = {}
    start, retention = facts.log_starts.get(key), facts.retention.get(key.topic)
    rate_in = _rate_in(course)
    rate_out = _rate_out(course, rate_in)
    eta = eta_s(lag, rate_in.per_s if rate_in else None, rate_out.per_s if rate_out else None)
    if lag is None or lag < 0:
        eta = None
    first = max(row.current_offset or 0, start or 0)
    written_ms = facts.record_times.get((key.topic, key.partition, first)) if lag is not None and lag > 0 else None
    time_lag = _time_lag(lag, written_ms, facts.wall_ms)
    span_ms = _time_lag(lag, written_ms, facts.newest.get(key, -1))
    headroom = _headroom(row, retention, written_ms, rate_in, start, facts)
    is_append = retention is not None and retention.is_append_time
    by_clock = Confidence.HIGH if is_append or lag == 0 else Confidence.MEDIUM
    for name, known, sure in (
        ("rate_in", rate_in is not None, rate_in.confidence if rate_in else by_clock),
        ("rate_out", rate_out is not None, rate_out.confidence if rate_out else by_clock),
        ("time_lag_ms", time_lag is not None, by_clock),
        ("span_ms", span_ms is not None, by_clock),
        ("eta_s", eta is not None, _eta_confidence(rate_in, rate_out) if lag else Confidence.HIGH),
        ("headroom_ms", headroom is not None, headroom[1] if headroom else by_clock),
    ):
        if known:
            confidence[name] = sure
    return LagRow(
        group=row.group,
        topic=row.topic,
        partition=row.partition,
        consumer_id=row.consumer_id,
        client_id=row.client_id,
        committed=row.current_offset,
        log_start=start,
        log_end=row.log_end_offset,
        lag=lag,
        rate_in=rate_in.per_s if rate_in else None,
        rate_out=rate_out.per_s if rate_out else None,
        time_lag_ms=time_lag,
        span_ms=span_ms,
        eta_s=eta,
        headroom_ms=headroom[0] if headroom else None,
        confidence=confidence,
        note=_note(
            row,
            start,
            retention,
            rate_in,
            rate_out,
            headroom is not None,
            is_left=is_left,
            is_reset=_has_moved_back(course),
        ),
        error=row.error,
    )


# --- rates ---


def _rate_in(course: Sequence[_Point]) -> _Rate | None:
    """Records appended per second; None with fewer than two samples, or if the log became shorter."""
    known = [(point.at_s, point.row.log_end_offset) for point in course if point.row.log_end_offset is not None]
    if len(known) < 2 or any(later[1] < before[1] for before, later in pairwise(known)):
        return None
    (from_s, from_end), (to_s, to_end) = known[0], known[-1]
    return _Rate((to_end - from_end) / (to_s - from_s), _measured(to_s - from_s)) if to_s > from_s else None


def _rate_out(course: Sequence[_Point], rate_in: _Rate | None) -> _Rate | None:
    """Records committed per second.

    Commits come every few seconds. Where their times are known, the rate is measured from commit to commit. Elsewhere it is
    measured from the first sample that shows a commit to the last one; a single commit only gives an estimate. Without a
    commit it is not known, unless there was nothing to read, or there has been no commit for a long time.
    """
    known = [point for point in course if point.row.current_offset is not None]
    if len(known) < 2 or _has_moved_back(course):
        return None
    first, last = known[0], known[-1]
    span_s = last.at_s - first.at_s
    commit_s = ((last.commit_ms or 0) - (first.commit_ms or 0)) / 1000
    if first.commit_ms is not None and last.commit_ms is not None and 0 < commit_s <= _SPANS * span_s:
        return _Rate(_committed(first, last) / commit_s, _measured(commit_s))
    changes = [later for before, later in pairwise(known) if later.row.current_offset != before.row.current_offset]
    if not changes:
        was_idle = rate_in is not None and not rate_in.per_s and last.row.lag == 0
        return _Rate(0.0, _measured(span_s)) if span_s > 0 and (was_idle or span_s >= LIMITS.stalled_s) else None
    if len(changes) > 1:
        between_s = changes[-1].at_s - changes[0].at_s
        return _Rate(_committed(changes[0], changes[-1]) / between_s, _measured(between_s))
    return _Rate(_committed(first, last) / span_s, Confidence.LOW) if span_s > 0 else None


def _committed(first: _Point, last: _Point) -> int:
    return (last.row.current_offset or 0) - (first.row.current_offset or 0)


def _has_moved_back(course: Sequence[_Point]) -> bool:
    known = [point.row.current_offset for point in course if point.row.current_offset is not None]
    return any(later < before for before, later in pairwise(known))


def _measured(seconds: float) -> Confidence:
    return Confidence.HIGH if seconds >= LONG_S else Confidence.MEDIUM


def _eta_confidence(rate_in: _Rate | None, rate_out: _Rate | None) -> Confidence:
    """That of the rates; an estimate if they hardly differ."""
    if rate_in is None or rate_out is None or rate_out.per_s < CATCHING_UP * rate_in.per_s:
        return Confidence.LOW
    return max(rate_in.confidence, rate_out.confidence, key=WORST_LAST.index)


# --- times ---


def _time_lag(lag: int | None, written_ms: int | None, until_ms: int) -> int | None:
    """The time since the oldest unread record was written; None if its timestamp is in the future or not known."""
    if lag == 0:
        return 0
    return None if written_ms is None or written_ms > until_ms else until_ms - written_ms


def _headroom(
    row: PartitionLag,
    retention: Retention | None,
    written_ms: int | None,
    rate_in: _Rate | None,
    start: int | None,
    facts: LagFacts,
) -> tuple[int, Confidence] | None:
    """When retention may delete the oldest unread record, at the earliest.

    By age, brokers delete whole segments when their newest record is too old, so never earlier than this. By size it is an
    estimate from the mean size of a record and the rate of new ones; without these, nothing is known.
    """
    if retention is None or row.lag is None or row.lag <= 0:
        return None
    by_age = by_size = None
    if retention.age_ms is not None:
        if written_ms is None:
            return None
        by_age = max(0, written_ms + retention.age_ms - facts.wall_ms)
    if retention.size_bytes is not None:
        by_size = _until_too_large(row, retention.size_bytes, rate_in, start, facts)
        if by_size is None:
            return None
    if by_size is not None and (by_age is None or by_size < by_age):
        return by_size, Confidence.LOW
    if by_age is None:
        return None
    return by_age, Confidence.HIGH if retention.is_append_time else Confidence.MEDIUM


def _until_too_large(
    row: PartitionLag, limit_bytes: int, rate_in: _Rate | None, start: int | None, facts: LagFacts
) -> int | None:
    size, end = facts.log_bytes.get(key_of(row)), row.log_end_offset
    if size is None or end is None or start is None or end <= start or rate_in is None or not rate_in.per_s:
        return None
    mean = size / (end - start)
    room = limit_bytes - mean * min(row.lag or 0, end - start)
    return max(0, round(room / (mean * rate_in.per_s) * 1000)) if mean else None


# --- notes ---


def _note(
    row: PartitionLag,
    start: int | None,
    retention: Retention | None,
    rate_in: _Rate | None,
    rate_out: _Rate | None,
    is_headroom_known: bool,
    *,
    is_left: bool,
    is_reset: bool,
) -> str | None:
    notes = []
    lag, committed = row.lag, row.current_offset
    if lag is not None and lag < 0:
        notes.append(f"the commit is {counted(-lag, 'record')} past the end of the log")
    elif committed is not None and start is not None and committed < start:
        notes.append(f"{counted(start - committed, 'unread record')} deleted")
    if is_left:
        notes.append("no member subscribes to the topic")
    if is_reset:
        notes.append("the committed offset moved back")
    if lag and lag > 0 and rate_in and rate_out and rate_out.per_s <= rate_in.per_s:
        notes.append("the lag does not shrink")
    if lag and lag > 0 and retention is not None and retention.size_bytes is not None and not is_headroom_known:
        notes.append(f"retention.bytes={retention.size_bytes} limits the log")
    return "; ".join(notes) or None


# --- sums ---


def summed(rows: Iterable[LagRow], by: str) -> list[LagRow]:
    """One row per group, per topic of a group, or per member of a group; groups that failed keep their row.

    Lags and rates are sums, times are those of the partition that is worst. A sum over partitions of which one is not known
    is not known, except the lag: its note names the number of partitions that it leaves out.
    """
    found: dict[tuple[str, str | None, str | None], list[LagRow]] = {}
    for row in rows:
        if by == PARTITION or row.topic is None:
            key: tuple[str, str | None, str | None] = (row.group, row.topic, str(row.partition))
        else:
            key = (row.group, row.topic if by == TOPIC else None, row.consumer_id if by == MEMBER else None)
        found.setdefault(key, []).append(row)
    if by == PARTITION:
        return [row for some in found.values() for row in some]
    return [some[0] if some[0].topic is None else _sum(some, by) for some in found.values()]


def _sum(rows: Sequence[LagRow], by: str) -> LagRow:
    known = [row for row in rows if row.lag is not None]
    behind = [row for row in known if row.lag]
    total = sum(max(row.lag or 0, 0) for row in known)
    values: dict[str, float | None] = {
        "rate_in": _total(row.rate_in for row in rows),
        "rate_out": _total(row.rate_out for row in rows),
        "time_lag_ms": _extreme([row.time_lag_ms for row in behind], 0),
        "span_ms": _extreme([row.span_ms for row in behind], 0),
        "eta_s": _extreme([row.eta_s for row in behind], 0),
        "headroom_ms": _extreme([row.headroom_ms for row in behind], None),
    }
    if len(known) < len(rows):
        values |= dict.fromkeys(("time_lag_ms", "span_ms", "eta_s", "headroom_ms"))
    confidence = {
        name: max((row.confidence.get(name, Confidence.HIGH) for row in rows), key=WORST_LAST.index)
        for name, value in values.items()
        if value is not None
    }
    unknown = len(rows) - len(known)
    errors = [row.error for row in rows if row.error is not None]
    return LagRow(
        group=rows[0].group,
        topic=rows[0].topic if by == TOPIC else None,
        consumer_id=rows[0].consumer_id if by == MEMBER else None,
        client_id=rows[0].client_id if by == MEMBER else None,
        partitions=len(rows),
        lag=total if known else None,
        rate_in=values["rate_in"],
        rate_out=values["rate_out"],
        time_lag_ms=_whole(values["time_lag_ms"]),
        span_ms=_whole(values["span_ms"]),
        eta_s=values["eta_s"],
        headroom_ms=_whole(values["headroom_ms"]),
        confidence=confidence,
        note=f"the lag of {counted(unknown, 'partition')} is not known" if unknown else None,
        error=errors[0] if errors else None,
    )


def _total(values: Iterator[float | None]) -> float | None:
    known = list(values)
    return None if not known or any(value is None for value in known) else sum(value or 0.0 for value in known)


def _extreme(values: Sequence[float | None], without: float | None) -> float | None:
    """The largest value; for headroom (`without` is None) the smallest. None if one is not known."""
    if any(value is None for value in values):
        return None
    found = [value for value in values if value is not None]
    if not found:
        return without
    return min(found) if without is None else max(found)


def _whole(value: float | None) -> int | None:
    return None if value is None else round(value)
