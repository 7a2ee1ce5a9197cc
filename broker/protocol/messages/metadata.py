"""Metadata: brokers, topics, partitions and their leaders."""

from __future__ import annotations

from broker.protocol.wire_types import ARRAY, BOOL, INT16, INT32, STRING, UUID, ZERO_UUID, Message, Struct, wire


class MetadataRequest(Message):
    """v1 uses null for all topics; v4 can forbid topic creation; v8 can ask for authorized operations (KIP-430); v10
    adds topic ids (KIP-516); v11 drops authorized operations of the cluster (KIP-700).
    """

    API_KEY, VERSIONS, FLEXIBLE_SINCE = 3, range(14), 9

    class Topic(Struct):
        topic_id: bytes = wire(UUID, default=ZERO_UUID, since=10)
        name: str | None = wire(STRING, null_since=10)

    topics: list[Topic] | None = wire(ARRAY(Topic), null_since=1)
    allow_auto_topic_creation: bool = wire(BOOL, default=True, since=4)
    include_cluster_authorized_operations: bool = wire(BOOL, default=False, since=8, until=10)
    include_topic_authorized_operations: bool = wire(BOOL, default=False, since=8)


class MetadataResponse(Message):
    """v1 adds rack, controller id and is_internal; v2 adds the cluster id; v3 adds the throttle time; v5 adds offline
    replicas; v7 adds the leader epoch; v8 adds authorized operations; v10 adds topic ids; v12 allows null names; v13
    adds the error code (KIP-1102).
    """

    API_KEY, VERSIONS, FLEXIBLE_SINCE = 3, range(14), 9

    class Broker(Struct):
        node_id: int = wire(INT32)
        host: str = wire(STRING)
        port: int = wire(INT32)
        rack: str | None = wire(STRING, default=None, since=1, null_since=1)

    class Partition(Struct):
        error_code: int = wire(INT16, default=0)
        partition_index: int = wire(INT32)
        leader_id: int = wire(INT32)
        leader_epoch: int = wire(INT32, default=-1, since=7)
        replica_nodes: list[int] = wire(ARRAY(INT32))
        isr_nodes: list[int] = wire(ARRAY(INT32))
        offline_replicas: list[int] = wire(ARRAY(INT32), default=[], since=5)

    class Topic(Struct):
        error_code: int = wire(INT16, default=0)
        name: str | None = wire(STRING, null_since=12)
        topic_id: bytes = wire(UUID, default=ZERO_UUID, since=10)
        is_internal: bool = wire(BOOL, default=False, since=1)
        partitions: list[MetadataResponse.Partition] = wire(ARRAY("Partition"))
        topic_authorized_operations: int = wire(INT32, default=-(2**31), since=8)

    throttle_time_ms: int = wire(INT32, default=0, since=3)
    brokers: list[Broker] = wire(ARRAY(Broker))
    cluster_id: str | None = wire(STRING, default=None, since=2, null_since=2)
    controller_id: int = wire(INT32, default=-1, since=1)
    topics: list[Topic] = wire(ARRAY(Topic))
    cluster_authorized_operations: int = wire(INT32, default=-(2**31), since=8, until=10)
    error_code: int = wire(INT16, default=0, since=13)
