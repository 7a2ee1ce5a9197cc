"""CreateTopics: create topics."""

from __future__ import annotations

from broker.protocol.wire_types import ARRAY, BOOL, INT8, INT16, INT32, STRING, UUID, ZERO_UUID, Message, Struct, wire


class CreateTopicsRequest(Message):
    """v4 allows -1 for the number of partitions and the replication factor: the broker's defaults (KIP-464)."""

    API_KEY, VERSIONS, FLEXIBLE_SINCE = 19, range(2, 8), 5

    class Assignment(Struct):
        partition_index: int = wire(INT32)
        broker_ids: list[int] = wire(ARRAY(INT32))

    class Config(Struct):
        name: str = wire(STRING)
        value: str | None = wire(STRING, null_since=0)

    class Topic(Struct):
        name: str = wire(STRING)
        num_partitions: int = wire(INT32)
        replication_factor: int = wire(INT16)
        assignments: list[CreateTopicsRequest.Assignment] = wire(ARRAY("Assignment"), default=[])
        configs: list[CreateTopicsRequest.Config] = wire(ARRAY("Config"), default=[])

    topics: list[Topic] = wire(ARRAY(Topic))
    timeout_ms: int = wire(INT32, default=60000)
    validate_only: bool = wire(BOOL, default=False)


class CreateTopicsResponse(Message):
    """v5 adds the configuration of the new topic (KIP-525); v7 adds the topic id (KIP-516)."""

    API_KEY, VERSIONS, FLEXIBLE_SINCE = 19, range(2, 8), 5

    class Config(Struct):
        name: str = wire(STRING)
        value: str | None = wire(STRING, null_since=0)
        read_only: bool = wire(BOOL)
        config_source: int = wire(INT8, default=-1)
        is_sensitive: bool = wire(BOOL)

    class Topic(Struct):
        name: str = wire(STRING)
        topic_id: bytes = wire(UUID, default=ZERO_UUID, since=7)
        error_code: int = wire(INT16, default=0)
        error_message: str | None = wire(STRING, default=None, null_since=0)
        topic_config_error_code: int = wire(INT16, default=0, since=5, tag=0)
        num_partitions: int = wire(INT32, default=-1, since=5)
        replication_factor: int = wire(INT16, default=-1, since=5)
        configs: list[CreateTopicsResponse.Config] | None = wire(ARRAY("Config"), default=None, since=5, null_since=5)

    throttle_time_ms: int = wire(INT32, default=0)
    topics: list[Topic] = wire(ARRAY(Topic))
