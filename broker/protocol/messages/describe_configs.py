"""DescribeConfigs: configuration of topics, brokers and groups."""

from __future__ import annotations

from broker.protocol.wire_types import ARRAY, BOOL, INT8, INT16, INT32, STRING, Message, Struct, wire


class DescribeConfigsRequest(Message):
    """v3 can ask for documentation (KIP-569)."""

    API_KEY, VERSIONS, FLEXIBLE_SINCE = 32, range(1, 5), 4

    class Resource(Struct):
        resource_type: int = wire(INT8)
        resource_name: str = wire(STRING)
        configuration_keys: list[str] | None = wire(ARRAY(STRING), default=None, null_since=0)

    resources: list[Resource] = wire(ARRAY(Resource))
    include_synonyms: bool = wire(BOOL, default=False)
    include_documentation: bool = wire(BOOL, default=False, since=3)


class DescribeConfigsResponse(Message):
    """v3 adds type and documentation (KIP-569)."""

    API_KEY, VERSIONS, FLEXIBLE_SINCE = 32, range(1, 5), 4

    class Synonym(Struct):
        name: str = wire(STRING)
        value: str | None = wire(STRING, null_since=0)
        source: int = wire(INT8)

    class Config(Struct):
        name: str = wire(STRING)
        value: str | None = wire(STRING, null_since=0)
        read_only: bool = wire(BOOL)
        config_source: int = wire(INT8, default=-1)
        is_sensitive: bool = wire(BOOL)
        synonyms: list[DescribeConfigsResponse.Synonym] = wire(ARRAY("Synonym"))
        config_type: int = wire(INT8, default=0, since=3)
        documentation: str | None = wire(STRING, default=None, since=3, null_since=3)

    class Result(Struct):
        error_code: int = wire(INT16, default=0)
        error_message: str | None = wire(STRING, default=None, null_since=0)
        resource_type: int = wire(INT8)
        resource_name: str = wire(STRING)
        configs: list[DescribeConfigsResponse.Config] = wire(ARRAY("Config"))

    throttle_time_ms: int = wire(INT32, default=0)
    results: list[Result] = wire(ARRAY(Result))
