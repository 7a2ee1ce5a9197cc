"""Lists groups, and describes them with members, generation, offsets and lag in as few requests as the cluster allows."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from broker.light_dataclasses import replace
from broker.protocol.consumer_protocol import decode_assignment, decode_subscription
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse
from broker.protocol.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from broker.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from broker.protocol.messages.share_group_describe import ShareGroupDescribeRequest, ShareGroupDescribeResponse
from broker.protocol.wire_types import DecodeError
from kgctl.client.admin.first_records import add_first_records
from kgctl.client.admin.group_details import add_details
from kgctl.client.admin.offsets import LATEST, committed, list_offsets
from kgctl.client.net.authorization import Asked
from kgctl.client.net.cluster import Ask, Batch, Cluster, Node, chunks
from kgctl.client.net.errors import BrokerError, KgctlError, NotFound, Precondition
from kgctl.client.net.steps import Steps
from kgctl.model.groups import (
    CLASSIC,
    CONSUMER,
    SHARE,
    GroupDescription,
    GroupListing,
    Listing,
    MemberRow,
    by_topic,
    lag_rows,
)
from kgctl.model.reconciliation import reconciled
from kgctl.model.topic_partition import TopicPartition

GROUPS_PER_REQUEST = 200
DEAD = "Dead"
# The group protocols of members of a consumer group; brokers before Kafka 4.0 do not report them (-1).
_MEMBER_TYPES = {0: CLASSIC, 1: CONSUMER}


def list_groups(cluster: Cluster, states: Iterable[str] = (), types: Iterable[str] = ()) -> Steps[Listing]:
    """All groups of all brokers, sorted by id. States and types are spelled as in Kafka; none means all.

    Raises Unsupported for a filter that the brokers do not offer (states: Kafka 2.6, types: Kafka 3.8).
    """
    nodes = yield from cluster.all_nodes()
    request = ListGroupsRequest(states_filter=list(states), types_filter=list(types))
    lowest = 5 if request.types_filter else 4 if request.states_filter else 0
    answers = yield from cluster.ask_each([Ask(node.endpoint, request, ListGroupsResponse, lowest) for node in nodes])
    found: dict[str, GroupListing] = {}
    errors = []
    for node, answer in zip(nodes, answers, strict=True):
        if not isinstance(answer, KgctlError) and answer.error_code:
            answer = BrokerError(answer.error_code, f"broker {node.node_id}", asked=Asked(ListGroupsRequest))
        if isinstance(answer, KgctlError):
            errors.append(answer)
            continue
        for row in answer.groups:
            # Brokers before version 5 have classic groups only.
            found[row.group_id] = GroupListing(
                row.group_id, _type(row.group_type) or CLASSIC, row.group_state or None, row.protocol_type or None
            )
    if len(errors) == len(nodes):
        raise errors[0]
    cluster.group_types |= {row.group: row.type or CLASSIC for row in found.values()}
    return Listing(tuple(found[group] for group in sorted(found)), tuple(error.as_row() for error in errors))


def describe_groups(
    cluster: Cluster, groups: Sequence[str], *, offsets: bool = True, commit_times: bool = False
) -> Steps[list[GroupDescription]]:
    """Each group once, sorted by id. A group that does not exist or cannot be asked is a description with its error.

    `offsets=False` omits committed offsets and lag, and saves their requests. `commit_times` adds when offsets were committed,
    and the offsets of open transactions, from coordinators that report them.
    """
    names = sorted(set(groups))
    if any(group not in cluster.group_types for group in names):
        yield from _learn_types(cluster, names)
    found = yield from _describe_by_type(cluster, names)
    absent = [group for group in names if _is_absent(found[group])]
    if absent:
        found |= yield from _describe_absent(cluster, absent)
    described = {
        group: result if isinstance(result, GroupDescription) else GroupDescription(group, error=result.as_row())
        for group, result in found.items()
    }
    described |= yield from add_details(cluster, described, with_commits=commit_times)
    if offsets:
        described |= yield from _add_lag(cluster, described)
    return [described[group] for group in names]


# --- types ---


def _learn_types(cluster: Cluster, groups: Iterable[str]) -> Steps[None]:
    """Remember the type of each group, from one listing. A group that is not listed counts as classic.

    The listing omits groups that the principal may not describe; DescribeGroups names that error.
    """
    # The requests about the groups themselves report what is wrong.
    with contextlib.suppress(KgctlError):
        yield from list_groups(cluster)
    for group in groups:
        cluster.group_types.setdefault(group, CLASSIC)


def _describe_by_type(cluster: Cluster, groups: Sequence[str]) -> Steps[dict[str, GroupDescription | KgctlError]]:
    found: dict[str, Any] = {}
    for kind, make in _DESCRIBE.items():
        names = [group for group in groups if cluster.group_types[group] == kind]
        if names:
            found |= yield from cluster.at_coordinators(names, make)
    others = [group for group in groups if cluster.group_types[group] not in _DESCRIBE]
    if others:
        found |= yield from _describe_as_listed(cluster, others)
    return found


def _describe_as_listed(cluster: Cluster, groups: Sequence[str]) -> Steps[dict[str, GroupDescription | KgctlError]]:
    """Groups of a type without a describe request that kgctl knows: what the listing says."""
    listing = yield from list_groups(cluster)
    listed = {
        row.group: GroupDescription(row.group, type=row.type, protocol_type=row.protocol, state=row.state)
        for row in listing.groups
    }
    return {group: listed.get(group) or _not_found(group) for group in groups}


def _describe_absent(cluster: Cluster, groups: Sequence[str]) -> Steps[dict[str, GroupDescription | KgctlError]]:
    """Ask again about groups that have another type by now; the others do not exist."""
    before = {group: cluster.group_types.pop(group) for group in groups}
    yield from _learn_types(cluster, groups)
    changed = [group for group in groups if cluster.group_types[group] != before[group]]
    found: dict[str, Any] = {group: _not_found(group) for group in groups}
    if changed:
        found |= yield from _describe_by_type(cluster, changed)
    for group in groups:
        if isinstance(found[group], KgctlError) or _is_absent(found[group]):
            del cluster.group_types[group]
    return {group: _not_found(group) if _is_absent(result) else result for group, result in found.items()}


def _is_absent(result: GroupDescription | KgctlError) -> bool:
    """Kafka answers Dead, from version 6 on GROUP_ID_NOT_FOUND, for a missing group and for one of another type."""
    if isinstance(result, BrokerError):
        return result.code == ErrorCode.GROUP_ID_NOT_FOUND
    return isinstance(result, GroupDescription) and result.state == DEAD


def _not_found(group: str) -> NotFound:
    return NotFound(f"Consumer group '{group}' does not exist.")


# --- the classic protocol ---


def _describe_classic(node: Node, groups: list[str]) -> list[Batch[str]]:
    def read(answer: DescribeGroupsResponse) -> dict[str, GroupDescription | KgctlError]:
        return {row.group_id: _from_classic(node, row) for row in answer.groups}

    return [
        Batch(Ask(node.endpoint, DescribeGroupsRequest(groups=list(some)), DescribeGroupsResponse), some, read)
        for some in chunks(groups, GROUPS_PER_REQUEST)
    ]


def _from_classic(node: Node, row: DescribeGroupsResponse.Group) -> GroupDescription | KgctlError:
    if row.error_code:
        asked = Asked(DescribeGroupsRequest, group=row.group_id)
        return BrokerError(row.error_code, f"group {row.group_id!r}", row.error_message, asked=asked)
    members = tuple(_classic_member(row, member) for member in sorted(row.members, key=lambda m: m.member_id))
    return GroupDescription(
        group=row.group_id,
        type=CLASSIC,
        protocol_type=row.protocol_type,
        state=row.group_state,
        assignment_strategy=row.protocol_data,
        coordinator=str(node.endpoint),
        coordinator_id=node.node_id,
        members=members,
        subscribed=_subscribed(members),
        member_protocols=_subscription_versions(row),
    )


def _subscribed(members: Sequence[MemberRow]) -> frozenset[str] | None:
    """What the members subscribe to together; None if one does not report it."""
    if any(member.subscribed is None for member in members):
        return None
    return frozenset(topic for member in members for topic in member.subscribed or ())


def _subscribed_by(member: DescribeGroupsResponse.Member) -> tuple[str, ...] | None:
    try:
        return tuple(sorted(decode_subscription(member.member_metadata).topics))
    except DecodeError:
        return None


def _subscription_versions(group: DescribeGroupsResponse.Group) -> tuple[str, ...]:
    """The versions of the consumer protocol that members speak; clients of different ages speak different ones."""
    if group.protocol_type != CONSUMER.lower():
        return ()
    versions = {int.from_bytes(member.member_metadata[:2], "big") for member in group.members if member.member_metadata}
    return tuple(f"version {version} of the consumer protocol" for version in sorted(versions))


def _classic_member(group: DescribeGroupsResponse.Group, member: DescribeGroupsResponse.Member) -> MemberRow:
    assignment = _assigned(member.member_assignment) if group.protocol_type == "consumer" else None
    return MemberRow(
        group=group.group_id,
        consumer_id=member.member_id,
        group_instance_id=member.group_instance_id,
        host=member.client_host,
        client_id=member.client_id,
        partitions=None if assignment is None else len(assignment),
        generation=None,
        current_assignment=None if assignment is None else by_topic(assignment),
        subscribed=_subscribed_by(member) if group.protocol_type == CONSUMER.lower() else None,
    )


def _assigned(blob: bytes) -> list[TopicPartition] | None:
    """The assigned partitions; none during a rebalance; None if this is not the assignment of a Kafka consumer."""
    if not blob:
        return []
    try:
        decoded = decode_assignment(blob)
    except DecodeError:
        return None
    return [TopicPartition(topic.topic, number) for topic in decoded.assigned_partitions for number in topic.partitions]


# --- consumer and share groups ---


def _describe_consumer(node: Node, groups: list[str]) -> list[Batch[str]]:
    def read(answer: ConsumerGroupDescribeResponse) -> dict[str, GroupDescription | KgctlError]:
        return {row.group_id: _from_newer(node, row, CONSUMER) for row in answer.groups}

    return [
        Batch(
            Ask(node.endpoint, ConsumerGroupDescribeRequest(group_ids=list(some)), ConsumerGroupDescribeResponse),
            some,
            read,
        )
        for some in chunks(groups, GROUPS_PER_REQUEST)
    ]


def _describe_share(node: Node, groups: list[str]) -> list[Batch[str]]:
    def read(answer: ShareGroupDescribeResponse) -> dict[str, GroupDescription | KgctlError]:
        return {
            row.group_id: _disabled(row.group_id)
            if row.error_code == ErrorCode.UNSUPPORTED_VERSION
            else _from_newer(node, row, SHARE)
            for row in answer.groups
        }

    return [
        Batch(
            Ask(node.endpoint, ShareGroupDescribeRequest(group_ids=list(some)), ShareGroupDescribeResponse), some, read
        )
        for some in chunks(groups, GROUPS_PER_REQUEST)
    ]


def _disabled(group: str) -> Precondition:
    return Precondition(
        f"group '{group}' is a share group, and share groups are disabled: `kgctl cluster set-feature share.version=1` enables"
        " them"
    )


def _from_newer(
    node: Node, row: ConsumerGroupDescribeResponse.Group | ShareGroupDescribeResponse.Group, kind: str
) -> GroupDescription | KgctlError:
    if row.error_code:
        asked = Asked(ConsumerGroupDescribeRequest, group=row.group_id)
        return BrokerError(row.error_code, f"group {row.group_id!r}", row.error_message, asked=asked)
    members: list[ConsumerGroupDescribeResponse.Member | ShareGroupDescribeResponse.Member] = [*row.members]
    described = GroupDescription(
        group=row.group_id,
        type=kind,
        protocol_type=kind.lower(),
        state=row.group_state,
        assignment_strategy=row.assignor_name,
        coordinator=str(node.endpoint),
        coordinator_id=node.node_id,
        group_epoch=row.group_epoch,
        target_assignment_epoch=row.assignment_epoch,
        members=tuple(_newer_member(row, member) for member in sorted(members, key=lambda m: m.member_id)),
        member_protocols=_member_types(members),
        subscribed=frozenset(topic for member in members for topic in member.subscribed_topic_names)
        | frozenset(topic.topic_name for member in members for topic in member.assignment.topic_partitions),
    )
    return reconciled(described)


def _member_types(
    members: Sequence[ConsumerGroupDescribeResponse.Member | ShareGroupDescribeResponse.Member],
) -> tuple[str, ...]:
    """The group protocols that members speak: both while a group moves to KIP-848."""
    types = {member.member_type for member in members if isinstance(member, ConsumerGroupDescribeResponse.Member)}
    return tuple(f"the {name.lower()} group protocol" for number, name in _MEMBER_TYPES.items() if number in types)


def _newer_member(
    group: ConsumerGroupDescribeResponse.Group | ShareGroupDescribeResponse.Group,
    member: ConsumerGroupDescribeResponse.Member | ShareGroupDescribeResponse.Member,
) -> MemberRow:
    current = [
        TopicPartition(t.topic_name, number) for t in member.assignment.topic_partitions for number in t.partitions
    ]
    row = MemberRow(
        group=group.group_id,
        consumer_id=member.member_id,
        group_instance_id=None,
        host=member.client_host,
        client_id=member.client_id,
        partitions=len(current),
        generation=None,
        current_epoch=member.member_epoch,
        current_assignment=by_topic(current),
        subscribed=tuple(sorted(member.subscribed_topic_names)),
    )
    if isinstance(member, ShareGroupDescribeResponse.Member):
        return row
    target = [
        TopicPartition(t.topic_name, number)
        for t in member.target_assignment.topic_partitions
        for number in t.partitions
    ]
    return replace(
        row,
        group_instance_id=member.instance_id,
        rack_id=member.rack_id,
        subscribed_regex=member.subscribed_topic_regex or None,
        member_type=_MEMBER_TYPES.get(member.member_type),
        target_epoch=group.assignment_epoch,
        target_assignment=by_topic(target),
    )


# --- offsets ---


def _add_lag(cluster: Cluster, described: dict[str, GroupDescription]) -> Steps[dict[str, GroupDescription]]:
    """Add committed offsets and lag; to share groups, their start offsets."""
    names = [row.group for row in described.values() if not row.error and row.type in (CLASSIC, CONSUMER, SHARE)]
    commits = yield from committed(cluster, names)
    wanted = {key for found in commits.values() if isinstance(found, dict) for key in found}
    wanted |= {key for name in names for member in _owners(described[name]) for key in member.owned()}
    ends = yield from list_offsets(cluster, dict.fromkeys(wanted, LATEST))
    offsets = {key: end.as_row() if isinstance(end, KgctlError) else end.offset for key, end in ends.items()}
    result = {}
    for name in names:
        group, found = described[name], commits[name]
        if not isinstance(found, KgctlError):
            result[name] = replace(group, partitions=lag_rows(name, _owners(group), found, offsets))
        elif group.type != SHARE:
            # Kafka 4.0 has share groups, and does not report their offsets.
            result[name] = replace(group, error=found.as_row())
    return result | (yield from add_first_records(cluster, result))


def _owners(group: GroupDescription) -> tuple[MemberRow, ...]:
    """The members, unless several of them may read the same partition."""
    return () if group.type == SHARE else group.members


def _type(wire_name: str) -> str | None:
    return wire_name.capitalize() if wire_name else None


_DESCRIBE: dict[str, Callable[[Node, list[str]], list[Batch[str]]]] = {
    CLASSIC: _describe_classic,
    CONSUMER: _describe_consumer,
    SHARE: _describe_share,
}
