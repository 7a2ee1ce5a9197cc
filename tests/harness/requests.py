"""Short functions for requests that many tests send."""

from __future__ import annotations

import time
from typing import Any

from broker.protocol.errors import ErrorCode
from broker.protocol.messages.create_topics import CreateTopicsRequest
from broker.protocol.messages.fetch import FetchRequest
from broker.protocol.messages.heartbeat import HeartbeatRequest
from broker.protocol.messages.join_group import JoinGroupRequest
from broker.protocol.messages.list_offsets import ListOffsetsRequest
from broker.protocol.messages.metadata import MetadataRequest
from broker.protocol.messages.offset_commit import OffsetCommitRequest
from broker.protocol.messages.produce import ProduceRequest
from broker.protocol.messages.sync_group import SyncGroupRequest
from broker.protocol.record_batch import Record, build_batch, decode_records
from tests.harness.wire_client import WireClient

NO_TOPIC = bytes(16)


def create_topic(client: WireClient, name: str, partitions: int = 1, **configs: str) -> Any:
    """Create a topic; `configs` have underscores for dots. Returns the row of the answer."""
    topic = CreateTopicsRequest.Topic(
        name=name,
        num_partitions=partitions,
        replication_factor=1,
        assignments=[],
        configs=[CreateTopicsRequest.Config(name=key.replace("_", "."), value=value) for key, value in configs.items()],
    )
    (row,) = client.ask(CreateTopicsRequest(topics=[topic])).topics
    assert row.error_code == ErrorCode.NONE, row.error_message
    return row


def batch(*values: bytes, timestamp: int | None = None, **arguments: Any) -> bytes:
    now = int(time.time() * 1000) if timestamp is None else timestamp
    records = [Record(offset, now + offset, None, value) for offset, value in enumerate(values)]
    return build_batch(records, base_offset=0, **arguments)


def produce_request(topic: str, records: bytes | None, *, partition: int = 0, acks: int = -1) -> ProduceRequest:
    """For versions up to 12, which name topics by name."""
    part = ProduceRequest.Partition(index=partition, records=records)
    rows = [ProduceRequest.Topic(name=topic, partition_data=[part])]
    return ProduceRequest(acks=acks, timeout_ms=1000, topic_data=rows)


def produce(client: WireClient, topic: str, *values: bytes, partition: int = 0, **arguments: Any) -> Any:
    """Append one batch of values. Returns the row of the answer."""
    request = produce_request(topic, batch(*values, **arguments), partition=partition)
    return client.ask(request, 12).responses[0].partition_responses[0]


def fetch_request(
    topic: str,
    offset: int,
    *,
    partition: int = 0,
    max_wait_ms: int = 0,
    min_bytes: int = 1,
    max_bytes: int = 1 << 20,
    partition_max_bytes: int = 1 << 20,
    **arguments: Any,
) -> FetchRequest:
    """For versions up to 12, which name topics by name."""
    part = FetchRequest.Partition(partition=partition, fetch_offset=offset, partition_max_bytes=partition_max_bytes)
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        topics=[FetchRequest.Topic(topic=topic, partitions=[part])],
        **arguments,
    )


def fetch(client: WireClient, topic: str, offset: int, **arguments: Any) -> Any:
    """Fetch from one partition. Returns the row of the answer."""
    return client.ask(fetch_request(topic, offset, **arguments), 12).responses[0].partitions[0]


def values_of(row: Any) -> list[bytes | None]:
    """The values of the records in a row of a Fetch answer."""
    data = bytes(row.records or b"")
    values = []
    position = 0
    while position < len(data):
        values += [record.value for record in decode_records(data, position)]
        position += 12 + int.from_bytes(data[position + 8 : position + 12], "big")
    return values


def list_offset(client: WireClient, topic: str, timestamp: int, *, version: int = 10, partition: int = 0) -> Any:
    part = ListOffsetsRequest.Partition(partition_index=partition, timestamp=timestamp)
    request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsRequest.Topic(name=topic, partitions=[part])])
    return client.ask(request, version).topics[0].partitions[0]


def metadata_of(client: WireClient, *names: str, version: int = 12, create: bool = True) -> Any:
    topics = [MetadataRequest.Topic(name=name) for name in names]
    return client.ask(MetadataRequest(topics=topics, allow_auto_topic_creation=create), version)


def join_request(group: str, member_id: str = "", *, session_timeout_ms: int = 30000) -> JoinGroupRequest:
    """For versions up to 3, which need no second request for the member id."""
    return JoinGroupRequest(
        group_id=group,
        session_timeout_ms=session_timeout_ms,
        rebalance_timeout_ms=session_timeout_ms,
        member_id=member_id,
        protocol_type="test",
        protocols=[JoinGroupRequest.Protocol(name="only", metadata=b"")],
    )


def join_alone(client: WireClient, group: str) -> Any:
    """Join a group as its only member and bring it to Stable. Returns the answer to the join."""
    joined = client.ask(join_request(group), 3)
    assert joined.error_code == ErrorCode.NONE
    assignments = [SyncGroupRequest.Assignment(member_id=joined.member_id, assignment=b"all")]
    request = SyncGroupRequest(
        group_id=group, generation_id=joined.generation_id, member_id=joined.member_id, assignments=assignments
    )
    assert client.ask(request, 2).error_code == ErrorCode.NONE
    return joined


def heartbeat_request(group: str, joined: Any) -> HeartbeatRequest:
    return HeartbeatRequest(group_id=group, generation_id=joined.generation_id, member_id=joined.member_id)


def commit_request(group: str, joined: Any, topic: str, offset: int, partition: int = 0) -> OffsetCommitRequest:
    """As a member, or as a simple consumer if `joined` is None."""
    part = OffsetCommitRequest.Partition(partition_index=partition, committed_offset=offset, committed_metadata="")
    return OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=joined.generation_id if joined else -1,
        member_id=joined.member_id if joined else "",
        topics=[OffsetCommitRequest.Topic(name=topic, partitions=[part])],
    )
