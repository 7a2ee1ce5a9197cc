"""The state of groups with all their committed offsets, as plans and snapshots keep it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from broker.light_dataclasses import replace
from kgctl.client.admin.groups import describe_groups
from kgctl.client.admin.offsets import EARLIEST, LATEST, OffsetAt, committed, list_offsets
from kgctl.client.admin.record_times import Position, record_times
from kgctl.client.net.cluster import Cluster
from kgctl.client.net.errors import KgctlError, NotFound
from kgctl.client.net.steps import Steps
from kgctl.model.groups import Committed, MemberRow
from kgctl.model.plans import StoredGroup, StoredMember, StoredOffset
from kgctl.model.topic_partition import TopicPartition

# Later times are no dates; producers choose timestamps freely.
_YEAR_10000_MS = 253_402_300_800_000


def cluster_id(cluster: Cluster) -> Steps[str]:
    """The id of the cluster; empty if it has none."""
    if cluster.cluster_id is None:
        yield from cluster.metadata([])
    return cluster.cluster_id or ""


def group_states(cluster: Cluster, names: Sequence[str]) -> Steps[dict[str, StoredGroup | KgctlError]]:
    """Each group as it is now. One that does not exist has no state."""
    from kgctl.client.net.errors import from_row

    described = {row.group: row for row in (yield from describe_groups(cluster, names, offsets=False))}
    commits = yield from committed(cluster, names)
    found: dict[str, StoredGroup | KgctlError] = {}
    for name in names:
        group, own = described[name], commits[name]
        is_missing = group.error is not None and group.error.name == NotFound.name
        if group.error is not None and not is_missing:
            found[name] = from_row(group.error)
        elif isinstance(own, KgctlError):
            found[name] = StoredGroup(name, None) if is_missing else own
        else:
            state = None if is_missing else group.state
            found[name] = StoredGroup(name, state, group.type, _members(group.members), stored_offsets(own))
    return found


def stored_offsets(commits: Mapping[TopicPartition, Committed]) -> tuple[StoredOffset, ...]:
    return tuple(
        StoredOffset(key.topic, key.partition, one.offset, one.leader_epoch, one.metadata)
        for key, one in sorted(commits.items())
        if one.offset is not None
    )


def _members(rows: Sequence[MemberRow]) -> tuple[StoredMember, ...]:
    members = (StoredMember(row.consumer_id or "", row.group_instance_id, row.host, row.client_id) for row in rows)
    return tuple(sorted(members, key=lambda member: member.member_id))


def with_logs(cluster: Cluster, groups: Sequence[StoredGroup]) -> Steps[list[StoredGroup]]:
    """The groups with the ends of the logs, and the times of the records at their offsets; what cannot be read is None."""
    keys = sorted({one.key for group in groups for one in group.offsets})
    if not keys:
        return list(groups)
    starts = yield from list_offsets(cluster, dict.fromkeys(keys, EARLIEST))
    ends = yield from list_offsets(cluster, dict.fromkeys(keys, LATEST))
    places = {one: _next_record(one, _offset(starts[one.key])) for group in groups for one in group.offsets}
    wanted = {place for one, place in places.items() if (end := _offset(ends[one.key])) is not None and place[2] < end}
    times: dict[Position, int | None] = {}
    if wanted:
        try:
            times = yield from record_times(cluster, sorted(wanted))
        except KgctlError:
            times = {}
    return [
        replace(
            group,
            offsets=tuple(
                replace(
                    one,
                    log_start=_offset(starts[one.key]),
                    log_end=_offset(ends[one.key]),
                    timestamp=_time(times.get(places[one])),
                )
                for one in group.offsets
            ),
        )
        for group in groups
    ]


def _next_record(one: StoredOffset, start: int | None) -> Position:
    """Where the group would read next: an offset below the start of the log moves there."""
    return one.topic, one.partition, max(one.offset, start or 0)


def _offset(found: OffsetAt | KgctlError) -> int | None:
    return found.offset if isinstance(found, OffsetAt) and found.offset >= 0 else None


def _time(ms: int | None) -> int | None:
    return ms if ms is not None and 0 <= ms < _YEAR_10000_MS else None


def offsets_at(
    cluster: Cluster, wanted: Mapping[TopicPartition, set[int]]
) -> Steps[dict[tuple[TopicPartition, int], OffsetAt | KgctlError]]:
    """The first offset at or after each time of each partition; the end of the log if there is none."""
    keys = sorted(wanted)
    found: dict[tuple[TopicPartition, int], OffsetAt | KgctlError] = {}
    if not keys:
        return found
    ends = yield from list_offsets(cluster, dict.fromkeys(keys, LATEST))
    for number in range(max(map(len, wanted.values()))):
        moments = {key: sorted(times)[number] for key, times in wanted.items() if number < len(times)}
        places = yield from list_offsets(cluster, moments)
        for key, moment in moments.items():
            place = places[key]
            found[key, moment] = ends[key] if isinstance(place, OffsetAt) and place.offset < 0 else place
    return found


def leader_epochs(cluster: Cluster, keys: Sequence[TopicPartition]) -> Steps[dict[TopicPartition, int]]:
    """The newest leader epoch of each partition, where the broker says it."""
    found = (yield from list_offsets(cluster, dict.fromkeys(keys, LATEST))) if keys else {}
    return {key: one.leader_epoch for key, one in found.items() if isinstance(one, OffsetAt) and one.leader_epoch >= 0}
