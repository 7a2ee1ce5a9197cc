"""DescribeCluster: brokers and controller of the cluster (KIP-700)."""

from __future__ import annotations

from broker.protocol.wire_types import ARRAY, BOOL, INT8, INT16, INT32, STRING, Message, Struct, wire


class DescribeClusterRequest(Message):
    """v1 chooses between brokers and controllers (KIP-919); v2 can include fenced brokers (KIP-1073)."""

    API_KEY, VERSIONS, FLEXIBLE_SINCE = 60, range(3), 0

    include_cluster_authorized_operations: bool = wire(BOOL)
    endpoint_type: int = wire(INT8, default=1, since=1)
    include_fenced_brokers: bool = wire(BOOL, default=False, since=2)


class DescribeClusterResponse(Message):
    """v1 adds the endpoint type; v2 adds whether a broker is fenced."""

    API_KEY, VERSIONS, FLEXIBLE_SINCE = 60, range(3), 0

    class Broker(Struct):
        broker_id: int = wire(INT32)
        host: str = wire(STRING)
        port: int = wire(INT32)
        rack: str | None = wire(STRING, default=None, null_since=0)
        is_fenced: bool = wire(BOOL, default=False, since=2)

    throttle_time_ms: int = wire(INT32, default=0)
    error_code: int = wire(INT16, default=0)
    error_message: str | None = wire(STRING, default=None, null_since=0)
    endpoint_type: int = wire(INT8, default=1, since=1)
    cluster_id: str = wire(STRING)
    controller_id: int = wire(INT32, default=-1)
    brokers: list[Broker] = wire(ARRAY(Broker))
    cluster_authorized_operations: int = wire(INT32, default=-(2**31))
