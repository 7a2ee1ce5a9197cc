"""TxnOffsetCommit: commit offsets of a group as part of a transaction."""

from __future__ import annotations

from broker.protocol.wire_types import ARRAY, INT16, INT32, INT64, STRING, Message, Struct, wire


class TxnOffsetCommitRequest(Message):
    """v2 adds the leader epoch; v3 adds generation, member id and instance id (KIP-447); v4 allows TRANSACTION_ABORTABLE
    in answers; v5 adds the group to the transaction implicitly (KIP-890).
    """

    API_KEY, VERSIONS, FLEXIBLE_SINCE = 28, range(6), 3

    class Partition(Struct):
        partition_index: int = wire(INT32)
        committed_offset: int = wire(INT64)
        committed_leader_epoch: int = wire(INT32, default=-1, since=2)
        committed_metadata: str | None = wire(STRING, null_since=0)

    class Topic(Struct):
        name: str = wire(STRING)
        partitions: list[TxnOffsetCommitRequest.Partition] = wire(ARRAY("Partition"))

    transactional_id: str = wire(STRING)
    group_id: str = wire(STRING)
    producer_id: int = wire(INT64)
    producer_epoch: int = wire(INT16)
    generation_id: int = wire(INT32, default=-1, since=3)
    member_id: str = wire(STRING, default="", since=3)
    group_instance_id: str | None = wire(STRING, default=None, since=3, null_since=3)
    topics: list[Topic] = wire(ARRAY(Topic))


class TxnOffsetCommitResponse(Message):
    API_KEY, VERSIONS, FLEXIBLE_SINCE = 28, range(6), 3

    class Partition(Struct):
        partition_index: int = wire(INT32)
        error_code: int = wire(INT16, default=0)

    class Topic(Struct):
        name: str = wire(STRING)
        partitions: list[TxnOffsetCommitResponse.Partition] = wire(ARRAY("Partition"))

    throttle_time_ms: int = wire(INT32, default=0)
    topics: list[Topic] = wire(ARRAY(Topic))
