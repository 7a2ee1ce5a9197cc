"""AlterClientQuotas: set and remove the quotas of users, client ids and IP addresses (KIP-546)."""

from __future__ import annotations

from broker.protocol.wire_types import ARRAY, BOOL, FLOAT64, INT16, INT32, STRING, Message, Struct, wire


class AlterClientQuotasRequest(Message):
    """An entity name of null is the default of its type."""

    API_KEY, VERSIONS, FLEXIBLE_SINCE = 49, range(2), 1

    class Entity(Struct):
        entity_type: str = wire(STRING)
        entity_name: str | None = wire(STRING, null_since=0)

    class Op(Struct):
        key: str = wire(STRING)
        value: float = wire(FLOAT64, default=0.0)
        remove: bool = wire(BOOL, default=False)

    class Entry(Struct):
        entity: list[AlterClientQuotasRequest.Entity] = wire(ARRAY("Entity"))
        ops: list[AlterClientQuotasRequest.Op] = wire(ARRAY("Op"))

    entries: list[Entry] = wire(ARRAY(Entry))
    validate_only: bool = wire(BOOL, default=False)


class AlterClientQuotasResponse(Message):
    API_KEY, VERSIONS, FLEXIBLE_SINCE = 49, range(2), 1

    class Entity(Struct):
        entity_type: str = wire(STRING)
        entity_name: str | None = wire(STRING, null_since=0)

    class Entry(Struct):
        error_code: int = wire(INT16, default=0)
        error_message: str | None = wire(STRING, default=None, null_since=0)
        entity: list[AlterClientQuotasResponse.Entity] = wire(ARRAY("Entity"))

    throttle_time_ms: int = wire(INT32, default=0)
    entries: list[Entry] = wire(ARRAY(Entry))
