"""Share groups over sockets: enabled by a feature, durable with the state of their partitions, deleted with it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from broker.protocol.errors import ErrorCode
from broker.protocol.messages.alter_share_group_offsets import AlterShareGroupOffsetsRequest
from broker.protocol.messages.delete_groups import DeleteGroupsRequest
from broker.protocol.messages.delete_share_group_offsets import DeleteShareGroupOffsetsRequest
from broker.protocol.messages.delete_topics import DeleteTopicsRequest
from broker.protocol.messages.describe_share_group_offsets import DescribeShareGroupOffsetsRequest
from broker.protocol.messages.list_groups import ListGroupsRequest
from broker.protocol.messages.share_group_describe import ShareGroupDescribeRequest
from broker.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from broker.protocol.messages.update_features import UpdateFeaturesRequest
from broker.protocol.wire_types import Message
from tests.harness.requests import create_topic
from tests.harness.running import RunningBroker
from tests.harness.wire_client import WireClient

TIMEOUTS = {"group.share.min.session.timeout.ms": "1000", "group.share.session.timeout.ms": "6000"}


@pytest.fixture
def running(tmp_path: Path) -> Iterator[RunningBroker]:
    with RunningBroker(tmp_path / "data", **TIMEOUTS) as running:
        yield running


@pytest.fixture
def member(running: RunningBroker) -> Iterator[WireClient]:
    with running.client() as client:
        assert not set_level(client, 1)
        create_topic(client, "t", partitions=3)
        yield client


def set_level(client: WireClient, level: int) -> int:
    update = UpdateFeaturesRequest.Update(
        feature="share.version", max_version_level=level, upgrade_type=1 if level else 2
    )
    code: int = client.ask(UpdateFeaturesRequest(feature_updates=[update])).error_code
    return code


def beat(client: WireClient, epoch: int, *topics: str, member_id: str = "m1") -> tuple[int, int, list[int] | None]:
    """Error, epoch, and the partitions of the only topic that is assigned."""
    answer = client.ask(
        ShareGroupHeartbeatRequest(
            group_id="g", member_id=member_id, member_epoch=epoch, subscribed_topic_names=list(topics) or None
        )
    )
    if answer.assignment is None:
        return answer.error_code, answer.member_epoch, None
    return (
        answer.error_code,
        answer.member_epoch,
        [n for row in answer.assignment.topic_partitions for n in row.partitions],
    )


def describe(client: WireClient) -> Any:
    (group,) = client.ask(ShareGroupDescribeRequest(group_ids=["g"])).groups
    return group


def offsets(client: WireClient, topics: list[Any] | None = None) -> dict[str, dict[int, int]]:
    group = DescribeShareGroupOffsetsRequest.Group(group_id="g", topics=topics)
    (found,) = client.ask(DescribeShareGroupOffsetsRequest(groups=[group])).groups
    return {row.topic_name: {one.partition_index: one.start_offset for one in row.partitions} for row in found.topics}


def alter(client: WireClient, offset: int) -> Any:
    row = AlterShareGroupOffsetsRequest.Partition(partition_index=0, start_offset=offset)
    topics = [AlterShareGroupOffsetsRequest.Topic(topic_name="t", partitions=[row])]
    return client.ask(AlterShareGroupOffsetsRequest(group_id="g", topics=topics))


REFUSED: list[Message] = [
    ShareGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=0, subscribed_topic_names=["t"]),
    ShareGroupDescribeRequest(group_ids=["g"]),
    DescribeShareGroupOffsetsRequest(groups=[DescribeShareGroupOffsetsRequest.Group(group_id="g", topics=None)]),
    AlterShareGroupOffsetsRequest(group_id="g", topics=[]),
    DeleteShareGroupOffsetsRequest(group_id="g", topics=[]),
]


@pytest.mark.parametrize("request_", REFUSED, ids=lambda request: type(request).__name__)
def test_share_groups_are_refused_until_they_are_enabled(client: WireClient, request_: Message) -> None:
    answer = client.ask(request_)
    row = answer.groups[0] if hasattr(answer, "groups") else answer
    assert row.error_code == ErrorCode.UNSUPPORTED_VERSION


def test_a_group_and_its_partitions_survive_a_restart(running: RunningBroker, member: WireClient) -> None:
    assert beat(member, 0, "t") == (0, 1, [])
    assert beat(member, 1) == (0, 2, [0, 1, 2])
    before = describe(member)
    running.restart()
    with running.client() as again:
        assert describe(again) == before
        assert offsets(again) == {"t": {0: -1, 1: -1, 2: -1}}
        assert beat(again, 2) == (0, 2, None)
        assert beat(again, -1) == (0, -1, None)


def test_offsets_are_altered_and_deleted(running: RunningBroker, member: WireClient) -> None:
    beat(member, 0, "t")
    assert alter(member, 5).error_code == ErrorCode.NON_EMPTY_GROUP
    beat(member, -1)
    assert alter(member, 5).error_code == 0
    running.restart()
    with running.client() as again:
        assert offsets(again)["t"] == {0: 5, 1: -1, 2: -1}
        topics = [DeleteShareGroupOffsetsRequest.Topic(topic_name="t")]
        assert again.ask(DeleteShareGroupOffsetsRequest(group_id="g", topics=topics)).responses[0].error_code == 0
        assert offsets(again) == {}
        named = [DescribeShareGroupOffsetsRequest.Topic(topic_name="t", partitions=[0])]
        assert offsets(again, named) == {"t": {0: -1}}


def test_deleted_topics_and_groups_leave_nothing(running: RunningBroker, member: WireClient) -> None:
    create_topic(member, "doomed")
    beat(member, 0, "t", "doomed")
    topics = [DeleteTopicsRequest.Topic(name="doomed")]
    assert not member.ask(DeleteTopicsRequest(topics=topics, timeout_ms=1_000)).responses[0].error_code
    assert offsets(member) == {"t": {0: -1, 1: -1, 2: -1}}
    assert beat(member, 1)[2] == [0, 1, 2]
    assert member.ask(DeleteGroupsRequest(groups_names=["g"])).results[0].error_code == ErrorCode.NON_EMPTY_GROUP
    beat(member, -1)
    alter(member, 5)
    assert member.ask(DeleteGroupsRequest(groups_names=["g"])).results[0].error_code == 0
    running.restart()
    with running.client() as again:
        assert describe(again).error_code == ErrorCode.GROUP_ID_NOT_FOUND
        assert beat(again, 0, "t") == (0, 1, [])
        assert offsets(again)["t"][0] == -1


def test_groups_survive_a_downgrade(member: WireClient) -> None:
    beat(member, 0, "t")
    assert set_level(member, 0) == 0
    assert beat(member, 1)[0] == ErrorCode.UNSUPPORTED_VERSION
    listed = member.ask(ListGroupsRequest(states_filter=[], types_filter=["share"])).groups
    assert [(row.group_id, row.group_state) for row in listed] == [("g", "Stable")]
    assert set_level(member, 1) == 0
    assert beat(member, 1) == (0, 2, [0, 1, 2])
