"""Fetch: read record batches of partitions, and wait for them if asked to."""

from __future__ import annotations

from typing import Any

from broker.protocol.wire_types import (
    ARRAY,
    INT8,
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


class FetchRequest(Message):
    """v5 adds the log start offset; v7 adds fetch sessions (KIP-227); v9 adds the leader epoch (KIP-320); v11 adds the
    rack (KIP-392); v12 adds the last fetched epoch; v13 replaces topic names with ids (KIP-516); v15 adds the replica
    state (KIP-903); v17 adds the directory id (KIP-853); v18 adds the high watermark (KIP-1166).
    """

    API_KEY, VERSIONS, FLEXIBLE_SINCE = 1, range(4, 19), 12

    class ReplicaState(Struct):
        replica_id: int = wire(INT32, default=-1)
        replica_epoch: int = wire(INT64, default=-1)

    class Partition(Struct):
        partition: int = wire(INT32)
        current_leader_epoch: int = wire(INT32, default=-1, since=9)
        fetch_offset: int = wire(INT64)
        last_fetched_epoch: int = wire(INT32, default=-1, since=12)
        log_start_offset: int = wire(INT64, default=-1, since=5)
        partition_max_bytes: int = wire(INT32)
        replica_directory_id: bytes = wire(UUID, default=ZERO_UUID, since=17, tag=0)
        high_watermark: int = wire(INT64, default=2**63 - 1, since=18, tag=1)

    class Topic(Struct):
        topic: str = wire(STRING, default="", until=12)
        topic_id: bytes = wire(UUID, default=ZERO_UUID, since=13)
        partitions: list[FetchRequest.Partition] = wire(ARRAY("Partition"))

    class ForgottenTopic(Struct):
        topic: str = wire(STRING, default="", until=12)
        topic_id: bytes = wire(UUID, default=ZERO_UUID, since=13)
        partitions: list[int] = wire(ARRAY(INT32))

    cluster_id: str | None = wire(STRING, default=None, since=12, null_since=12, tag=0)
    replica_id: int = wire(INT32, default=-1, until=14)
    replica_state: ReplicaState | None = wire(ReplicaState, default=None, since=15, tag=1)
    max_wait_ms: int = wire(INT32)
    min_bytes: int = wire(INT32)
    max_bytes: int = wire(INT32, default=2**31 - 1)
    isolation_level: int = wire(INT8, default=0)
    session_id: int = wire(INT32, default=0, since=7)
    session_epoch: int = wire(INT32, default=-1, since=7)
    topics: list[Topic] = wire(ARRAY(Topic))
    forgotten_topics_data: list[ForgottenTopic] = wire(ARRAY(ForgottenTopic), default=[], since=7)
    rack_id: str = wire(STRING, default="", since=11)


class FetchResponse(Message):
    """v5 adds the log start offset; v7 adds error code and session id; v11 adds the preferred read replica; v12 adds
    the diverging epoch and the current leader; v13 replaces topic names with ids; v16 adds leader endpoints (KIP-951).
    """

    API_KEY, VERSIONS, FLEXIBLE_SINCE = 1, range(4, 19), 12

    class DivergingEpoch(Struct):
        epoch: int = wire(INT32, default=-1)
        end_offset: int = wire(INT64, default=-1)

    class CurrentLeader(Struct):
        leader_id: int = wire(INT32, default=-1)
        leader_epoch: int = wire(INT32, default=-1)

    class SnapshotId(Struct):
        end_offset: int = wire(INT64, default=-1)
        epoch: int = wire(INT32, default=-1)

    class AbortedTransaction(Struct):
        producer_id: int = wire(INT64)
        first_offset: int = wire(INT64)

    class Partition(Struct):
        partition_index: int = wire(INT32)
        error_code: int = wire(INT16, default=0)
        high_watermark: int = wire(INT64)
        last_stable_offset: int = wire(INT64, default=-1)
        log_start_offset: int = wire(INT64, default=-1, since=5)
        diverging_epoch: FetchResponse.DivergingEpoch | None = wire("DivergingEpoch", default=None, since=12, tag=0)
        current_leader: FetchResponse.CurrentLeader | None = wire("CurrentLeader", default=None, since=12, tag=1)
        snapshot_id: FetchResponse.SnapshotId | None = wire("SnapshotId", default=None, since=12, tag=2)
        aborted_transactions: list[FetchResponse.AbortedTransaction] | None = wire(
            ARRAY("AbortedTransaction"), default=None, null_since=0
        )
        preferred_read_replica: int = wire(INT32, default=-1, since=11)
        # Encoding takes any object with a length, which `encode_parts` passes through; decoding gives a view or None.
        records: Any = wire(RECORDS, null_since=0)

    class Topic(Struct):
        topic: str = wire(STRING, default="", until=12)
        topic_id: bytes = wire(UUID, default=ZERO_UUID, since=13)
        partitions: list[FetchResponse.Partition] = wire(ARRAY("Partition"))

    class NodeEndpoint(Struct):
        node_id: int = wire(INT32)
        host: str = wire(STRING)
        port: int = wire(INT32)
        rack: str | None = wire(STRING, default=None, null_since=0)

    throttle_time_ms: int = wire(INT32, default=0)
    error_code: int = wire(INT16, default=0, since=7)
    session_id: int = wire(INT32, default=0, since=7)
    responses: list[Topic] = wire(ARRAY(Topic))
    node_endpoints: list[NodeEndpoint] = wire(ARRAY(NodeEndpoint), default=[], since=16, tag=0)
