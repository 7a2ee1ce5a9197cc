"""Kafka's formatter prints the same for `__share_group_state` of our broker and of a Kafka with the same acknowledgements."""

from __future__ import annotations

import base64
from typing import Any

from broker.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from broker.protocol.share_state import SharePartitionKey, partition_for
from tests.harness.clusters import Cluster, fresh
from tests.harness.java_tools import Java
from tests.harness.reference_kafka import KafkaTools
from tests.harness.requests import create_topic, produce
from tests.harness.running import until
from tests.harness.share_member import ACCEPT, REJECT, RELEASE, Acks, Place, ShareMember, enable_share_groups
from tests.harness.wire_client import WireClient

TOPIC, PARTITIONS = "__share_group_state", 50
AVAILABLE, ACKNOWLEDGED, ARCHIVED = 0, 2, 4
MEMBER_ID = base64.urlsafe_b64encode(bytes(range(16))).decode().rstrip("=")


def test_the_formatter_prints_snapshots_and_updates(tools: KafkaTools, cluster: Cluster) -> None:
    group, topic = fresh("formatted"), fresh("formatted")
    host, _, port = cluster.bootstrap_servers.rpartition(":")
    with WireClient((host, int(port))) as client:
        enable_share_groups(client)
        place = create_topic(client, topic).topic_id, 0
        subscribe(client, group, topic)
        one = ShareMember(client, group, MEMBER_ID, place)
        # The group begins at the end, which is 0.
        one.fetch(max_wait_ms=1000)
        until(lambda: not produce(client, topic, *[b"x"] * 5).error_code)
        acquired(one, 5)
        acknowledge(one, place, [(0, 1, [ACCEPT]), (2, 2, [RELEASE]), (3, 3, [REJECT])])
        acknowledge(one, place, [(4, 4, [ACCEPT])])
        acquired(one, 1)
        acknowledge(one, place, [(2, 2, [ACCEPT])])
    key = SharePartitionKey(group, *place)
    lines = Java(tools, cluster).formatted("group.share.ShareGroupState", TOPIC, partition_for(key, PARTITIONS))
    topic_id = base64.urlsafe_b64encode(place[0]).decode().rstrip("=")
    found = [line for line in lines if line["key"]["data"] == {"groupId": group, "topicId": topic_id, "partition": 0}]
    snapshot, *updates = found
    assert snapshot["key"]["type"] == 0
    assert snapshot["value"]["version"] == 0
    times = {snapshot["value"]["data"].pop(name) for name in ("createTimestamp", "writeTimestamp")}
    assert len(times) == 1
    # The group has another epoch if its coordinator hears of the topic after the member has joined.
    assert snapshot["value"]["data"].pop("stateEpoch") in (1, 2)
    assert snapshot["value"]["data"] == {
        "snapshotEpoch": 0,
        "leaderEpoch": 0,
        "startOffset": -1,
        "stateBatches": [],
    }
    assert {update["key"]["type"] for update in updates} == {1}
    # A write has the start offset from before it.
    assert [update["value"]["data"] for update in updates] == [
        an_update(0, (0, 1, ACKNOWLEDGED, 1), (2, 2, AVAILABLE, 1), (3, 3, ARCHIVED, 1)),
        an_update(2, (4, 4, ACKNOWLEDGED, 1)),
        an_update(2, (2, 2, ACKNOWLEDGED, 2)),
    ]


def an_update(start_offset: int, *batches: tuple[int, int, int, int]) -> dict[str, Any]:
    names = "firstOffset", "lastOffset", "deliveryState", "deliveryCount"
    return {
        "snapshotEpoch": 0,
        "leaderEpoch": 0,
        "startOffset": start_offset,
        "stateBatches": [dict(zip(names, batch, strict=True)) for batch in batches],
    }


def subscribe(client: WireClient, group: str, topic: str) -> None:
    """Give the partition state: a member joins."""
    epoch = 0

    def has_it() -> bool:
        nonlocal epoch
        answer = client.ask(
            ShareGroupHeartbeatRequest(
                group_id=group, member_id="subscriber", member_epoch=epoch, subscribed_topic_names=[topic]
            )
        )
        epoch = epoch if answer.error_code else answer.member_epoch
        return answer.assignment is not None and bool(answer.assignment.topic_partitions)

    until(has_it)


def acquired(one: ShareMember, count: int) -> None:
    (row,) = one.fetch(max_wait_ms=5000).values()
    assert sum(last - first + 1 for first, last, _ in row.acquired) == count


def acknowledge(one: ShareMember, place: Place, acks: Acks) -> None:
    assert one.acknowledge({place: acks}) == {place: 0}
