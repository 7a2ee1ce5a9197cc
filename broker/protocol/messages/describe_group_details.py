"""DescribeGroupDetails: what DescribeGroups omits. An extension of this broker, not part of Kafka."""

from __future__ import annotations

from broker.protocol.wire_types import ARRAY, BOOL, INT16, INT32, INT64, STRING, Message, Struct, wire


class DescribeGroupDetailsRequest(Message):
    """v1 adds the times of commits, and pending offsets; v2 adds the clock of the broker, and when it started."""

    API_KEY, VERSIONS, FLEXIBLE_SINCE = 10000, range(3), 0

    groups: list[str] = wire(ARRAY(STRING))
    include_commits: bool = wire(BOOL, default=False, since=1)


class DescribeGroupDetailsResponse(Message):
    """`state_since_ms` and `committed_ms` are wall-clock time; `wall_ms` is that clock now. An age of -1 is unknown."""

    API_KEY, VERSIONS, FLEXIBLE_SINCE = 10000, range(3), 0

    class Member(Struct):
        member_id: str = wire(STRING)
        group_instance_id: str | None = wire(STRING, default=None, null_since=0)
        client_id: str = wire(STRING)
        client_host: str = wire(STRING)
        session_timeout_ms: int = wire(INT32)
        rebalance_timeout_ms: int = wire(INT32)
        heartbeat_age_ms: int = wire(INT64, default=-1)
        phase: str = wire(STRING)

    class Commits(Struct):
        """When the offset of each partition was committed. The two arrays go together."""

        topic: str = wire(STRING)
        partitions: list[int] = wire(ARRAY(INT32))
        committed_ms: list[int] = wire(ARRAY(INT64))

    class Pending(Struct):
        """Offsets of one open transaction in one topic."""

        topic: str = wire(STRING)
        producer_id: int = wire(INT64)
        partitions: list[int] = wire(ARRAY(INT32))

    class Group(Struct):
        error_code: int = wire(INT16, default=0)
        error_message: str | None = wire(STRING, default=None, null_since=0)
        group_id: str = wire(STRING)
        group_state: str = wire(STRING, default="")
        protocol_type: str = wire(STRING, default="")
        protocol: str | None = wire(STRING, default=None, null_since=0)
        generation_id: int = wire(INT32, default=-1)
        leader: str | None = wire(STRING, default=None, null_since=0)
        state_since_ms: int = wire(INT64, default=-1)
        members: list[DescribeGroupDetailsResponse.Member] = wire(ARRAY("Member"), default=[])
        commits: list[DescribeGroupDetailsResponse.Commits] = wire(ARRAY("Commits"), default=[], since=1)
        pending: list[DescribeGroupDetailsResponse.Pending] = wire(ARRAY("Pending"), default=[], since=1)

    throttle_time_ms: int = wire(INT32, default=0)
    wall_ms: int = wire(INT64, default=-1, since=2)
    started_ms: int = wire(INT64, default=-1, since=2)
    groups: list[Group] = wire(ARRAY(Group))
