"""One row per group, from its description and from what samples show."""

from __future__ import annotations

from collections.abc import Sequence

from broker.light_named_tuples import NamedTuple
from kgctl.model.group_overview import GroupOverview
from kgctl.model.groups import GroupDescription, PartitionLag
from kgctl.model.health import Judgement
from kgctl.model.lag import LagFacts, LagRow
from kgctl.watch.clock_skew import newest_ms
from kgctl.watch.lag import GROUP, Sample, lag_rows, summed
from kgctl.watch.limits import LIMITS
from kgctl.watch.progress import has_offsets
from kgctl.watch.standing import standing
from kgctl.watch.tracker import generation_of

MISSING_TOPIC = "UNKNOWN_TOPIC_OR_PARTITION"


class Behind(NamedTuple):
    """The lag of a group in time, and the verdict that samples and facts together show."""

    lag: LagRow
    judgement: Judgement


def behind_of(
    samples: Sequence[Sample], facts: LagFacts, *, unused_after_s: float = LIMITS.unused_s
) -> dict[str, Behind]:
    """By group; the groups of the newest sample that have partitions."""
    from kgctl.watch.doctor.facts import verdict_of

    cluster_ms = newest_ms(samples[-1].groups.values())
    return {
        row.group: Behind(
            row, verdict_of(samples, row.group, facts, unused_after_s=unused_after_s, cluster_ms=cluster_ms)
        )
        for row in summed(lag_rows(samples, facts), GROUP)
        if row.error is None
    }


def overview(
    group: GroupDescription,
    wall_ms: int,
    behind: Behind | None = None,
    *,
    cluster_ms: int | None = None,
    unused_after_s: float = LIMITS.unused_s,
) -> GroupOverview:
    """The row of a group as it is at `wall_ms`; `cluster_ms` as for `standing`."""
    if behind is None:
        judgement = standing(
            group, wall_ms, None, group.unread_since, cluster_ms=cluster_ms, unused_after_s=unused_after_s
        )
    else:
        judgement = behind.judgement
    word, reason = judgement.health, judgement.reason
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
        if failure is None and row.error is not None and not _is_left_over(row):
            failure = row.error
        if row.lag is not None:
            lag = lag or 0
            if row.lag > 0:
                lag += row.lag
                if row.lag > worst_lag:
                    worst, worst_lag = row, row.lag
    committed_ms = group.last_commit_ms
    late = LagRow(group.group) if behind is None else behind.lag
    return GroupOverview(
        group=group.group,
        type=group.type,
        state=group.state,
        members=len(group.members),
        lag=lag,
        uncommitted_records=judgement.uncommitted_records,
        last_commit_ms=committed_ms,
        last_commit_age_ms=None if committed_ms is None else max(0, (group.clock_ms or wall_ms) - committed_ms),
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
        rate_in=late.rate_in,
        rate_out=late.rate_out,
        time_lag_ms=late.time_lag_ms,
        eta_ms=None if late.eta_s is None else round(late.eta_s * 1000),
        error=failure,
    )


def _is_left_over(row: PartitionLag) -> bool:
    """Whether this is an offset of a deleted topic, which hides nothing about the others."""
    return row.consumer_id is None and row.error is not None and row.error.name == MISSING_TOPIC
