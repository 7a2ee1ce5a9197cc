"""DescribeClientQuotas: the quotas of users, client ids and IP addresses (KIP-546)."""

from __future__ import annotations

from broker.protocol.wire_types import ARRAY, BOOL, FLOAT64, INT8, INT16, INT32, STRING, Message, Struct, wire


class DescribeClientQuotasRequest(Message):
    """Match types: 0 the name `match`, 1 the default, 2 any name or the default. Strict: entities have no other types."""

    API_KEY, VERSIONS, FLEXIBLE_SINCE = 48, range(2), 1

    class Component(Struct):
        entity_type: str = wire(STRING)
        match_type: int = wire(INT8)
        match: str | None = wire(STRING, default=None, null_since=0)

    components: list[Component] = wire(ARRAY(Component))
    strict: bool = wire(BOOL)


class DescribeClientQuotasResponse(Message):
    API_KEY, VERSIONS, FLEXIBLE_SINCE = 48, range(2), 1

    class Entity(Struct):
        entity_type: str = wire(STRING)
        entity_name: str | None = wire(STRING, null_since=0)

    class Value(Struct):
        key: str = wire(STRING)
        value: float = wire(FLOAT64)

    class Entry(Struct):
        entity: list[DescribeClientQuotasResponse.Entity] = wire(ARRAY("Entity"))
        values: list[DescribeClientQuotasResponse.Value] = wire(ARRAY("Value"))

    throttle_time_ms: int = wire(INT32, default=0)
    error_code: int = wire(INT16, default=0)
    error_message: str | None = wire(STRING, default=None, null_since=0)
    entries: list[Entry] | None = wire(ARRAY(Entry), null_since=0)
