"""Deletes groups, members and committed offsets: plans, and their execution."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

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
from kgctl.model.groups import CLASSIC, CONSUMER, EMPTY_STATES, GroupDescription
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
    (described,) = yield from describe_groups(cluster, [group], offsets=False)
    if described.error:
        raise from_row(described.error)
    if described.type != CLASSIC:
        raise Precondition(f"Members of group '{group}' cannot be removed: Kafka can do that for classic groups only.")
    rows = []
    wanted_members, wanted_instances = set(members), set(instances)
    for member in described.members:
        if everyone or member.consumer_id in wanted_members or member.group_instance_id in wanted_instances:
            rows.append(
                MemberChange(group, member.consumer_id or "", member.group_instance_id, member.host, member.client_id)
            )
    for name in sorted(wanted_members - {row.consumer_id for row in rows}):
        rows.append(MemberChange(group, name, None, None, None, FAILED, _no_member(group, name)))
    for name in sorted(wanted_instances - {row.group_instance_id for row in rows}):
        rows.append(MemberChange(group, "", name, None, None, FAILED, _no_member(group, name)))
    return rows


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
    """The committed offsets to delete. One that does not exist, or whose deletion will be refused, is a row with its error.

    Raises NotFound if the group does not exist.
    """
    (described,) = yield from describe_groups(cluster, [group], offsets=False)
    if described.error:
        raise from_row(described.error)
    found = yield from committed(cluster, [group])
    commits = found[group]
    if isinstance(commits, KgctlError):
        raise commits
    wanted = set(commits) if scope.all_topics else set()
    absent: list[tuple[str, int | None]] = []
    for topic, numbers in scope.topics:
        there = {key for key in commits if key[0] == topic and (numbers is None or key[1] in numbers)}
        wanted |= there
        absent += (
            [(topic, n) for n in numbers or () if (topic, n) not in there]
            if numbers
            else []
            if there
            else [(topic, None)]
        )
    rows = []
    for partition in wanted:
        refused = _refusal(described, partition)
        row = OffsetChange(group, partition.topic, partition.partition, commits[partition].offset)
        rows.append(replace(row, status=FAILED, error=refused.as_row()) if refused else row)
    errors = yield from _absence(cluster, group, absent)
    rows += [OffsetChange(group, topic, number, None, FAILED, error) for (topic, number), error in errors.items()]
    return sorted(rows, key=lambda row: (row.topic, -1 if row.partition is None else row.partition))


def _absence(
    cluster: Cluster, group: str, absent: Sequence[tuple[str, int | None]]
) -> Steps[dict[tuple[str, int | None], RowError]]:
    """Why there is no committed offset: the topic or partition does not exist, or the group has not committed one."""
    if not absent:
        return {}
    answer = yield from cluster.metadata(sorted({topic for topic, _ in absent}))
    existing = {topic.name: topic for topic in answer.topics}
    errors: dict[tuple[str, int | None], RowError] = {}
    for name, number in absent:
        topic, place = existing[name], name if number is None else f"{name}-{number}"
        error: KgctlError = NotFound(f"Group '{group}' has nothing committed for {place}.")
        if topic.error_code:
            error = BrokerError(topic.error_code, f"topic {name!r}", asked=Asked(MetadataRequest, topic=name))
        elif number is not None and number not in {row.partition_index for row in topic.partitions}:
            error = BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, place)
        errors[name, number] = error.as_row()
    return errors


def _refusal(group: GroupDescription, partition: TopicPartition) -> BrokerError | None:
    """The expected refusal: offsets of topics to which members subscribe cannot be deleted."""
    about = f"group {group.group!r}, {partition}"
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
