"""One row per group from one description, or from two that are some seconds apart."""

from __future__ import annotations

from kgctl.model.group_overview import GroupOverview
from kgctl.model.groups import GroupDescription, PartitionLag
from kgctl.watch.rates import eta_s
from kgctl.watch.standing import standing
from kgctl.watch.tracker import GroupTracker, generation_of, has_offsets


def overview(
    group: GroupDescription, wall_ms: int, before: GroupDescription | None = None, apart_s: float = 0.0
) -> GroupOverview:
    """The row of a group as it is at `wall_ms`. `before` is the same group `apart_s` earlier: it gives rates and an ETA."""
    word, reason = standing(group, wall_ms, group.committed_at)
    if group.error is not None:
        return GroupOverview(
            group.group,
            group.type,
            group.state,
            verdict=None if word is None else str(word),
            verdict_reason=reason,
            error=group.error,
        )
    topics = set()
    lag = None if group.partitions or not has_offsets(group) else 0
    worst: PartitionLag | None = None
    worst_lag = 0
    failure = None
    for row in group.partitions:
        topics.add(row.topic)
        failure = failure or row.error
        if row.lag is not None:
            lag = lag or 0
            if row.lag > 0:
                lag += row.lag
                if row.lag > worst_lag:
                    worst, worst_lag = row, row.lag
    committed_ms = group.last_commit_ms
    rate_in, rate_out = _rates(group, before, apart_s)
    left_s = eta_s(lag, rate_in, rate_out) if lag and rate_in is not None and rate_out is not None else None
    return GroupOverview(
        group=group.group,
        type=group.type,
        state=group.state,
        members=len(group.members),
        lag=lag,
        last_commit_ms=committed_ms,
        last_commit_age_ms=None if committed_ms is None else max(0, wall_ms - committed_ms),
        verdict=None if word is None else str(word),
        verdict_reason=reason,
        protocol=group.protocol_type or None,
        assignor=group.assignment_strategy or None,
        generation=generation_of(group),
        state_since_ms=group.state_since_ms,
        coordinator=group.coordinator,
        coordinator_id=group.coordinator_id,
        offsets_partition=group.offsets_partition,
        topics=len(topics),
        partitions=len(group.partitions),
        worst_partition=None if worst is None else f"{worst.topic}-{worst.partition}",
        worst_lag=worst_lag or None,
        rate_in=rate_in,
        rate_out=rate_out,
        eta_ms=None if left_s is None else round(left_s * 1000),
        error=failure,
    )


def _rates(
    group: GroupDescription, before: GroupDescription | None, apart_s: float
) -> tuple[float | None, float | None]:
    if before is None or before.error is not None:
        return None, None
    tracker = GroupTracker()
    tracker.add(0.0, 0, before)
    tracker.add(apart_s, 0, group)
    return tracker.throughput.rate_in, tracker.throughput.rate_out
