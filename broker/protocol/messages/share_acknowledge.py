"""ShareAcknowledge: say what became of acquired records (KIP-932)."""

from __future__ import annotations

from broker.protocol.wire_types import ARRAY, INT8, INT16, INT32, INT64, STRING, UUID, Message, Struct, wire


class ShareAcknowledgeRequest(Message):
    """Acknowledgements are as in ShareFetch. v1 is the first stable version."""

    API_KEY, VERSIONS, FLEXIBLE_SINCE = 79, range(1, 2), 0

    class AcknowledgementBatch(Struct):
        first_offset: int = wire(INT64)
        last_offset: int = wire(INT64)
        acknowledge_types: list[int] = wire(ARRAY(INT8))

    class Partition(Struct):
        partition_index: int = wire(INT32)
        acknowledgement_batches: list[ShareAcknowledgeRequest.AcknowledgementBatch] = wire(
            ARRAY("AcknowledgementBatch")
        )

    class Topic(Struct):
        topic_id: bytes = wire(UUID)
        partitions: list[ShareAcknowledgeRequest.Partition] = wire(ARRAY("Partition"))

    group_id: str | None = wire(STRING, default=None, null_since=0)
    member_id: str | None = wire(STRING, null_since=0)
    share_session_epoch: int = wire(INT32)
    topics: list[Topic] = wire(ARRAY(Topic))


class ShareAcknowledgeResponse(Message):
    API_KEY, VERSIONS, FLEXIBLE_SINCE = 79, range(1, 2), 0

    class CurrentLeader(Struct):
        leader_id: int = wire(INT32, default=0)
        leader_epoch: int = wire(INT32, default=0)

    class Partition(Struct):
        partition_index: int = wire(INT32)
        error_code: int = wire(INT16, default=0)
        error_message: str | None = wire(STRING, default=None, null_since=0)
        current_leader: ShareAcknowledgeResponse.CurrentLeader = wire("CurrentLeader")

    class Topic(Struct):
        topic_id: bytes = wire(UUID)
        partitions: list[ShareAcknowledgeResponse.Partition] = wire(ARRAY("Partition"))

    class NodeEndpoint(Struct):
        node_id: int = wire(INT32)
        host: str = wire(STRING)
        port: int = wire(INT32)
        rack: str | None = wire(STRING, default=None, null_since=0)

    throttle_time_ms: int = wire(INT32, default=0)
    error_code: int = wire(INT16, default=0)
    error_message: str | None = wire(STRING, default=None, null_since=0)
    responses: list[Topic] = wire(ARRAY(Topic), default=[])
    node_endpoints: list[NodeEndpoint] = wire(ARRAY(NodeEndpoint), default=[])
