"""TriggerRebalance: call the members of groups together for a new generation; all keep their ids. Ours, not Kafka's."""

from __future__ import annotations

from broker.protocol.wire_types import ARRAY, INT16, INT32, STRING, Message, Struct, wire


class TriggerRebalanceRequest(Message):
    """The reason is kept in the group's story."""

    API_KEY, VERSIONS, FLEXIBLE_SINCE = 10001, range(1), 0

    class Group(Struct):
        group_id: str = wire(STRING)
        reason: str | None = wire(STRING, default=None, null_since=0)

    groups: list[Group] = wire(ARRAY(Group))


class TriggerRebalanceResponse(Message):
    """`generation_id` is the one that ends: the rebalance is over once the group is Stable in a later one.

    No error also means that a rebalance was under way already. GROUP_ID_NOT_FOUND: no such group. INVALID_REQUEST: the group is
    Empty, so there is nobody to rebalance.
    """

    API_KEY, VERSIONS, FLEXIBLE_SINCE = 10001, range(1), 0

    class Group(Struct):
        error_code: int = wire(INT16, default=0)
        error_message: str | None = wire(STRING, default=None, null_since=0)
        group_id: str = wire(STRING)
        generation_id: int = wire(INT32, default=-1)

    throttle_time_ms: int = wire(INT32, default=0)
    groups: list[Group] = wire(ARRAY(Group))
