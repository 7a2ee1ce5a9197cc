"""The start offsets of share groups, from scripted coordinators."""

from __future__ import annotations

from typing import Any

from broker.protocol.errors import ErrorCode
from broker.protocol.messages.alter_share_group_offsets import AlterShareGroupOffsetsResponse
from broker.protocol.messages.describe_share_group_offsets import DescribeShareGroupOffsetsResponse
from kgctl.client.admin.share_offsets import alter_share_offsets, share_offsets
from kgctl.client.net.errors import LeftOut
from kgctl.model.groups import Committed
from kgctl.model.topic_partition import TopicPartition
from tests.harness.feeding import FIND_COORDINATOR, METADATA, Feeder, cluster, coordinators, metadata

DESCRIBE, ALTER = 90, 91
A, B = TopicPartition("t", 0), TopicPartition("t", 1)


def feeder(key: int, answer: Any) -> Feeder:
    found = {METADATA: metadata({"t": {0: 1, 1: 1}}), FIND_COORDINATOR: coordinators(lambda _: 1), key: answer}
    return Feeder(found)


def test_what_an_answer_leaves_out_is_not_altered() -> None:
    """Kafka 4.1.0 answers without partitions, and changes nothing."""
    row = AlterShareGroupOffsetsResponse.Partition
    some = AlterShareGroupOffsetsResponse.Topic(topic_name="t", topic_id=bytes(16), partitions=[row(partition_index=0)])
    fed = feeder(ALTER, lambda _: AlterShareGroupOffsetsResponse(responses=[some]))
    found = fed.run(alter_share_offsets(cluster(), {"g": {A: 3, B: Committed(4)}}))["g"]
    assert (found[A], type(found[B])) == (None, LeftOut)
    asked: Any = fed.calls(ALTER)[0].request
    assert [(one.partition_index, one.start_offset) for one in asked.topics[0].partitions] == [(0, 3), (1, 4)]


def test_partitions_without_a_start_offset_are_left_out() -> None:
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
    assert B not in found
    refused = found[TopicPartition("t", 2)].error
    assert refused is not None
    assert refused.name == "TOPIC_AUTHORIZATION_FAILED"
