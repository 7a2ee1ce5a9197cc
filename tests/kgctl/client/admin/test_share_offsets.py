"""The start offsets of share groups, from scripted coordinators."""

from __future__ import annotations

from typing import Any

from broker.protocol.errors import ErrorCode
from broker.protocol.messages.alter_share_group_offsets import AlterShareGroupOffsetsResponse
from broker.protocol.messages.delete_share_group_offsets import DeleteShareGroupOffsetsResponse
from broker.protocol.messages.describe_share_group_offsets import DescribeShareGroupOffsetsResponse
from kgctl.client.admin.share_offsets import Ignored, alter_share_offsets, delete_share_offsets, share_offsets
from kgctl.client.net.errors import LeftOut, Precondition
from kgctl.model.groups import Committed
from kgctl.model.topic_partition import TopicPartition
from tests.harness.feeding import FIND_COORDINATOR, METADATA, Feeder, cluster, coordinators, metadata

DESCRIBE, ALTER, DELETE = 90, 91, 92
A, B = TopicPartition("t", 0), TopicPartition("t", 1)


def feeder(key: int, answer: Any, *, describe: Any = None) -> Feeder:
    found = {METADATA: metadata({"t": {0: 1, 1: 1}}), FIND_COORDINATOR: coordinators(lambda _: 1), key: answer}
    return Feeder(found if describe is None else found | {DESCRIBE: describe})


def test_what_an_answer_leaves_out_is_not_altered() -> None:
    """Kafka 4.1.0 answers without partitions, and changes nothing."""
    row = AlterShareGroupOffsetsResponse.Partition
    some = AlterShareGroupOffsetsResponse.Topic(topic_name="t", topic_id=bytes(16), partitions=[row(partition_index=0)])
    fed = feeder(ALTER, lambda _: AlterShareGroupOffsetsResponse(responses=[some]))
    found = fed.run(alter_share_offsets(cluster(), {"g": {A: 3, B: Committed(4)}}))["g"]
    assert (found[A], type(found[B])) == (None, Ignored)
    asked: Any = fed.calls(ALTER)[0].request
    assert [(one.partition_index, one.start_offset) for one in asked.topics[0].partitions] == [(0, 3), (1, 4)]


def test_partitions_without_a_start_offset_have_none() -> None:
    row = DescribeShareGroupOffsetsResponse.Partition
    rows = [
        row(partition_index=0, start_offset=7),
        row(partition_index=1, start_offset=-1),
        row(partition_index=2, start_offset=-1, error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED),
    ]
    topic = DescribeShareGroupOffsetsResponse.Topic(topic_name="t", topic_id=bytes(16), partitions=rows)
    group = DescribeShareGroupOffsetsResponse.Group(group_id="g", topics=[topic])
    fed = feeder(DESCRIBE, lambda _: DescribeShareGroupOffsetsResponse(groups=[group]))
    found = fed.run(share_offsets(cluster(), ["g"]))["g"]
    assert isinstance(found, dict)
    assert found[A] == Committed(7)
    assert found[B] == Committed(None)
    refused = found[TopicPartition("t", 2)].error
    assert refused is not None
    assert refused.name == "TOPIC_AUTHORIZATION_FAILED"


def test_start_offsets_are_deleted_by_topic() -> None:
    row = DescribeShareGroupOffsetsResponse.Partition
    topics = [
        DescribeShareGroupOffsetsResponse.Topic(
            topic_name=name, topic_id=bytes(16), partitions=[row(partition_index=n, start_offset=3) for n in (0, 1)]
        )
        for name in ("t", "u", "v")
    ]
    group = DescribeShareGroupOffsetsResponse.Group(group_id="g", topics=topics)
    deleted = DeleteShareGroupOffsetsResponse.Topic(topic_name="t", topic_id=bytes(16))
    fed = feeder(
        DELETE,
        lambda _: DeleteShareGroupOffsetsResponse(responses=[deleted]),
        describe=lambda _: DescribeShareGroupOffsetsResponse(groups=[group]),
    )
    part, silent = TopicPartition("u", 1), [TopicPartition("v", 0), TopicPartition("v", 1)]
    found = fed.run(delete_share_offsets(cluster(), {"g": [A, B, part, *silent]}))["g"]
    assert (found[A], found[B], type(found[part])) == (None, None, Precondition)
    assert {type(found[key]) for key in silent} == {LeftOut}
    asked: Any = fed.calls(DELETE)[0].request
    assert [one.topic_name for one in asked.topics] == ["t", "v"]
