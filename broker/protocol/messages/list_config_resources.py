"""ListConfigResources: the resources that have configs (KIP-1142)."""

from __future__ import annotations

from broker.protocol.wire_types import ARRAY, INT8, INT16, INT32, STRING, Message, Struct, wire

CLIENT_METRICS = 16


class ListConfigResourcesRequest(Message):
    """v0 lists client metrics only; v1 lists the named types of resources, or all."""

    API_KEY, VERSIONS, FLEXIBLE_SINCE = 74, range(2), 0

    resource_types: list[int] = wire(ARRAY(INT8), default=[], since=1)


class ListConfigResourcesResponse(Message):
    API_KEY, VERSIONS, FLEXIBLE_SINCE = 74, range(2), 0

    class ConfigResource(Struct):
        resource_name: str = wire(STRING)
        resource_type: int = wire(INT8, default=CLIENT_METRICS, since=1)

    throttle_time_ms: int = wire(INT32, default=0)
    error_code: int = wire(INT16, default=0)
    config_resources: list[ConfigResource] = wire(ARRAY(ConfigResource))
