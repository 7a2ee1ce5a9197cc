"""Produce: append record batches to partitions."""

from __future__ import annotations

from broker.protocol.wire_types import (
    ARRAY,
    INT16,
    INT32,
    INT64,
    RECORDS,
    STRING,
    UUID,
    ZERO_UUID,
    Message,
    Struct,
    wire,
)


class ProduceRequest(Message):
    """v7 allows zstd (KIP-110); v12 adds partitions to the transaction implicitly (KIP-890); v13 replaces topic names
    with ids (KIP-516).
    """

    API_KEY, VERSIONS, FLEXIBLE_SINCE = 0, range(3, 14), 9

    # v0 to v2 are advertised but refused: without them librdkafka disables compression (KAFKA-18659).
    ADVERTISED_SINCE = 0

    class Partition(Struct):
        index: int = wire(INT32)
        records: bytes | memoryview | None = wire(RECORDS, null_since=0)

    class Topic(Struct):
        name: str = wire(STRING, default="", until=12)
        topic_id: bytes = wire(UUID, default=ZERO_UUID, since=13)
        partition_data: list[ProduceRequest.Partition] = wire(ARRAY("Partition"))

    transactional_id: str | None = wire(STRING, default=None, null_since=0)
    acks: int = wire(INT16)
    timeout_ms: int = wire(INT32)
    topic_data: list[Topic] = wire(ARRAY(Topic))


class ProduceResponse(Message):
    """v5 adds the log start offset; v8 adds an error for each refused record (KIP-467); v10 adds the current leader
    (KIP-951); v13 replaces topic names with ids.
    """

    API_KEY, VERSIONS, FLEXIBLE_SINCE = 0, range(3, 14), 9

    class RecordError(Struct):
        batch_index: int = wire(INT32)
        batch_index_error_message: str | None = wire(STRING, default=None, null_since=0)

    class CurrentLeader(Struct):
        leader_id: int = wire(INT32, default=-1)
        leader_epoch: int = wire(INT32, default=-1)

    class Partition(Struct):
        index: int = wire(INT32)
        error_code: int = wire(INT16, default=0)
        base_offset: int = wire(INT64, default=-1)
        log_append_time_ms: int = wire(INT64, default=-1)
        log_start_offset: int = wire(INT64, default=-1, since=5)
        record_errors: list[ProduceResponse.RecordError] = wire(ARRAY("RecordError"), default=[], since=8)
        error_message: str | None = wire(STRING, default=None, since=8, null_since=8)
        current_leader: ProduceResponse.CurrentLeader | None = wire("CurrentLeader", default=None, since=10, tag=0)

    class Topic(Struct):
        name: str = wire(STRING, default="", until=12)
        topic_id: bytes = wire(UUID, default=ZERO_UUID, since=13)
        partition_responses: list[ProduceResponse.Partition] = wire(ARRAY("Partition"))

    class NodeEndpoint(Struct):
        node_id: int = wire(INT32)
        host: str = wire(STRING)
        port: int = wire(INT32)
        rack: str | None = wire(STRING, default=None, null_since=0)

    responses: list[Topic] = wire(ARRAY(Topic))
    throttle_time_ms: int = wire(INT32, default=0)
    node_endpoints: list[NodeEndpoint] = wire(ARRAY(NodeEndpoint), default=[], since=10, tag=0)
