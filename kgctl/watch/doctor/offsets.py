"""Rules about committed offsets: progress, lost records, retention, commits without a reader."""

from __future__ import annotations

from collections.abc import Iterator

from kgctl.model.groups import SHARE, PartitionLag
from kgctl.model.health import Health
from kgctl.model.lag import LagRow
from kgctl.watch.doctor.facts import GroupFacts
from kgctl.watch.figures import counted, rate, span
from kgctl.watch.progress import offset_of, offsets_of
from kgctl.watch.rows import is_left

# A partition is hot with this share of the lag or of the new records, this many times the mean, and at least so much.
HOT_SHARE, HOT_TIMES, HOT_LAG, HOT_RATE = 0.5, 3, 1_000, 10.0
# The oldest unread record is near its end with this share of the retention time left.
NEAR_SHARE = 0.2
SOON_S = 3_600.0
HOLD_S = 10.0
# Members of a cooperative assignor give up partitions, and rejoin, within this time.
SETTLED_S = 10.0
_MISSING = "UNKNOWN_TOPIC_OR_PARTITION"
_NO_PROGRESS = (Health.STOPPED, Health.STALLED)


def stopped(facts: GroupFacts) -> Iterator[str]:
    yield from _with_verdict(facts, Health.STOPPED)


def stalled(facts: GroupFacts) -> Iterator[str]:
    yield from _with_verdict(facts, Health.STALLED)


def lagging(facts: GroupFacts) -> Iterator[str]:
    yield from _with_verdict(facts, Health.LAGGING)


def never_committed(facts: GroupFacts) -> Iterator[str]:
    yield from _with_verdict(facts, Health.NEVER_COMMITTED)


def _with_verdict(facts: GroupFacts, word: Health) -> Iterator[str]:
    if facts.verdict.health is word:
        yield facts.verdict.reason


def rewound(facts: GroupFacts) -> Iterator[str]:
    """A commit that went back and has not come to where it was."""
    highest: dict[tuple[str | None, int | None], int] = {}
    for group in facts.course:
        for row in group.partitions:
            if row.current_offset is not None:
                key = (row.topic, row.partition)
                highest[key] = max(highest.get(key, 0), row.current_offset)
    for row in facts.group.partitions:
        was = highest.get((row.topic, row.partition), 0)
        if row.current_offset is not None and row.current_offset < was:
            yield f"{_name(row)} went back from {was} to {row.current_offset}"


def lost(facts: GroupFacts) -> Iterator[str]:
    for row in facts.rows:
        start, commit = row.log_start, row.committed
        if start is not None and commit is not None and commit < start and (row.lag or 0) > 0:
            yield (
                f"{_name(row)}: {offset_of(facts.group)} {commit}, but the log starts at {start}; {counted(start - commit, 'record')} lost"
            )


def past_end(facts: GroupFacts) -> Iterator[str]:
    for row in facts.rows:
        if row.lag is not None and row.lag < 0:
            yield f"{_name(row)}: {offset_of(facts.group)} {row.committed}, but the log ends at {row.log_end}"


def retention_loses(facts: GroupFacts) -> Iterator[str]:
    """Unread records that retention deletes before they are read, at the present rates."""
    for row in facts.rows:
        left_ms, retention = row.headroom_ms, facts.lag.retention.get(row.topic or "")
        if left_ms is None or is_left_row(facts, row):
            continue
        kept_ms = retention.age_ms if retention is not None else None
        if left_ms == 0:
            yield f"{_name(row)}: retention may delete {counted(row.lag or 0, 'unread record')} at any time"
        elif kept_ms is not None and row.rate_out and (row.lag or 0) / row.rate_out * 1000 > kept_ms:
            # A group that reads takes the oldest record next; the newest one waits for all others.
            wait_s = (row.lag or 0) / row.rate_out
            yield f"{_name(row)}: a new record is read after {span(wait_s)}, and kept for {span(kept_ms / 1000)}"
        elif facts.verdict.health in _NO_PROGRESS and left_ms < SOON_S * 1000:
            yield f"{_name(row)}: deleted in {span(left_ms / 1000)}, and nothing reads it"


def retention_near(facts: GroupFacts) -> Iterator[str]:
    for row in facts.rows:
        retention = facts.lag.retention.get(row.topic or "")
        if row.headroom_ms is None or retention is None or retention.age_ms is None or is_left_row(facts, row):
            continue
        if 0 < row.headroom_ms < NEAR_SHARE * retention.age_ms:
            yield (
                f"{_name(row)}: the oldest unread record is deleted in {span(row.headroom_ms / 1000)}, "
                f"of {span(retention.age_ms / 1000)} that records are kept"
            )


def hot_partition(facts: GroupFacts) -> Iterator[str]:
    """One partition with most of the lag, or of the new records."""
    rows = [row for row in facts.rows if not is_left_row(facts, row)]
    lags = {_name(row): float(max(row.lag, 0)) for row in rows if row.lag is not None}
    rates = {_name(row): row.rate_in for row in rows if row.rate_in is not None}
    for name, value, total in _hot(lags, HOT_LAG):
        yield f"{name} has {value / total:.0%} of the lag: {value:,.0f} of {total:,.0f}"
    for name, value, total in _hot(rates, HOT_RATE):
        yield f"{name} gets {value / total:.0%} of the new records: {rate(value)} of {rate(total)}"


def _hot(values: dict[str, float], least: float) -> Iterator[tuple[str, float, float]]:
    total = sum(values.values())
    for name, value in values.items():
        if value >= least and value > HOT_SHARE * total and value * len(values) >= HOT_TIMES * total:
            yield name, value, total


def left_topic(facts: GroupFacts) -> Iterator[str]:
    topics: dict[str, int] = {}
    for row in facts.group.partitions:
        if is_left(facts.group, row):
            topics[row.topic or ""] = topics.get(row.topic or "", 0) + max(row.lag or 0, 0)
    for topic, lag in sorted(topics.items()):
        rest = "; while the group has no members, they can be deleted" if facts.group.type == SHARE else ""
        yield f"{offsets_of(facts.group)} of topic {topic!r}, to which no member subscribes; lag {lag:,}{rest}"


def unused(facts: GroupFacts) -> Iterator[str]:
    yield from _with_verdict(facts, Health.UNUSED)


def missing_topic(facts: GroupFacts) -> Iterator[str]:
    topics = {row.topic or "" for row in facts.group.partitions if row.error is not None and row.error.name == _MISSING}
    for topic in sorted(topics):
        yield f"{offsets_of(facts.group)} of topic {topic!r}, which does not exist or lacks these partitions"


def unavailable(facts: GroupFacts) -> Iterator[str]:
    for row in facts.group.partitions:
        if row.error is not None and row.error.name != _MISSING:
            yield row.error.message


def unassigned(facts: GroupFacts) -> Iterator[str]:
    """A partition of a subscribed topic without an owner, although the group is Stable."""
    group = facts.group
    if not facts.consumers or group.subscribed is None or not _is_settled(facts):
        return
    owned = {key for member in group.members for key in member.owned()}
    for row in group.partitions:
        if row.topic in group.subscribed and (row.topic, row.partition) not in owned and row.error is None:
            what = "is read by no member" if group.type == SHARE else "has no owner"
            yield f"{_name(row)} {what}, lag {row.lag if row.lag is not None else '-'}"


def _is_settled(facts: GroupFacts) -> bool:
    """Between the two rebalances of a cooperative assignor, a Stable group has partitions without an owner.

    A member of a share group gets what another one had with its next heartbeat.
    """
    group = facts.group
    if group.type == SHARE:
        return all(member.current_epoch == group.group_epoch for member in group.members)
    if "cooperative" not in (facts.group.assignment_strategy or ""):
        return True
    if facts.state_s is not None:
        return facts.state_s >= SETTLED_S
    return facts.sampled_s >= SETTLED_S and all(one.state == "Stable" for one in facts.course)


def nothing_committed(facts: GroupFacts) -> Iterator[str]:
    found = [row for row in facts.rows if row.consumer_id and row.committed is None and (row.log_end or 0) > 0]
    waiting = [row for row in found if row.log_start is None or (row.log_end or 0) > row.log_start]
    has_commits = any(row.committed is not None for row in facts.rows)
    if (
        waiting
        and has_commits
        and facts.group.state == "Stable"
        and (facts.state_s is None or facts.state_s > SOON_S / 60)
    ):
        names = ", ".join(_name(row) for row in waiting[:3]) + (", ..." if len(waiting) > 3 else "")
        yield f"no committed offset in {counted(len(waiting), 'assigned partition')} with records: {names}"


def held(facts: GroupFacts) -> Iterator[str]:
    for one in facts.holds:
        age_ms = one.hold.age_ms
        if age_ms is None or age_ms < HOLD_S * 1000:
            continue
        whom = f"transactional id {one.hold.transactional_id!r}" if one.hold.transactional_id else "an unknown producer"
        yield (
            f"{one.hold.partition}: {min(one.lag, one.hold.records):,} of {counted(one.lag, 'unread record')} are behind a "
            f"transaction of {whom}, open for {span(age_ms / 1000)}"
        )


def is_left_row(facts: GroupFacts, row: LagRow) -> bool:
    wanted = facts.group.subscribed if facts.group.members else None
    return wanted is not None and row.consumer_id is None and row.topic not in wanted


def _name(row: LagRow | PartitionLag) -> str:
    return f"{row.topic}-{row.partition}"
