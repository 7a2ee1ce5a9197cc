"""Judges the health of a group: one word of model.health and one sentence with figures.

Facts raise an alarm from a single snapshot: an error, a state, the age of a heartbeat, the times of commits and of unread
records. All else needs snapshots over some time (see `Limits`); until then there is no verdict, and the judgement says how
much time is missing. Ages count by the cluster's clock, and an alarm counts only what is proven of them.
"""

from __future__ import annotations

from collections.abc import Mapping

from kgctl.model.groups import CONSUMER, EMPTY_STATES, REBALANCING, SHARE, PartitionLag
from kgctl.model.health import Evidence, Health, Judgement
from kgctl.model.topic_partition import TopicPartition
from kgctl.watch.figures import counted, rate, span
from kgctl.watch.progress import has_offsets, is_unstarted, last_moved, offset_of, offsets_of, still_for
from kgctl.watch.rates import eta_s
from kgctl.watch.recency import leaves_old_records, unread_for_at_most_s
from kgctl.watch.rows import is_left, key_of, lagging
from kgctl.watch.silence import (
    holder_of,
    is_silent,
    rebalancing,
    rebalancing_briefly,
    silent_briefly,
    silent_members,
)
from kgctl.watch.tracker import GroupTracker

# A group that consumes this many times as fast as records arrive is catching up.
CATCHING_UP = 1.1
# A lag at a limit is sometimes above and sometimes below it: what made a group LAGGING lasts until it is below this share of its limit.
GROWTH_ENDS, BEHIND_ENDS = 0.5, 0.8

Times = Mapping[TopicPartition, int]
"""Milliseconds since 1970 by partition. Partitions with unknown times are absent."""
NO_TIMES: Times = {}


def health(tracker: GroupTracker, unread_since: Times = NO_TIMES) -> Judgement:
    """The judgement about a group after its snapshots so far. While evidence is missing, the reason says how much.

    `unread_since` has the timestamp of the oldest unread record of partitions with lag, where it is known.
    """
    found = judge(tracker, unread_since)
    if found.health is not None or found.evidence is None:
        return found
    seen_s, needed_s = found.evidence
    progress = f"judging {seen_s:.0f}/{needed_s:.0f} s"
    return found._replace(reason=f"{progress}: {found.reason}", brief=progress)


def judge(tracker: GroupTracker, unread_since: Times) -> Judgement:
    """As `health`, with the reason alone. What people must act on first takes precedence."""
    group = tracker.group
    if group is None:
        return Judgement(Health.UNKNOWN, "no snapshot yet")
    if group.error is not None:
        return Judgement(Health.UNKNOWN, group.error.message, brief=group.error.name)
    if group.type == CONSUMER and group.state in REBALANCING and _stalled(tracker, unread_since) is not None:
        # The members of a consumer group read on while it reconciles.
        found = _with_members(tracker, unread_since)
    elif group.state in REBALANCING:
        found = Judgement(Health.REBALANCING, rebalancing(tracker), brief=rebalancing_briefly(group))
    elif any(map(is_silent, group.members)):
        found = Judgement(Health.SILENT, silent_members(group.members), brief=silent_briefly(group.members))
    elif group.members:
        found = _with_members(tracker, unread_since)
    else:
        found = _without_members(tracker, unread_since)
    if found.health in (None, Health.OK) and (doubt := _past_end(tracker)) is not None:
        found = Judgement(None, doubt, brief=f"{'an offset' if group.type == SHARE else 'a commit'} past the log end")
    return found._replace(uncommitted_records=tracker.uncommitted or None)


# --- groups with members ---


def _with_members(tracker: GroupTracker, unread_since: Times) -> Judgement:
    group = tracker.group
    assert group is not None
    if not has_offsets(group):
        none = (
            "it has no start offsets"
            if group.type == SHARE
            else f"groups of type {group.type} have no committed offsets"
        )
        return Judgement(None, f"{none}, so the lag is not known", brief="the lag is not known")
    if is_unstarted(group):
        return Judgement(None, "no member has fetched yet, so there is no start offset", brief="no start offset yet")
    if (stalled := _stalled(tracker, unread_since)) is not None:
        return stalled
    if tracker.uncommitted and not tracker.has_commits:
        return _uncommitted(tracker)
    if tracker.failed is not None and tracker.failed.error is not None:
        row, error = tracker.failed, tracker.failed.error
        text = f"{row.topic} {row.partition}: {error.message}"
        return Judgement(Health.UNKNOWN, text, brief=f"{row.topic} {row.partition}: {error.name}")
    if tracker.rewound:
        return _rewound(tracker)
    if tracker.lag:
        return _by_throughput(tracker, tracker.lag, unread_since)
    text = "nothing to read so far" if tracker.lag is None else "no lag"
    return Judgement(Health.OK, text + _left_over(tracker))


def _stalled(tracker: GroupTracker, unread_since: Times) -> Judgement | None:
    """Partitions whose commit did not move in the snapshots, or whose records have provably waited for a commit."""
    group = tracker.group
    assert group is not None
    found: list[tuple[int, PartitionLag, float, float | None]] = []
    for row in lagging(group):
        key = key_of(row)
        since_s, commit_ms, unread_ms = (
            tracker.stalled_since.get(key),
            group.committed_at.get(key),
            unread_since.get(key),
        )
        still_s = 0.0 if since_s is None else tracker.at_s - since_s
        commit_s = None if commit_ms is None else tracker.age_s(commit_ms)
        unread_s = None if unread_ms is None else tracker.age_s(unread_ms)
        if commit_s is not None and unread_s is not None and min(commit_s, unread_s) >= tracker.limits.stalled_s:
            found.append((row.lag or 0, row, commit_s, unread_s))
        elif commit_s is not None and commit_s >= tracker.limits.stalled_s and leaves_old_records(tracker, row):
            found.append((row.lag or 0, row, commit_s, None))
        elif still_s >= tracker.limits.stalled_s:
            found.append((row.lag or 0, row, max(still_s, commit_s or 0.0), None))
    if not found:
        return None
    lag, row, commit_s, unread_s = max(found, key=lambda one: one[0])
    text = f"{row.topic} {row.partition} ({holder_of(group, row)}): {still_for(group, commit_s)}, lag {lag:,}"
    if unread_s is not None:
        text += f", oldest unread record from {span(unread_s)} ago"
    if len(found) > 1:
        text += f"; {counted(len(found) - 1, 'other partition')} likewise"
    return Judgement(Health.STALLED, text, brief=f"{still_for(group, commit_s)} on {row.topic} {row.partition}")


def _uncommitted(tracker: GroupTracker) -> Judgement:
    """No commit at all, although members own partitions with records: a fault once a consumer would have committed."""
    group = tracker.group
    assert group is not None
    observed_s = 0.0 if tracker.uncommitted_at_s is None else tracker.at_s - tracker.uncommitted_at_s
    waited_s = max(map(tracker.age_s, group.unread_since.values()), default=0.0)
    seen_s = max(observed_s, min(tracker.proven_state_s, waited_s))
    text = f"no commit at all, up to {counted(tracker.uncommitted, 'unread record')} from the start of the log"
    if seen_s < tracker.limits.stalled_s:
        return Judgement(None, text, Evidence(seen_s, tracker.limits.stalled_s))
    text += f"; Stable for {span(max(seen_s, tracker.proven_state_s))}"
    return Judgement(Health.NEVER_COMMITTED, text, brief="no commit at all")


def _rewound(tracker: GroupTracker) -> Judgement:
    key, one = max(tracker.rewound.items(), key=lambda found: found[1].highest - found[1].offset)
    text = f"{key.topic} {key.partition} went back from {one.highest:,} to {one.offset:,} {span(tracker.at_s - one.at_s)} ago"
    if len(tracker.rewound) > 1:
        text += f"; {counted(len(tracker.rewound) - 1, 'other partition')} likewise"
    return Judgement(Health.REWOUND, text, brief=f"{key.topic} {key.partition} back to {one.offset:,}")


def _by_throughput(tracker: GroupTracker, lag: int, unread_since: Times) -> Judgement:
    """Growth of the lag shows in snapshots over some time with a commit; before, a lag that is young in time is fine."""
    throughput = tracker.throughput
    rate_in, rate_out, span_s = throughput.rate_in, throughput.rate_out, throughput.span_s
    observed_s, limits = tracker.at_s - tracker.first_at_s, tracker.limits
    has_moved = _within(tracker, tracker.moved_at_s) or _within(tracker, tracker.caught_up_at_s)
    is_measured = rate_in is not None and span_s >= limits.growth_span_s and has_moved
    if is_measured and rate_in is not None and rate_out:
        found = _measured(tracker, lag, rate_in, rate_out)
        tracker.measured = found.health
        return found
    # Between two commits nothing is read. If that lasts, the group is STALLED.
    between = _as_before(tracker, lag) if is_measured else None
    if between is not None and between.health is not Health.OK:
        return between
    if (young := _young(tracker, unread_since)) is not None:
        return Judgement(Health.OK, f"lag {lag:,}; {young}")
    if between is not None:
        return between
    if (has_moved and not is_measured) or observed_s < limits.growth_span_s:
        seen_s, needed_s = min(span_s, limits.growth_span_s), limits.growth_span_s
    else:
        seen_s, needed_s = min(observed_s, limits.stalled_s), limits.stalled_s
    text = f"lag {lag:,}, whether it grows is not known yet"
    if tracker.group is not None and (commit_s := _last_commit_s(tracker)) is not None:
        text = f"lag {lag:,}, {last_moved(tracker.group, commit_s)}; whether it grows is not known yet"
    return Judgement(None, text, Evidence(seen_s, needed_s))


def _as_before(tracker: GroupTracker, lag: int) -> Judgement | None:
    """The verdict that rates have shown last; None if they have shown none since the group had no lag."""
    group, commit_s = tracker.group, _last_commit_s(tracker)
    if group is None or tracker.measured is None or commit_s is None:
        return None
    still = still_for(group, commit_s)
    return Judgement(tracker.measured, f"lag {lag:,}, {still}, {tracker.measured} before", brief=still)


def _within(tracker: GroupTracker, at_s: float | None) -> bool:
    return at_s is not None and tracker.at_s - at_s < tracker.limits.stalled_s


def _measured(tracker: GroupTracker, lag: int, rate_in: float, rate_out: float) -> Judgement:
    throughput, limits = tracker.throughput, tracker.limits
    text = f"{rate(rate_in)} in, {rate(rate_out)} out"
    if rate_in:
        surplus = throughput.records_in - throughput.records_out
        growth_s = limits.growth_s * (GROWTH_ENDS if tracker.is_growing else 1.0)
        behind_s = limits.behind_s * (BEHIND_ENDS if tracker.is_behind else 1.0)
        tracker.is_growing = surplus > growth_s * rate_in and throughput.is_lag_rising()
        tracker.is_behind = lag > behind_s * rate_in and rate_out < CATCHING_UP * rate_in
        if tracker.is_growing:
            grows = f"grows by {rate(rate_in - rate_out)}"
            return Judgement(Health.LAGGING, f"lag {lag:,} {grows}: {text}", brief=grows)
        if tracker.is_behind:
            behind = f"equals {span(lag / rate_in)} of records and does not shrink"
            return Judgement(Health.LAGGING, f"lag {lag:,} {behind}: {text}", brief="does not shrink")
    left_s = eta_s(lag, rate_in, rate_out)
    if left_s is not None and rate_out > CATCHING_UP * rate_in:
        return Judgement(Health.OK, f"lag {lag:,} shrinks, {span(left_s)} left: {text}")
    return Judgement(Health.OK, f"lag {lag:,}: {text}")


def _young(tracker: GroupTracker, unread_since: Times) -> str | None:
    """Why no record has waited for long: the group had no lag a moment ago, or the oldest unread records are new."""
    if _within(tracker, tracker.caught_up_at_s):
        return f"no lag {span(tracker.at_s - (tracker.caught_up_at_s or 0.0))} ago"
    group = tracker.group
    assert group is not None
    ages = [unread_since.get(key_of(row)) for row in lagging(group)]
    known = [tracker.apparent_age_s(at_ms) for at_ms in ages if at_ms is not None]
    behind_s = tracker.limits.behind_s
    if max(known, default=0.0) >= behind_s:
        return None
    if known and len(known) == len(ages):
        return f"the oldest unread record is from {span(max(known))} ago"
    least_s = unread_for_at_most_s(tracker, behind_s)
    return None if least_s is None else f"no unread record is older than {span(least_s)}"


def _last_commit_s(tracker: GroupTracker) -> float | None:
    newest_ms = None if tracker.group is None else tracker.group.last_commit_ms
    if newest_ms is not None:
        return tracker.apparent_age_s(newest_ms)
    return None if tracker.moved_at_s is None else tracker.at_s - tracker.moved_at_s


# --- groups without members ---


def _without_members(tracker: GroupTracker, unread_since: Times) -> Judgement:
    group = tracker.group
    assert group is not None
    lag = tracker.lag or 0
    unused_s = _unused_s(tracker)
    if group.state in EMPTY_STATES and unused_s is not None and unused_s >= tracker.limits.unused_s:
        text = f"no members and no commits for {span(unused_s)}"
        brief = f"no commits for {span(unused_s)}"
        if group.type == SHARE:
            text = brief = f"no members for {span(unused_s)}"
        return Judgement(Health.UNUSED, f"{text}, lag {lag:,}" if lag else text, brief=brief)
    if tracker.uncommitted:
        return _left_uncommitted(tracker)
    if not group.partitions:
        text = f"no members and no {offsets_of(group)}, so what it reads is not known"
        return Judgement(None, text, brief="no start offsets" if group.type == SHARE else "nothing is committed")
    if is_unstarted(group):
        return Judgement(None, "no members and no start offset, so what it reads is not known", brief="no start offset")
    if not lag:
        text = "no members" if tracker.lag is None else "no members, no lag"
        return Judgement(Health.OK, text + _left_over(tracker))
    if (
        tracker.moved_before_s is not None
        and tracker.moved_before_s > (tracker.memberless_at_s or 0.0)
        and _within(tracker, tracker.moved_before_s)
        and _within(tracker, tracker.moved_at_s)
    ):
        # Commits advance without members: another consumer reads. A single one may be a reset.
        return _by_throughput(tracker, lag, unread_since)
    least = "at least " if tracker.is_memberless_s_least else ""
    away_s, quiet_s = tracker.memberless_s, _quiet_s(tracker)
    away = "no members" + (f" for {least}{span(away_s)}" if away_s >= 1 else "")
    text = f"{away}, lag {lag:,}" + (f", {last_moved(group, quiet_s)}" if quiet_s is not None else "")
    if quiet_s is None:
        proven_s = away_s
    else:
        # A commit long ago is enough where the cluster does not report when the last member left.
        proven_s = quiet_s if group.state_since_ms is None else min(away_s, quiet_s)
    waiting = [unread_since.get(key_of(row)) for row in lagging(group)]
    if waiting and None not in waiting:
        proven_s = min(proven_s, max(tracker.apparent_age_s(at_ms) for at_ms in waiting if at_ms is not None))
    if proven_s >= tracker.limits.stalled_s:
        if quiet_s is None or quiet_s <= away_s:
            return Judgement(Health.STOPPED, text, brief=f"no members for {span(away_s)}")
        brief = still_for(group, quiet_s)
        return Judgement(Health.STOPPED, f"{brief}, {away}, lag {lag:,}", brief=brief)
    return Judgement(None, text, Evidence(proven_s, tracker.limits.stalled_s))


def _left_uncommitted(tracker: GroupTracker) -> Judgement:
    """The members have left a group that never committed: whoever joins next reads from the start, or skips all."""
    observed_s = 0.0 if tracker.uncommitted_at_s is None else tracker.at_s - tracker.uncommitted_at_s
    seen_s = max(observed_s, tracker.memberless_s)
    text = f"no commit at all, up to {counted(tracker.uncommitted, 'unread record')} when the last member left"
    if seen_s >= tracker.limits.stalled_s:
        text += f" {span(tracker.memberless_s)} ago"
        return Judgement(Health.NEVER_COMMITTED, text, brief="no commit at all, no members")
    return Judgement(None, text, Evidence(seen_s, tracker.limits.stalled_s))


def _quiet_s(tracker: GroupTracker) -> float | None:
    """The least time since the newest commit, where it is known."""
    newest_ms = None if tracker.group is None else tracker.group.last_commit_ms
    moved_s = None if tracker.moved_at_s is None else tracker.at_s - tracker.moved_at_s
    reported_s = None if newest_ms is None else tracker.age_s(newest_ms)
    if moved_s is not None:
        return moved_s
    observed_s = tracker.at_s - tracker.first_at_s
    return None if reported_s is None else max(reported_s, observed_s)


def _unused_s(tracker: GroupTracker) -> float | None:
    """At least how long the group has had neither members nor commits; None if nothing shows it."""
    group = tracker.group
    assert group is not None
    times = [at_ms for at_ms in (group.state_since_ms, group.last_commit_ms) if at_ms is not None]
    reported_s = tracker.age_s(max(times)) if times else 0.0
    observed_s = min(tracker.memberless_s, tracker.at_s - (tracker.moved_at_s or tracker.first_at_s))
    return max(reported_s, observed_s) or None


# --- shared ---


def _past_end(tracker: GroupTracker) -> str | None:
    """Why the offsets of a group do not show that it keeps up: one is past the end of its log."""
    group = tracker.group
    assert group is not None
    for row in group.partitions:
        if row.lag is not None and row.lag < 0 and not is_left(group, row):
            return f"{row.topic} {row.partition}: {offset_of(group)} {row.current_offset}, but the log ends at {row.log_end_offset}"
    return None


def _left_over(tracker: GroupTracker) -> str:
    if not tracker.left_over_lag:
        return ""
    return f"; {tracker.left_over_lag:,} records in topics that no member subscribes to"
