"""The requests of golden scenarios: words of a line, and what they leave out, as messages."""

from __future__ import annotations

from collections.abc import Callable

from broker.protocol.messages.delete_groups import DeleteGroupsRequest
from broker.protocol.messages.describe_group_details import DescribeGroupDetailsRequest
from broker.protocol.messages.describe_groups import DescribeGroupsRequest
from broker.protocol.messages.find_coordinator import FindCoordinatorRequest
from broker.protocol.messages.heartbeat import HeartbeatRequest
from broker.protocol.messages.join_group import JoinGroupRequest
from broker.protocol.messages.leave_group import LeaveGroupRequest
from broker.protocol.messages.list_groups import ListGroupsRequest
from broker.protocol.messages.offset_commit import OffsetCommitRequest
from broker.protocol.messages.offset_delete import OffsetDeleteRequest
from broker.protocol.messages.offset_fetch import OffsetFetchRequest
from broker.protocol.messages.sync_group import SyncGroupRequest
from broker.protocol.messages.trigger_rebalance import TriggerRebalanceRequest
from broker.protocol.wire_types import Message

Values = dict[str, str]


def millis(seconds: str) -> int:
    return round(float(seconds) * 1000)


def _pairs(text: str) -> list[tuple[str, str]]:
    """ "a:1,b:2" as pairs; what has no colon has an empty second part."""
    return [(name, value) for name, _, value in (part.partition(":") for part in text.split(",") if part)]


def _partitions(text: str) -> dict[str, list[tuple[int, str]]]:
    """ "orders/0:5,orders/1:6" by topic."""
    out: dict[str, list[tuple[int, str]]] = {}
    for place, value in _pairs(text):
        topic, _, partition = place.partition("/")
        out.setdefault(topic, []).append((int(partition), value))
    return out


def _join(v: Values, version: int) -> Message:
    return JoinGroupRequest(
        group_id=v.get("group", "g"),
        session_timeout_ms=millis(v.get("session", "10")),
        rebalance_timeout_ms=millis(v.get("rebalance", "60")),
        member_id=v.get("member", ""),
        group_instance_id=v.get("instance"),
        protocol_type=v.get("type", "consumer"),
        protocols=[
            JoinGroupRequest.Protocol(name=name, metadata=metadata.encode())
            for name, metadata in _pairs(v.get("protocols", "range:one"))
        ],
        reason=v.get("reason"),
    )


def _sync(v: Values, version: int) -> Message:
    return SyncGroupRequest(
        group_id=v.get("group", "g"),
        generation_id=int(v["generation"]),
        member_id=v["member"],
        group_instance_id=v.get("instance"),
        protocol_type=v.get("type", "consumer"),
        protocol_name=v.get("protocol", "range"),
        assignments=[
            SyncGroupRequest.Assignment(member_id=member, assignment=assignment.encode())
            for member, assignment in _pairs(v.get("assign", ""))
        ],
    )


def _heartbeat(v: Values, version: int) -> Message:
    return HeartbeatRequest(
        group_id=v.get("group", "g"),
        generation_id=int(v["generation"]),
        member_id=v["member"],
        group_instance_id=v.get("instance"),
    )


def _leave(v: Values, version: int) -> Message:
    if version < 3:
        return LeaveGroupRequest(group_id=v.get("group", "g"), member_id=v["member"])
    member = LeaveGroupRequest.Member(
        member_id=v.get("member", ""), group_instance_id=v.get("instance"), reason=v.get("reason")
    )
    return LeaveGroupRequest(group_id=v.get("group", "g"), members=[member])


def _commit(v: Values, version: int) -> Message:
    return OffsetCommitRequest(
        group_id=v.get("group", "g"),
        generation_id_or_member_epoch=int(v.get("generation", "-1")),
        member_id=v.get("member", ""),
        group_instance_id=v.get("instance"),
        retention_time_ms=millis(v["retention"]) if "retention" in v else -1,
        topics=[
            OffsetCommitRequest.Topic(
                name=topic,
                partitions=[
                    OffsetCommitRequest.Partition(
                        partition_index=partition, committed_offset=int(offset), committed_metadata=v.get("metadata")
                    )
                    for partition, offset in partitions
                ],
            )
            for topic, partitions in _partitions(v["offsets"]).items()
        ],
    )


def _fetch(v: Values, version: int) -> Message:
    topics = [
        OffsetFetchRequest.Topic(name=topic, partition_indexes=[partition for partition, _ in partitions])
        for topic, partitions in _partitions(v.get("partitions", "")).items()
    ]
    asked = topics if "partitions" in v else None
    if version < 8:
        return OffsetFetchRequest(group_id=v.get("group", "g"), topics=asked)
    return OffsetFetchRequest(groups=[OffsetFetchRequest.Group(group_id=v.get("group", "g"), topics=asked)])


def _delete_offsets(v: Values, version: int) -> Message:
    return OffsetDeleteRequest(
        group_id=v.get("group", "g"),
        topics=[
            OffsetDeleteRequest.Topic(
                name=topic,
                partitions=[OffsetDeleteRequest.Partition(partition_index=partition) for partition, _ in partitions],
            )
            for topic, partitions in _partitions(v["partitions"]).items()
        ],
    )


def _names(v: Values) -> list[str]:
    return v.get("groups", "g").split(",")


REQUESTS: dict[str, Callable[[Values, int], Message]] = {
    "JoinGroup": _join,
    "SyncGroup": _sync,
    "Heartbeat": _heartbeat,
    "LeaveGroup": _leave,
    "OffsetCommit": _commit,
    "OffsetFetch": _fetch,
    "OffsetDelete": _delete_offsets,
    "DescribeGroups": lambda v, version: DescribeGroupsRequest(groups=_names(v)),
    "DescribeGroupDetails": lambda v, version: DescribeGroupDetailsRequest(groups=_names(v)),
    "TriggerRebalance": lambda v, version: TriggerRebalanceRequest(
        groups=[TriggerRebalanceRequest.Group(group_id=name, reason=v.get("reason")) for name in _names(v)]
    ),
    "DeleteGroups": lambda v, version: DeleteGroupsRequest(groups_names=_names(v)),
    "ListGroups": lambda v, version: ListGroupsRequest(),
    "FindCoordinator": lambda v, version: FindCoordinatorRequest(key=v.get("group", "g"), coordinator_keys=_names(v)),
}
