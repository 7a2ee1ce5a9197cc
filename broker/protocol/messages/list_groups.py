"""ListGroups: the groups of one broker."""

from __future__ import annotations

from broker.protocol.wire_types import ARRAY, INT16, INT32, STRING, Message, Struct, wire


class ListGroupsRequest(Message):
    """v4 filters by state (KIP-518); v5 filters by group type (KIP-848)."""

    API_KEY, VERSIONS, FLEXIBLE_SINCE = 16, range(6), 3

    states_filter: list[str] = wire(ARRAY(STRING), default=[], since=4)
    types_filter: list[str] = wire(ARRAY(STRING), default=[], since=5)


class ListGroupsResponse(Message):
    """v1 adds the throttle time; v4 adds the state; v5 adds the group type."""

    API_KEY, VERSIONS, FLEXIBLE_SINCE = 16, range(6), 3

    class Group(Struct):
        group_id: str = wire(STRING)
        protocol_type: str = wire(STRING)
        group_state: str = wire(STRING, default="", since=4)
        group_type: str = wire(STRING, default="", since=5)

    throttle_time_ms: int = wire(INT32, default=0, since=1)
    error_code: int = wire(INT16, default=0)
    groups: list[Group] = wire(ARRAY(Group))
