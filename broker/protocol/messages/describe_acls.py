"""DescribeAcls: the ACLs that a filter selects."""

from __future__ import annotations

from broker.protocol.wire_types import ARRAY, INT8, INT16, INT32, STRING, Gradual, Message, Struct, wire


class DescribeAclsRequest(Message):
    """v3 adds users as resources (KIP-373). Null and the number 1 (ANY) select everything."""

    API_KEY, VERSIONS, FLEXIBLE_SINCE = 29, range(1, 4), 2

    resource_type_filter: int = wire(INT8)
    resource_name_filter: str | None = wire(STRING, null_since=0)
    pattern_type_filter: int = wire(INT8, default=3)
    principal_filter: str | None = wire(STRING, null_since=0)
    host_filter: str | None = wire(STRING, null_since=0)
    operation: int = wire(INT8)
    permission_type: int = wire(INT8)


class DescribeAclsResponse(Message):
    API_KEY, VERSIONS, FLEXIBLE_SINCE = 29, range(1, 4), 2

    class Acl(Struct):
        principal: str = wire(STRING)
        host: str = wire(STRING)
        operation: int = wire(INT8)
        permission_type: int = wire(INT8)

    class Resource(Struct):
        resource_type: int = wire(INT8)
        resource_name: str = wire(STRING)
        pattern_type: int = wire(INT8, default=3)
        acls: list[DescribeAclsResponse.Acl] = wire(ARRAY("Acl"))

    throttle_time_ms: int = wire(INT32, default=0)
    error_code: int = wire(INT16, default=0)
    error_message: str | None = wire(STRING, default=None, null_since=0)
    resources: list[Resource] | Gradual = wire(ARRAY(Resource), default=[])
