"""What is seen of a walk's groups: of either kind, with their committed offsets."""

from __future__ import annotations

from typing import Any

State = dict[str, Any]
DEAD = "Dead"


def seen(consumer: Any, classic: Any, offsets: Any) -> State:
    """The state of each group, from ConsumerGroupDescribe v1, DescribeGroups v5 and OffsetFetch v8 as they are recorded."""
    committed = {group["group_id"]: _committed(group) for group in offsets["groups"]}
    by_classic = {group["group_id"]: group for group in classic["groups"]}
    return {
        group["group_id"]: (_consumer(group) if not group["error_code"] else _classic(by_classic[group["group_id"]]))
        | {"offsets": committed[group["group_id"]]}
        for group in consumer["groups"]
    }


def _committed(group: Any) -> dict[str, Any]:
    return {
        f"{topic['name']}-{one['partition_index']}": [one["committed_offset"], one["metadata"]]
        for topic in group["topics"]
        for one in topic["partitions"]
        if one["committed_offset"] >= 0
    }


def _consumer(group: Any) -> State:
    """Epochs are [of the group, of the target assignment]; a member's are its epoch, what it has and what it shall have."""
    return {
        "type": "consumer",
        "state": group["group_state"],
        "epochs": [group["group_epoch"], group["assignment_epoch"]],
        "assignor": group["assignor_name"],
        "members": {
            one["member_id"]: {
                "epoch": one["member_epoch"],
                "client": one["client_id"],
                "instance": one["instance_id"],
                "rack": one["rack_id"],
                "topics": one["subscribed_topic_names"],
                "regex": one["subscribed_topic_regex"],
                "has": _partitions(one["assignment"]),
                "target": _partitions(one["target_assignment"]),
                "type": one["member_type"],
            }
            for one in group["members"]
        },
    }


def _partitions(assignment: Any) -> dict[str, list[int]]:
    return {one["topic_id"]: one["partitions"] for one in assignment["topic_partitions"]}


def _classic(group: Any) -> State:
    if group["group_state"] == DEAD:
        return {"type": "", "state": DEAD, "members": {}}
    return {
        "type": "classic",
        "state": group["group_state"],
        "protocol": [group["protocol_type"], group["protocol_data"]],
        "members": {
            one["member_id"]: {
                "client": one["client_id"],
                "instance": one["group_instance_id"],
                "metadata": one["member_metadata"],
                "has": one["member_assignment"],
            }
            for one in group["members"]
        },
    }
