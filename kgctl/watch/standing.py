"""Judges a group from one snapshot, with the times of its commits and of its unread records where they are known.

One snapshot cannot show whether a lag grows. It proves an error, a rebalance, a silent member, and that a group has no lag; with
commit times also that a group is at work, with the times of unread records that it is not. Without a proof there is no verdict.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from kgctl.model.groups import GroupDescription, PartitionLag
from kgctl.model.health import Health, Judgement
from kgctl.model.topic_partition import TopicPartition
from kgctl.watch.figures import counted, span
from kgctl.watch.health import STALLED_S, health
from kgctl.watch.tracker import GroupTracker, has_offsets

Times = Mapping[TopicPartition, int]
"""Milliseconds since 1970 by partition. Partitions with unknown times are absent."""
NO_TIMES: Times = {}


class _Waiting(NamedTuple):
    """A partition with unread records: how long ago the group committed, and when the oldest unread record was written."""

    row: PartitionLag
    commit_s: float | None
    unread_s: float | None

    @property
    def is_at_work(self) -> bool:
        return self.commit_s is not None and self.commit_s < STALLED_S

    @property
    def is_fresh(self) -> bool:
        """The record arrived a moment ago: no consumer needs to have committed since."""
        return self.unread_s is not None and self.unread_s < STALLED_S

    @property
    def is_silent(self) -> bool:
        """Records have waited for longer than STALLED_S, and no commit came in that time."""
        ages = (self.commit_s, self.unread_s)
        return all(age is not None and age >= STALLED_S for age in ages)


def standing(
    group: GroupDescription, wall_ms: int, committed_at: Times = NO_TIMES, unread_since: Times = NO_TIMES
) -> Judgement:
    """The verdict about a group as it is at `wall_ms`, ms since 1970 by our clock.

    `committed_at` has the time of the newest commit of each partition, by the coordinator's clock; `unread_since` the timestamp
    of the oldest unread record of partitions with lag. A quiet topic is not stalled: a commit may be old if no record has
    waited since. Only `doubtful` partitions need `unread_since`.
    """
    found = _by_progress(group, wall_ms, committed_at, unread_since)
    doubt = unknown_position(group) if found.health is Health.OK else None
    return found if doubt is None else Judgement(None, doubt)


def unknown_position(group: GroupDescription) -> str | None:
    """Why the offsets of a group do not show that it keeps up: one is past the end of its log, or none is committed at all."""
    for row in group.partitions:
        if row.lag is not None and row.lag < 0 and not is_left(group, row):
            return (
                f"{row.topic} {row.partition}: committed {row.current_offset}, but the log ends at {row.log_end_offset}"
            )
    nothing = all(row.current_offset is None for row in group.partitions)
    if nothing and group.members and has_offsets(group) and any(row.log_end_offset for row in group.partitions):
        return "no committed offsets, so the lag is not known"
    return None


def _by_progress(group: GroupDescription, wall_ms: int, committed_at: Times, unread_since: Times) -> Judgement:
    tracker = GroupTracker()
    if group.error is None:
        tracker.add(0.0, wall_ms, group)
    else:
        tracker.group = group
    word, reason = health(tracker)[:2]
    if group.error is not None or not has_offsets(group) or word in (Health.REBALANCING, Health.SILENT):
        return Judgement(word, reason)
    now_ms = _now_ms(group, wall_ms, committed_at)
    waiting = [_waiting(row, now_ms, committed_at, unread_since) for row in lagging(group)]
    if not waiting:
        return Judgement(word, reason)
    lag = sum(one.row.lag or 0 for one in waiting)
    if not group.members:
        return _without_members(waiting, lag, None if tracker.memberless_s == 0 else tracker.memberless_s, reason)
    if silent := [one for one in waiting if one.is_silent]:
        return _silent(silent)
    if word is Health.UNKNOWN:
        return Judgement(word, reason)
    return _at_work(waiting, lag)


def doubtful(group: GroupDescription, wall_ms: int, committed_at: Times) -> dict[TopicPartition, int]:
    """The committed offsets of partitions where the time of the oldest unread record decides: records wait, and the commit is old."""
    if group.error is not None:
        return {}
    now_ms = _now_ms(group, wall_ms, committed_at)
    found = (_waiting(row, now_ms, committed_at, NO_TIMES) for row in lagging(group))
    return {key_of(one.row): one.row.current_offset or 0 for one in found if not one.is_at_work}


def lagging(group: GroupDescription) -> Iterator[PartitionLag]:
    """The partitions with unread records that count: not those of topics that no member subscribes to any more."""
    for row in group.partitions:
        if row.lag is not None and row.lag > 0 and not is_left(group, row):
            yield row


def is_left(group: GroupDescription, row: PartitionLag) -> bool:
    """Whether this partition is of a topic that no member subscribes to any more."""
    wanted = group.subscribed if group.members else None
    return wanted is not None and row.consumer_id is None and row.topic not in wanted


def key_of(row: PartitionLag) -> TopicPartition:
    return TopicPartition(row.topic or "", row.partition or 0)


def _now_ms(group: GroupDescription, wall_ms: int, committed_at: Times) -> int:
    """Our time, or the latest time that the coordinator has reported if its clock is ahead: nothing happens in the future."""
    return max(wall_ms, group.state_since_ms or 0, *committed_at.values())


def _waiting(row: PartitionLag, now_ms: int, committed_at: Times, unread_since: Times) -> _Waiting:
    key: Any = (row.topic, row.partition)  # equal to its TopicPartition, and made faster
    commit_ms, unread_ms = committed_at.get(key), unread_since.get(key)
    return _Waiting(
        row,
        None if commit_ms is None else max(0, now_ms - commit_ms) / 1000,
        None if unread_ms is None else max(0, now_ms - unread_ms) / 1000,
    )


def _without_members(waiting: list[_Waiting], lag: int, memberless_s: float | None, reason: str) -> Judgement:
    newest_s = min((one.commit_s for one in waiting if one.commit_s is not None), default=None)
    if newest_s is not None and newest_s < STALLED_S:
        text = f"lag {lag:,}; committed {span(newest_s)} ago"
        if memberless_s is None or memberless_s > newest_s + STALLED_S:
            return Judgement(Health.OK, f"{text} by a consumer that is not a member, or by a reset")
        return Judgement(Health.LAGGING, f"no members for {span(memberless_s)}, {text}")
    if memberless_s is None and newest_s is None:
        return Judgement(None, f"no members, lag {lag:,}; since when is not known")
    if all(one.is_fresh for one in waiting):
        return Judgement(Health.LAGGING, f"no members, lag {lag:,}; the records arrived a moment ago")
    if newest_s is not None and (memberless_s is None or memberless_s >= STALLED_S):
        return Judgement(Health.STOPPED, f"{reason}, last commit {span(newest_s)} ago")
    return Judgement(Health.STOPPED if (memberless_s or 0.0) >= STALLED_S else Health.LAGGING, reason)


def _silent(silent: list[_Waiting]) -> Judgement:
    worst = max(silent, key=lambda one: one.row.lag or 0)
    row = worst.row
    owner = f"owned by {row.consumer_id}" if row.consumer_id else "owned by no member"
    text = (
        f"{row.topic} {row.partition} ({owner}): last commit {span(worst.commit_s or 0.0)} ago, lag {row.lag or 0:,}, "
        f"oldest unread record from {span(worst.unread_s or 0.0)} ago"
    )
    if len(silent) > 1:
        text += f"; {counted(len(silent) - 1, 'other partition')} likewise"
    return Judgement(Health.STALLED, text)


def _at_work(waiting: list[_Waiting], lag: int) -> Judgement:
    """Members are there and no partition is provably stalled: OK if every partition with lag is provably at work."""
    unproven = [one for one in waiting if not (one.is_at_work or one.is_fresh)]
    if not unproven:
        ages = sorted(one.commit_s for one in waiting if one.is_at_work and one.commit_s is not None)
        text = f"committed {span(ages[0])} ago" if ages else "the records arrived a moment ago"
        return Judgement(Health.OK, f"lag {lag:,}; {text}")
    oldest_s = max((one.commit_s for one in unproven if one.commit_s is not None), default=None)
    if oldest_s is None:
        return Judgement(None, f"lag {lag:,}; one snapshot does not show whether it grows")
    return Judgement(
        None, f"lag {lag:,}, last commit {span(oldest_s)} ago; whether records wait since then is not known"
    )
