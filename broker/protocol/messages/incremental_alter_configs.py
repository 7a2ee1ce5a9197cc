"""IncrementalAlterConfigs: change single configuration values (KIP-339)."""

from __future__ import annotations

from broker.protocol.wire_types import ARRAY, BOOL, INT8, INT16, INT32, STRING, Message, Struct, wire


class IncrementalAlterConfigsRequest(Message):
    """Operations: 0 set, 1 delete, 2 append to a list, 3 subtract from a list."""

    API_KEY, VERSIONS, FLEXIBLE_SINCE = 44, range(2), 1

    class Config(Struct):
        name: str = wire(STRING)
        config_operation: int = wire(INT8)
        value: str | None = wire(STRING, null_since=0)

    class Resource(Struct):
        resource_type: int = wire(INT8)
        resource_name: str = wire(STRING)
        configs: list[IncrementalAlterConfigsRequest.Config] = wire(ARRAY("Config"))

    resources: list[Resource] = wire(ARRAY(Resource))
    validate_only: bool = wire(BOOL, default=False)


class IncrementalAlterConfigsResponse(Message):
    API_KEY, VERSIONS, FLEXIBLE_SINCE = 44, range(2), 1

    class Response(Struct):
        error_code: int = wire(INT16, default=0)
        error_message: str | None = wire(STRING, default=None, null_since=0)
        resource_type: int = wire(INT8)
        resource_name: str = wire(STRING)

    throttle_time_ms: int = wire(INT32, default=0)
    responses: list[Response] = wire(ARRAY(Response))
