"""What only kgctl's broker reports about groups: generation, leader, timeouts, phases, times of commits, pending offsets."""

from __future__ import annotations

from collections.abc import Mapping

from broker.light_dataclasses import replace
from broker.protocol.messages.describe_group_details import DescribeGroupDetailsRequest, DescribeGroupDetailsResponse
from kgctl.client.net.cluster import Ask, Cluster, Node, chunks
from kgctl.client.net.errors import KgctlError
from kgctl.client.net.steps import Steps
from kgctl.model.groups import CLASSIC, CONSUMER, SHARE, GroupDescription, PendingOffsets
from kgctl.model.topic_partition import Keys, TopicPartition

GROUPS_PER_REQUEST = 200
# Since this version, the request can ask for the times of commits.
COMMITS_SINCE = 1


def add_details(
    cluster: Cluster, described: Mapping[str, GroupDescription], *, with_commits: bool
) -> Steps[dict[str, GroupDescription]]:
    """The descriptions of groups whose coordinators offer the request, with details."""
    names = [row.group for row in described.values() if row.type in (CLASSIC, CONSUMER, SHARE) and not row.error]
    by_node: dict[Node, list[str]] = {}
    for name, node in (yield from cluster.coordinators(names)).items():
        if isinstance(node, Node) and cluster.range_of(node.endpoint, DescribeGroupDetailsRequest.API_KEY):
            by_node.setdefault(node, []).append(name)
    asks = [
        Ask(
            node.endpoint,
            DescribeGroupDetailsRequest(groups=list(some), include_commits=with_commits),
            DescribeGroupDetailsResponse,
        )
        for node, names in by_node.items()
        for some in chunks(names, GROUPS_PER_REQUEST)
    ]
    answers = (yield from cluster.ask_each(asks)) if asks else []
    versions = {
        ask.endpoint: cluster.highest_version(ask.endpoint, DescribeGroupDetailsRequest) for ask in asks if with_commits
    }
    keys = Keys()
    found = {}
    # Without an answer only these columns are missing.
    for ask, answer in zip(asks, answers, strict=True):
        if isinstance(answer, KgctlError):
            continue
        version = versions.get(ask.endpoint)
        has_commits = isinstance(version, int) and version >= COMMITS_SINCE
        for row in answer.groups:
            if not row.error_code:
                known = _detailed(described[row.group_id], row, keys if has_commits else None)
                if answer.wall_ms >= 0:
                    known = replace(known, clock_ms=answer.wall_ms, broker_started_ms=answer.started_ms)
                found[row.group_id] = known
    return found


def _detailed(
    group: GroupDescription, details: DescribeGroupDetailsResponse.Group, keys: Keys | None
) -> GroupDescription:
    """`keys` is None if the broker does not report commits."""
    known = {member.member_id: member for member in details.members}
    generation = None if details.generation_id < 0 else details.generation_id
    members = []
    for member in group.members:
        more = known.get(member.consumer_id or "")
        row = member
        if group.type == CLASSIC:
            row = replace(member, generation=generation, leader=member.consumer_id == details.leader)
        if more:
            row = replace(
                row,
                session_timeout_ms=more.session_timeout_ms,
                rebalance_timeout_ms=None if more.rebalance_timeout_ms < 0 else more.rebalance_timeout_ms,
                phase=row.phase or more.phase,
                heartbeat_age_ms=None if more.heartbeat_age_ms < 0 else more.heartbeat_age_ms,
            )
        members.append(row)
    return replace(
        group,
        generation=generation,
        leader=details.leader,
        members=tuple(members),
        state_since_ms=None if details.state_since_ms < 0 else details.state_since_ms,
        committed_at={} if keys is None else _commit_times(details, keys),
        pending=tuple(
            PendingOffsets(row.topic, tuple(sorted(row.partitions)), row.producer_id) for row in details.pending
        ),
    )


def _commit_times(details: DescribeGroupDetailsResponse.Group, keys: Keys) -> dict[TopicPartition, int]:
    times: dict[TopicPartition, int] = {}
    for row in details.commits:
        of_topic = keys.of(row.topic)
        times |= {of_topic[number]: at_ms for number, at_ms in zip(row.partitions, row.committed_ms, strict=False)}
    return times
