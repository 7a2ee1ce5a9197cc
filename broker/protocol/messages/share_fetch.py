"""ShareFetch: acquire records of share partitions, and acknowledge what was acquired before (KIP-932)."""

from __future__ import annotations

from typing import Any

from broker.protocol.wire_types import ARRAY, INT8, INT16, INT32, INT64, RECORDS, STRING, UUID, Message, Struct, wire


class ShareFetchRequest(Message):
    """Session epoch 0 opens a session, -1 closes it. v1 is the first stable version.

    An acknowledgement batch has a type for each of its offsets, or one for all: 0 gap, 1 accept, 2 release, 3 reject.
    """

    API_KEY, VERSIONS, FLEXIBLE_SINCE = 78, range(1, 2), 0

    class AcknowledgementBatch(Struct):
        first_offset: int = wire(INT64)
        last_offset: int = wire(INT64)
        acknowledge_types: list[int] = wire(ARRAY(INT8))

    class Partition(Struct):
        partition_index: int = wire(INT32)
        acknowledgement_batches: list[ShareFetchRequest.AcknowledgementBatch] = wire(ARRAY("AcknowledgementBatch"))

    class Topic(Struct):
        topic_id: bytes = wire(UUID)
        partitions: list[ShareFetchRequest.Partition] = wire(ARRAY("Partition"))

    class ForgottenTopic(Struct):
        topic_id: bytes = wire(UUID)
        partitions: list[int] = wire(ARRAY(INT32))

    group_id: str | None = wire(STRING, default=None, null_since=0)
    member_id: str | None = wire(STRING, null_since=0)
    share_session_epoch: int = wire(INT32)
    max_wait_ms: int = wire(INT32)
    min_bytes: int = wire(INT32)
    max_bytes: int = wire(INT32, default=2**31 - 1)
    max_records: int = wire(INT32)
    batch_size: int = wire(INT32)
    topics: list[Topic] = wire(ARRAY(Topic))
    forgotten_topics_data: list[ForgottenTopic] = wire(ARRAY(ForgottenTopic), default=[])


class ShareFetchResponse(Message):
    """`acquired_records` says which of the records are the member's, until the lock times out."""

    API_KEY, VERSIONS, FLEXIBLE_SINCE = 78, range(1, 2), 0

    class CurrentLeader(Struct):
        leader_id: int = wire(INT32, default=0)
        leader_epoch: int = wire(INT32, default=0)

    class AcquiredRecords(Struct):
        first_offset: int = wire(INT64)
        last_offset: int = wire(INT64)
        delivery_count: int = wire(INT16)

    class Partition(Struct):
        partition_index: int = wire(INT32)
        error_code: int = wire(INT16, default=0)
        error_message: str | None = wire(STRING, default=None, null_since=0)
        acknowledge_error_code: int = wire(INT16, default=0)
        acknowledge_error_message: str | None = wire(STRING, default=None, null_since=0)
        current_leader: ShareFetchResponse.CurrentLeader = wire("CurrentLeader")
        records: Any = wire(RECORDS)
        acquired_records: list[ShareFetchResponse.AcquiredRecords] = wire(ARRAY("AcquiredRecords"), default=[])

    class Topic(Struct):
        topic_id: bytes = wire(UUID)
        partitions: list[ShareFetchResponse.Partition] = wire(ARRAY("Partition"))

    class NodeEndpoint(Struct):
        node_id: int = wire(INT32)
        host: str = wire(STRING)
        port: int = wire(INT32)
        rack: str | None = wire(STRING, default=None, null_since=0)

    throttle_time_ms: int = wire(INT32, default=0)
    error_code: int = wire(INT16, default=0)
    error_message: str | None = wire(STRING, default=None, null_since=0)
    acquisition_lock_timeout_ms: int = wire(INT32, default=0)
    responses: list[Topic] = wire(ARRAY(Topic), default=[])
    node_endpoints: list[NodeEndpoint] = wire(ARRAY(NodeEndpoint), default=[])
