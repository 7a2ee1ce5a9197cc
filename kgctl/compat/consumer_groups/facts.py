"""Groups, members and offsets as the Java client gets them: in the order of the answers, from the requests that it sends."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from broker.light_dataclasses import dataclass
from broker.protocol.consumer_protocol import decode_assignment
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse
from broker.protocol.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from broker.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from broker.protocol.wire_types import DecodeError
from kgctl.client.admin import offsets
from kgctl.client.net.cluster import Ask, Batch, Cluster, Node
from kgctl.client.net.errors import BrokerError, KgctlError
from kgctl.client.net.steps import Steps
from kgctl.compat.java_errors import NO_ANSWER, JavaError, illegal_argument, java_error, of_code
from kgctl.compat.tool import Session
from kgctl.model.failure import RowError
from kgctl.model.groups import Committed
from kgctl.model.topic_partition import TopicPartition


@dataclass(frozen=True, slots=True)
class Member:
    """`is_upgraded`: whether it uses the newer protocol; None if the broker does not say."""

    member_id: str
    instance_id: str
    client_id: str
    host: str
    assignment: tuple[TopicPartition, ...]
    target: tuple[TopicPartition, ...] = ()
    epoch: int | None = None
    is_upgraded: bool | None = None


@dataclass(frozen=True, slots=True)
class Group:
    """A described group; epochs only if it uses the newer protocol."""

    group: str
    state: str
    strategy: str
    coordinator: Node
    members: tuple[Member, ...]
    epoch: int | None = None
    target_epoch: int | None = None


# --- lists ---


def list_groups(session: Session, states: Sequence[str] = (), types: Sequence[str] = ()) -> list[tuple[str, str, str]]:
    """Group, type and state of each consumer group, as the brokers list them."""
    try:
        answers = session.run(_listings(session.admin.cluster, states, types), "listGroups")
    except JavaError as error:
        if error.name not in NO_ANSWER:
            raise
        about = "Failed to find brokers to send ListGroups"
        failure = JavaError("org.apache.kafka.common.KafkaException", about, error.name, error.exit_code)
        raise failure.within() from error
    found = {}
    for answer in answers:
        for row in answer.groups:
            if row.protocol_type in ("", "consumer"):
                found[row.group_id] = (row.group_id, row.group_type.capitalize() or "Unknown", row.group_state)
    return list(found.values())


def _listings(cluster: Cluster, states: Sequence[str], types: Sequence[str]) -> Steps[list[ListGroupsResponse]]:
    nodes = yield from cluster.all_nodes()
    request = ListGroupsRequest(states_filter=list(states), types_filter=list(types))
    lowest = 5 if types else 4 if states else 0
    answers = yield from cluster.ask_each([Ask(node.endpoint, request, ListGroupsResponse, lowest) for node in nodes])
    found: list[ListGroupsResponse] = []
    for node, answer in zip(nodes, answers, strict=True):
        if isinstance(answer, KgctlError):
            raise answer
        if answer.error_code:
            raise BrokerError(answer.error_code, f"broker {node.node_id}")
        found.append(answer)
    return found


# --- descriptions ---


def describe(session: Session, groups: Iterable[str], version: int) -> dict[str, Group | JavaError]:
    """Each group, first asked for as one of the newer protocol, else as a classic one with at most this request version.

    No coordinator is found for an empty name.
    """
    every = list(dict.fromkeys(groups))
    names = list(filter(None, every))
    cluster = session.admin.cluster
    newer = session.run(cluster.at_coordinators(names, _ask_newer), "findCoordinator")
    rest = [name for name in names if not isinstance(newer[name], Group)]
    messages = {name: newer[name].error_message for name in rest if not isinstance(newer[name], KgctlError)}

    def ask_classic(node: Node, some: list[str]) -> list[Batch[str]]:
        request = DescribeGroupsRequest(groups=some)
        ask = Ask(node.endpoint, request, DescribeGroupsResponse, max_version=version)
        return [Batch(ask, some, lambda answer: {row.group_id: _classic(node, row, messages) for row in answer.groups})]

    classic = session.run(cluster.at_coordinators(rest, ask_classic), "findCoordinator") if rest else {}
    found = newer | classic | {"": BrokerError(ErrorCode.INVALID_GROUP_ID, "the group")}
    return {
        name: failure(session, found[name]) if isinstance(found[name], KgctlError) else found[name] for name in every
    }


def failure(session: Session, error: KgctlError | RowError) -> JavaError:
    """The error about a group, as this release of the Java client words it."""
    found = java_error(error, call="findCoordinator")
    if found.name != "INVALID_GROUP_ID" or session.host.dialect != "3.9":
        return found
    return JavaError(found.kind, "The configured groupId is invalid.", found.name, found.exit_code)


def topic_failure(topic: str, code: int) -> JavaError:
    """The client itself refuses an empty name."""
    return of_code(code, None if topic else "The given topic name '' cannot be represented in a request.")


def _ask_newer(node: Node, names: list[str]) -> list[Batch[str]]:
    request = ConsumerGroupDescribeRequest(group_ids=names)
    ask = Ask(node.endpoint, request, ConsumerGroupDescribeResponse)
    return [Batch(ask, names, lambda answer: {row.group_id: _newer(node, row) for row in answer.groups})]


def _newer(
    node: Node, row: ConsumerGroupDescribeResponse.Group
) -> Group | KgctlError | ConsumerGroupDescribeResponse.Group:
    """The group; the row itself if this is no group of the newer protocol."""
    if row.error_code in (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION):
        return row
    if row.error_code:
        return BrokerError(row.error_code, row.group_id, row.error_message)
    members = tuple(
        Member(
            member.member_id,
            member.instance_id or "",
            member.client_id,
            member.client_host,
            _places(member.assignment),
            _places(member.target_assignment),
            member.member_epoch,
            None if member.member_type < 0 else member.member_type == 1,
        )
        for member in row.members
    )
    return Group(row.group_id, row.group_state, row.assignor_name, node, members, row.group_epoch, row.assignment_epoch)


def _places(assignment: ConsumerGroupDescribeResponse.Assignment) -> tuple[TopicPartition, ...]:
    return tuple(TopicPartition(topic.topic_name, n) for topic in assignment.topic_partitions for n in topic.partitions)


def _classic(
    node: Node, row: DescribeGroupsResponse.Group, messages: Mapping[str, str | None]
) -> Group | JavaError | KgctlError:
    if row.error_code:
        error = BrokerError(row.error_code, row.group_id)
        return error if error.retriable else of_code(row.error_code, messages.get(row.group_id) or row.error_message)
    if row.protocol_type not in ("", "consumer"):
        return illegal_argument(f"GroupId {row.group_id} is not a consumer group ({row.protocol_type}).")
    members = tuple(
        Member(member.member_id, member.group_instance_id or "", member.client_id, member.client_host, _owned(member))
        for member in row.members
    )
    return Group(row.group_id, row.group_state, row.protocol_data, node, members)


def _owned(member: DescribeGroupsResponse.Member) -> tuple[TopicPartition, ...]:
    try:
        decoded = decode_assignment(member.member_assignment) if member.member_assignment else None
    except DecodeError:
        decoded = None
    topics = decoded.assigned_partitions if decoded else []
    return tuple(TopicPartition(topic.topic, number) for topic in topics for number in topic.partitions)


# --- offsets ---


def committed(session: Session, group: str) -> dict[TopicPartition, Committed]:
    """Committed offsets in the order of the answer. Partitions with an error are left out."""
    found = session.run(offsets.committed(session.admin.cluster, [group]), "findCoordinator")[group]
    if isinstance(found, KgctlError):
        raise java_error(found, call="findCoordinator").within().rethrown()
    return {key: commit for key, commit in found.items() if commit.offset is not None}


def log_offsets(session: Session, partitions: Iterable[TopicPartition], moment: int) -> dict[TopicPartition, int]:
    """The offset of each partition at LATEST, EARLIEST or a timestamp; -1 if no record is that new. Raises JavaError."""
    wanted = dict.fromkeys(partitions, moment)
    found = session.run(offsets.list_offsets(session.admin.cluster, wanted), "listOffsets") if wanted else {}
    for answer in found.values():
        if isinstance(answer, KgctlError):
            raise java_error(answer, call="listOffsets").within().rethrown()
    answers = {key: answer.offset for key, answer in found.items() if isinstance(answer, offsets.OffsetAt)}
    return {key: answers[key] for key in wanted}
