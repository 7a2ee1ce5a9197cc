"""Deletes groups, members and committed offsets: plans, and their execution."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from broker.light_dataclasses import dataclass, replace
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from broker.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from broker.protocol.messages.metadata import MetadataRequest
from kgctl.client.admin.groups import GROUPS_PER_REQUEST, describe_groups
from kgctl.client.admin.offsets import committed, delete_each
from kgctl.client.admin.reset_targets import Scope
from kgctl.client.net.authorization import Asked
from kgctl.client.net.cluster import Ask, Batch, Cluster, Node, chunks
from kgctl.client.net.errors import BrokerError, KgctlError, LeftOut, NotFound, Precondition, from_row
from kgctl.client.net.steps import Steps
from kgctl.model.changes import DONE, FAILED, PLANNED, GroupChange, MemberChange, OffsetChange
from kgctl.model.failure import RowError
from kgctl.model.groups import CLASSIC, CONSUMER, EMPTY_STATES, SHARE, GroupDescription, MemberRow
from kgctl.model.topic_partition import TopicPartition

ADMIN_REASON = "member was removed by an admin"


# --- groups ---


def plan_group_deletion(cluster: Cluster, groups: Sequence[str]) -> Steps[list[GroupChange]]:
    """A row per group; a group that does not exist or has members is a row with its error."""
    described = yield from describe_groups(cluster, groups, offsets=False)
    rows = []
    for group in described:
        error = group.error
        if error is None and group.state not in EMPTY_STATES:
            error = BrokerError(ErrorCode.NON_EMPTY_GROUP, f"group {group.group!r}").as_row()
        rows.append(GroupChange(group.group, group.state, FAILED if error else PLANNED, error))
    return rows


def delete_groups(cluster: Cluster, plan: Sequence[GroupChange]) -> Steps[list[GroupChange]]:
    """Delete the groups of the plan; rows that failed in the plan stay as they are."""

    def make(node: Node, names: list[str]) -> list[Batch[str]]:
        return [
            Batch(Ask(node.endpoint, DeleteGroupsRequest(groups_names=list(some)), DeleteGroupsResponse), some, read)
            for some in chunks(names, GROUPS_PER_REQUEST)
        ]

    def read(answer: DeleteGroupsResponse) -> dict[str, KgctlError | None]:
        return {
            row.group_id: BrokerError(
                row.error_code, f"group {row.group_id!r}", asked=Asked(DeleteGroupsRequest, group=row.group_id)
            )
            if row.error_code
            else None
            for row in answer.results
        }

    def repeated(group: str, result: Any) -> Any:
        return None if isinstance(result, BrokerError) and result.code == ErrorCode.GROUP_ID_NOT_FOUND else result

    found = yield from cluster.at_coordinators([row.group for row in plan if not row.error], make, repeated)
    return [row if row.error else _outcome(row, found[row.group]) for row in plan]


# --- members ---


def plan_member_removal(
    cluster: Cluster, group: str, members: Sequence[str] = (), instances: Sequence[str] = (), *, everyone: bool = False
) -> Steps[list[MemberChange]]:
    """The members to remove, by member id, by instance id, or all; an unknown id is a row with its error.

    Raises NotFound if the group does not exist, Precondition if Kafka cannot remove members of its type.
    """
    rows = yield from plan_member_removals(cluster, [group], Members(members, instances, everyone=everyone))
    if rows and rows[0].error and not (rows[0].consumer_id or rows[0].group_instance_id):
        raise from_row(rows[0].error)
    return rows


@dataclass(frozen=True, slots=True)
class Members:
    """Members by their id, their instance id, their host with or without Kafka's slash, or all."""

    ids: Sequence[str] = ()
    instances: Sequence[str] = ()
    hosts: Sequence[str] = ()
    everyone: bool = False

    def has(self, member: MemberRow) -> bool:
        return (
            self.everyone
            or member.consumer_id in self.ids
            or member.group_instance_id in self.instances
            or (member.host or "").removeprefix("/") in {host.removeprefix("/") for host in self.hosts}
        )


def plan_member_removals(
    cluster: Cluster, groups: Sequence[str], wanted: Members, *, known_only: bool = False
) -> Steps[list[MemberChange]]:
    """The members to remove from each group. A group that cannot be changed is a row without a member, with its error.

    So is a host on which a group has no member, and an unknown id; with `known_only`, these are left out.
    """
    described = yield from describe_groups(cluster, groups, offsets=False)
    rows: list[MemberChange] = []
    for group in described:
        error = group.error
        if error is None and group.type != CLASSIC:
            error = Precondition(
                f"Members of group '{group.group}' cannot be removed: Kafka can do that for classic groups only."
            ).as_row()
        if error is not None:
            rows.append(MemberChange(group.group, "", None, None, None, FAILED, error))
            continue
        found = [member for member in group.members if wanted.has(member)]
        rows += [
            MemberChange(group.group, row.consumer_id or "", row.group_instance_id, row.host, row.client_id)
            for row in found
        ]
        if not known_only:
            rows += _absent_members(group.group, found, wanted)
    return rows


def _absent_members(group: str, found: Sequence[MemberRow], wanted: Members) -> list[MemberChange]:
    ids = sorted(set(wanted.ids) - {row.consumer_id for row in found})
    instances = sorted(set(wanted.instances) - {row.group_instance_id for row in found if row.group_instance_id})
    there = {(row.host or "").removeprefix("/") for row in found}
    hosts = [host for host in wanted.hosts if host.removeprefix("/") not in there]
    no_host = {host: NotFound(f"Group '{group}' has no member on host '{host}'.").as_row() for host in hosts}
    return [
        *(MemberChange(group, name, None, None, None, FAILED, _no_member(group, name)) for name in ids),
        *(MemberChange(group, "", name, None, None, FAILED, _no_member(group, name)) for name in instances),
        *(MemberChange(group, "", None, host, None, FAILED, no_host[host]) for host in hosts),
    ]


def remove_members(
    cluster: Cluster, group: str, plan: Sequence[MemberChange], reason: str = ""
) -> Steps[list[MemberChange]]:
    """Make members leave (LeaveGroup v3, Kafka 2.4). Brokers receive the reason from Kafka 3.2 on."""
    full_reason = f"{ADMIN_REASON}: {reason}" if reason else ADMIN_REASON
    leaving = [
        # KIP-345: a static member is named by its instance id alone.
        LeaveGroupRequest.Member(
            member_id="" if row.group_instance_id else row.consumer_id,
            group_instance_id=row.group_instance_id,
            reason=full_reason,
        )
        for row in plan
        if not row.error
    ]
    if not leaving:
        return list(plan)
    request = LeaveGroupRequest(group_id=group, members=leaving)

    def read(answer: LeaveGroupResponse) -> dict[str, Any]:
        if answer.error_code:
            asked = Asked(LeaveGroupRequest, group=group)
            return {group: BrokerError(answer.error_code, f"group {group!r}", asked=asked)}
        return {group: {_key(row.member_id, row.group_instance_id): row.error_code for row in answer.members}}

    def make(node: Node, names: list[str]) -> list[Batch[str]]:
        return [Batch(Ask(node.endpoint, request, LeaveGroupResponse, 3), names, read)]

    def repeated(_: str, result: Any) -> Any:
        if isinstance(result, BrokerError) and result.code in (
            ErrorCode.UNKNOWN_MEMBER_ID,
            ErrorCode.GROUP_ID_NOT_FOUND,
        ):
            return {_key(row.member_id, row.group_instance_id): 0 for row in leaving}
        if isinstance(result, KgctlError):
            return result
        return {key: 0 if code == ErrorCode.UNKNOWN_MEMBER_ID else code for key, code in result.items()}

    found = yield from cluster.at_coordinators([group], make, repeated)
    result = found[group]
    if isinstance(result, KgctlError):
        raise result
    return [row if row.error else _outcome(row, _member_error(row, result)) for row in plan]


def _member_error(row: MemberChange, codes: dict[tuple[str, str | None], int]) -> KgctlError | None:
    about = f"group {row.group!r}, member {row.group_instance_id or row.consumer_id!r}"
    code = codes.get(_key(row.consumer_id, row.group_instance_id))
    if code is None:
        return LeftOut(about)
    return BrokerError(code, about) if code else None


def _key(member_id: str, instance: str | None) -> tuple[str, str | None]:
    """A static member is identified by its instance id; answers may name its member id too."""
    return ("" if instance else member_id), instance or None


def _no_member(group: str, name: str) -> RowError:
    return NotFound(f"Group '{group}' has no member '{name}'.").as_row()


# --- offsets ---


def plan_offset_deletion(cluster: Cluster, group: str, scope: Scope) -> Steps[list[OffsetChange]]:
    """The same for one group. Raises its error, such as NotFound if it does not exist."""
    rows = yield from plan_offset_deletions(cluster, [group], scope)
    if rows and rows[0].topic is None and rows[0].error:
        raise from_row(rows[0].error)
    return rows


def plan_offset_deletions(
    cluster: Cluster, groups: Sequence[str], scope: Scope, *, known_only: bool = False
) -> Steps[list[OffsetChange]]:
    """The committed offsets to delete. One that does not exist, or whose deletion will be refused, is a row with its error.

    A group that cannot be asked is a row without a topic. With `known_only`, offsets that do not exist are left out.
    """
    described = yield from describe_groups(cluster, groups, offsets=False)
    found = yield from committed(cluster, [row.group for row in described if not row.error])
    rows: list[OffsetChange] = []
    absent: list[tuple[str, str, int | None]] = []
    for group in described:
        commits = group.error or found[group.group]
        if isinstance(commits, KgctlError):
            commits = commits.as_row()
        if isinstance(commits, RowError):
            rows.append(OffsetChange(group.group, None, None, None, FAILED, commits))
            continue
        wanted = {key for key in commits if scope.has(key.topic)}
        for topic, numbers in scope.topics:
            there = {key for key in commits if key.topic == topic and (numbers is None or key.partition in numbers)}
            wanted |= there
            missing = [n for n in numbers or () if (topic, n) not in there] if numbers else [] if there else [None]
            absent += [(group.group, topic, number) for number in missing]
        for key in wanted:
            refused = _refusal(group, key, commits, wanted)
            row = OffsetChange(group.group, key.topic, key.partition, commits[key].offset)
            rows.append(replace(row, status=FAILED, error=refused.as_row()) if refused else row)
    rows += [] if known_only else (yield from _absence(cluster, absent))
    return sorted(rows, key=lambda row: (row.group, row.topic or "", -1 if row.partition is None else row.partition))


def _absence(cluster: Cluster, absent: Sequence[tuple[str, str, int | None]]) -> Steps[list[OffsetChange]]:
    """Why there is no committed offset: the topic or partition does not exist, or the group has not committed one."""
    if not absent:
        return []
    answer = yield from cluster.metadata(sorted({topic for _, topic, _ in absent}))
    existing = {topic.name: topic for topic in answer.topics}
    rows = []
    for group, name, number in absent:
        topic, place = existing[name], name if number is None else f"{name}-{number}"
        error: KgctlError = NotFound(f"Group '{group}' has nothing committed for {place}.")
        if topic.error_code:
            error = BrokerError(topic.error_code, f"topic {name!r}", asked=Asked(MetadataRequest, topic=name))
        elif number is not None and number not in {row.partition_index for row in topic.partitions}:
            error = BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, place)
        rows.append(OffsetChange(group, name, number, None, FAILED, error.as_row()))
    return rows


def _refusal(
    group: GroupDescription,
    partition: TopicPartition,
    present: Iterable[TopicPartition],
    wanted: Iterable[TopicPartition],
) -> KgctlError | None:
    """The expected refusal: offsets of topics to which members subscribe cannot be deleted, nor any of a share group in use."""
    about = f"group {group.group!r}, {partition}"
    if group.type == SHARE:
        if group.members:
            return BrokerError(ErrorCode.NON_EMPTY_GROUP, f"group {group.group!r}")
        from kgctl.client.admin.share_offsets import part_of_topic

        return part_of_topic(group.group, partition, present, wanted)
    if group.subscribed is not None:
        return BrokerError(ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, about) if partition.topic in group.subscribed else None
    is_consumer = group.protocol_type == CONSUMER.lower()
    return BrokerError(ErrorCode.NON_EMPTY_GROUP, about) if group.members and not is_consumer else None


def delete_offsets(cluster: Cluster, plan: Sequence[OffsetChange]) -> Steps[list[OffsetChange]]:
    """Delete the committed offsets of the plan; rows that failed in the plan stay as they are."""
    wanted: dict[str, list[TopicPartition]] = {}
    for row in plan:
        if not row.error and row.topic is not None and row.partition is not None:
            wanted.setdefault(row.group, []).append(TopicPartition(row.topic, row.partition))
    errors = yield from delete_each(cluster, wanted)
    return [
        row
        if row.error or row.topic is None or row.partition is None
        else _outcome(row, errors[row.group][TopicPartition(row.topic, row.partition)])
        for row in plan
    ]


def _outcome(row: Any, error: KgctlError | None) -> Any:
    return replace(row, status=FAILED, error=error.as_row()) if error else replace(row, status=DONE)
