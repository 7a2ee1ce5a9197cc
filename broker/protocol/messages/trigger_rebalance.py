"""TriggerRebalance: start a rebalance in which all members keep their ids. An extension of this broker, not of Kafka."""

from __future__ import annotations

from broker.protocol.wire_types import ARRAY, INT16, INT32, STRING, Message, Struct, wire


class TriggerRebalanceRequest(Message):
    """The reason becomes part of the history of the group."""

    API_KEY, VERSIONS, FLEXIBLE_SINCE = 10001, range(1), 0

    class Group(Struct):
        group_id: str = wire(STRING)
        reason: str | None = wire(STRING, default=None, null_since=0)

    groups: list[Group] = wire(ARRAY(Group))


class TriggerRebalanceResponse(Message):
    """`generation_id` is the one that ends: the rebalance is complete once the group is Stable in a later one.

    NONE is also the answer if a rebalance is in progress already. GROUP_ID_NOT_FOUND: the group does not exist.
    INVALID_REQUEST: the group is Empty, so there are no members to rebalance.
    """

    API_KEY, VERSIONS, FLEXIBLE_SINCE = 10001, range(1), 0

    class Group(Struct):
        error_code: int = wire(INT16, default=0)
        error_message: str | None = wire(STRING, default=None, null_since=0)
        group_id: str = wire(STRING)
        generation_id: int = wire(INT32, default=-1)

    throttle_time_ms: int = wire(INT32, default=0)
    groups: list[Group] = wire(ARRAY(Group))
