"""DeleteAcls: remove the ACLs that filters select."""

from __future__ import annotations

from broker.protocol.wire_types import ARRAY, INT8, INT16, INT32, STRING, Gradual, Message, Struct, wire


class DeleteAclsRequest(Message):
    """v3 adds users as resources (KIP-373). Null and the number 1 (ANY) select everything."""

    API_KEY, VERSIONS, FLEXIBLE_SINCE = 31, range(1, 4), 2

    class Filter(Struct):
        resource_type_filter: int = wire(INT8)
        resource_name_filter: str | None = wire(STRING, null_since=0)
        pattern_type_filter: int = wire(INT8, default=3)
        principal_filter: str | None = wire(STRING, null_since=0)
        host_filter: str | None = wire(STRING, null_since=0)
        operation: int = wire(INT8)
        permission_type: int = wire(INT8)

    filters: list[Filter] = wire(ARRAY(Filter))


class DeleteAclsResponse(Message):
    """One result for each filter of the request, in its order."""

    API_KEY, VERSIONS, FLEXIBLE_SINCE = 31, range(1, 4), 2

    class MatchingAcl(Struct):
        error_code: int = wire(INT16, default=0)
        error_message: str | None = wire(STRING, default=None, null_since=0)
        resource_type: int = wire(INT8)
        resource_name: str = wire(STRING)
        pattern_type: int = wire(INT8, default=3)
        principal: str = wire(STRING)
        host: str = wire(STRING)
        operation: int = wire(INT8)
        permission_type: int = wire(INT8)

    class FilterResult(Struct):
        error_code: int = wire(INT16, default=0)
        error_message: str | None = wire(STRING, default=None, null_since=0)
        matching_acls: list[DeleteAclsResponse.MatchingAcl] | Gradual = wire(ARRAY("MatchingAcl"), default=[])

    throttle_time_ms: int = wire(INT32, default=0)
    filter_results: list[FilterResult] = wire(ARRAY(FilterResult))
