"""AlterConfigs: replace the whole configuration of a resource."""

from __future__ import annotations

from broker.protocol.wire_types import ARRAY, BOOL, INT8, INT16, INT32, STRING, Message, Struct, wire


class AlterConfigsRequest(Message):
    API_KEY, VERSIONS, FLEXIBLE_SINCE = 33, range(3), 2

    class Config(Struct):
        name: str = wire(STRING)
        value: str | None = wire(STRING, null_since=0)

    class Resource(Struct):
        resource_type: int = wire(INT8)
        resource_name: str = wire(STRING)
        configs: list[AlterConfigsRequest.Config] = wire(ARRAY("Config"))

    resources: list[Resource] = wire(ARRAY(Resource))
    validate_only: bool = wire(BOOL, default=False)


class AlterConfigsResponse(Message):
    API_KEY, VERSIONS, FLEXIBLE_SINCE = 33, range(3), 2

    class Response(Struct):
        error_code: int = wire(INT16, default=0)
        error_message: str | None = wire(STRING, default=None, null_since=0)
        resource_type: int = wire(INT8)
        resource_name: str = wire(STRING)

    throttle_time_ms: int = wire(INT32, default=0)
    responses: list[Response] = wire(ARRAY(Response))
