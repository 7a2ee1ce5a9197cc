"""The requests of golden scenarios: a line's words and the defaults for what it omits, as messages."""

from __future__ import annotations

from collections.abc import Callable

from broker.protocol.consumer_protocol import ConsumerProtocolSubscription, encode_blob
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
from broker.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest
from broker.protocol.wire_types import Message

Values = dict[str, str]


def millis(seconds: str) -> int:
    return round(float(seconds) * 1000)


def _pairs(text: str) -> list[tuple[str, str]]:
    """ "a:1,b:2" as pairs. Without a colon the second part is empty."""
    return [(name, value) for name, _, value in (part.partition(":") for part in text.split(",") if part)]


def _or_null(text: str) -> str | None:
    return None if text == "null" else text


def _partitions(text: str) -> dict[str, list[tuple[int, str]]]:
    """ "orders/0:5,orders/1:6" by topic."""
    out: dict[str, list[tuple[int, str]]] = {}
    for place, value in _pairs(text):
        topic, _, partition = place.partition("/")
        out.setdefault(topic, []).append((int(partition), value))
    return out


def _member(text: str) -> LeaveGroupRequest.Member:
    """A leaving member: "c1-A", "i1-A/i1" or "/i1", optionally followed by ":its_reason"."""
    name, _, reason = text.partition(":")
    member_id, _, instance_id = name.partition("/")
    return LeaveGroupRequest.Member(
        member_id=member_id, group_instance_id=instance_id or None, reason=reason.replace("_", " ") or None
    )


def _metadata(text: str) -> bytes:
    """ "@orders+clicks" is a consumer's subscription to these topics; anything else is literal."""
    if not text.startswith("@"):
        return text.encode()
    return encode_blob(ConsumerProtocolSubscription(topics=text[1:].split("+")), 0)


def _join(v: Values, version: int) -> Message:
    return JoinGroupRequest(
        group_id=v.get("group", "g"),
        session_timeout_ms=millis(v.get("session", "10")),
        rebalance_timeout_ms=millis(v.get("rebalance", "60")),
        member_id=v.get("member", ""),
        group_instance_id=v.get("instance"),
        protocol_type=v.get("type", "consumer"),
        protocols=[
            JoinGroupRequest.Protocol(name=name, metadata=_metadata(metadata))
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
        protocol_type=_or_null(v.get("type", "consumer")),
        protocol_name=_or_null(v.get("protocol", "range")),
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
    if "members" in v:
        leaving = [_member(text) for text in v["members"].split(",")]
    else:
        one = LeaveGroupRequest.Member(
            member_id=v.get("member", ""), group_instance_id=v.get("instance"), reason=v.get("reason")
        )
        leaving = [one]
    return LeaveGroupRequest(group_id=v.get("group", "g"), members=leaving)


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
                        partition_index=partition,
                        committed_offset=int(offset),
                        committed_leader_epoch=int(v.get("epoch", "-1")),
                        committed_metadata=v.get("metadata"),
                    )
                    for partition, offset in partitions
                ],
            )
            for topic, partitions in _partitions(v["offsets"]).items()
        ],
    )


def _commit_in_transaction(v: Values, version: int) -> Message:
    return TxnOffsetCommitRequest(
        transactional_id=v.get("transactional_id", f"t{v['producer']}"),
        group_id=v.get("group", "g"),
        producer_id=int(v["producer"]),
        producer_epoch=int(v.get("epoch", "0")),
        generation_id=int(v.get("generation", "-1")),
        member_id=v.get("member", ""),
        group_instance_id=v.get("instance"),
        topics=[
            TxnOffsetCommitRequest.Topic(
                name=topic,
                partitions=[
                    TxnOffsetCommitRequest.Partition(
                        partition_index=partition,
                        committed_offset=int(offset),
                        committed_leader_epoch=int(v.get("leader_epoch", "-1")),
                        committed_metadata=v.get("metadata"),
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
    require_stable = v.get("stable") == "true"
    if version < 8:
        return OffsetFetchRequest(group_id=v.get("group", "g"), topics=asked, require_stable=require_stable)
    groups = [
        OffsetFetchRequest.Group(
            group_id=group_id, member_id=v.get("member"), member_epoch=int(v.get("generation", "-1")), topics=asked
        )
        for group_id in (v["groups"].split(",") if "groups" in v else [v.get("group", "g")])
    ]
    return OffsetFetchRequest(groups=groups, require_stable=require_stable)


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
    return v.get("groups", v.get("group", "g")).split(",")


def _listed(v: Values, name: str) -> list[str]:
    return v[name].split(",") if name in v else []


REQUESTS: dict[str, Callable[[Values, int], Message]] = {
    "JoinGroup": _join,
    "SyncGroup": _sync,
    "Heartbeat": _heartbeat,
    "LeaveGroup": _leave,
    "OffsetCommit": _commit,
    "TxnOffsetCommit": _commit_in_transaction,
    "OffsetFetch": _fetch,
    "OffsetDelete": _delete_offsets,
    "DescribeGroups": lambda v, version: DescribeGroupsRequest(groups=_names(v)),
    "DescribeGroupDetails": lambda v, version: DescribeGroupDetailsRequest(groups=_names(v)),
    "TriggerRebalance": lambda v, version: TriggerRebalanceRequest(
        groups=[TriggerRebalanceRequest.Group(group_id=name, reason=v.get("reason")) for name in _names(v)]
    ),
    "DeleteGroups": lambda v, version: DeleteGroupsRequest(groups_names=_names(v)),
    "ListGroups": lambda v, version: ListGroupsRequest(
        states_filter=_listed(v, "states"), types_filter=_listed(v, "types")
    ),
    "FindCoordinator": lambda v, version: FindCoordinatorRequest(
        key=v.get("group", "g"), key_type=int(v.get("key_type", "0")), coordinator_keys=_names(v)
    ),
}
