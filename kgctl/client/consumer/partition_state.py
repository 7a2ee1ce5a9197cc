"""What a consumer knows about one assigned partition: its position, and whether records may be fetched from there."""

from __future__ import annotations

from enum import Enum

from broker.light_named_tuples import NamedTuple
from kgctl.client.consumer.reset_strategy import ResetStrategy
from kgctl.client.net.errors import KgctlError

# How long a broker must send no records before the log counts as empty from the position on.
CERTAIN_AFTER_MS = 1000


class FetchPosition(NamedTuple):
    """The next offset to read, the leader epoch of the record before it, and the leader that the position is valid for."""

    offset: int
    offset_epoch: int | None = None
    leader: int | None = None
    leader_epoch: int | None = None


class FetchState(Enum):
    INITIALIZING = "initializing"  # no position: the committed offset is looked up, then the strategy decides
    FETCHING = "fetching"
    AWAIT_RESET = "await reset"  # no position: ListOffsets is asked for one
    AWAIT_VALIDATION = "await validation"  # OffsetForLeaderEpoch is asked whether the log was truncated


class PartitionState:
    """A partition from its assignment to its revocation. Kafka's TopicPartitionState."""

    __slots__ = (
        "end_offset_requested",
        "fetch_state",
        "high_watermark",
        "is_unsubscribed",
        "last_stable_offset",
        "limit",
        "log_start_offset",
        "nothing_at",
        "nothing_since",
        "paused",
        "pending_assigned_call",
        "pending_revocation",
        "position",
        "preferred_replica",
        "preferred_replica_until_ms",
        "reset_strategy",
        "retry_at_ms",
        "topic_id",
    )

    def __init__(self) -> None:
        self.fetch_state = FetchState.INITIALIZING
        self.position: FetchPosition | None = None
        self.topic_id: bytes | None = None  # of the topic that the position is in (KIP-516), once it was fetched from
        self.reset_strategy: ResetStrategy | None = None
        self.retry_at_ms: int | None = None  # not before then a reset or a validation is tried again
        self.paused = False
        self.pending_revocation = False
        self.pending_assigned_call = False  # the listener does not know yet that the partition is assigned
        self.is_unsubscribed = False  # its topic is no longer subscribed; the group has not taken it away yet
        self.high_watermark: int | None = None
        self.last_stable_offset: int | None = None
        self.log_start_offset: int | None = None
        self.end_offset_requested = False
        self.limit: int | None = None  # nothing is fetched from this offset on
        self.nothing_at: int | None = None  # no records are left from this offset on
        self.nothing_since: tuple[int, int] | None = None  # the offset of empty answers, and the time of the first, ms
        self.preferred_replica: int | None = None
        self.preferred_replica_until_ms = 0

    @property
    def has_valid_position(self) -> bool:
        return self.fetch_state is FetchState.FETCHING

    @property
    def valid_position(self) -> FetchPosition | None:
        return self.position if self.fetch_state is FetchState.FETCHING else None

    @property
    def is_initializing(self) -> bool:
        return self.fetch_state is FetchState.INITIALIZING

    @property
    def awaits_reset(self) -> bool:
        return self.fetch_state is FetchState.AWAIT_RESET

    @property
    def awaits_validation(self) -> bool:
        return self.fetch_state is FetchState.AWAIT_VALIDATION

    @property
    def is_fetchable(self) -> bool:
        return (
            self.fetch_state is FetchState.FETCHING
            and not self.paused
            and not self.pending_revocation
            and not self.pending_assigned_call
            and not self.is_unsubscribed
        )

    def awaits_retry(self, now_ms: int) -> bool:
        return self.retry_at_ms is not None and now_ms < self.retry_at_ms

    # --- the position ---

    def seek_validated(self, position: FetchPosition) -> None:
        """Fetch from here. The user chose the position, or a leader confirmed it."""
        self.fetch_state = FetchState.FETCHING
        self.position = position
        self.reset_strategy = self.retry_at_ms = self.topic_id = None

    def seek_unvalidated(self, position: FetchPosition) -> None:
        """Fetch from here, after the leader has confirmed the epoch if there is one."""
        self.seek_validated(position)
        self._validate(position)

    def advance(self, position: FetchPosition) -> None:
        """Continue behind records that the application received."""
        if not self.has_valid_position:
            raise KgctlError("cannot advance a position that is not valid")
        self.position = position

    def start_over(self) -> None:
        """As if the partition had just been assigned."""
        self.fetch_state = FetchState.INITIALIZING
        self.position = self.reset_strategy = self.retry_at_ms = self.topic_id = None

    def reset(self, strategy: ResetStrategy) -> None:
        self.fetch_state = FetchState.AWAIT_RESET
        self.position = self.retry_at_ms = self.topic_id = None
        self.reset_strategy = strategy

    # --- validation (KIP-320) ---

    def follow_leader(self, leader: int | None, leader_epoch: int | None, *, can_validate: bool = True) -> bool:
        """Take over the leader that metadata names; true if the position now awaits validation.

        `can_validate` is false if the leader does not offer OffsetForLeaderEpoch in version 3 or later.
        """
        if self.fetch_state is FetchState.AWAIT_RESET or leader is None:
            return False
        position = self.position
        if not can_validate:
            if position is not None:
                self.position = position._replace(leader=leader, leader_epoch=leader_epoch)
                self.complete_validation()
            return False
        if position is not None and (position.leader, position.leader_epoch) != (leader, leader_epoch):
            self._validate(position._replace(leader=leader, leader_epoch=leader_epoch))
            self.preferred_replica = None
        return self.awaits_validation

    def complete_validation(self) -> None:
        if self.position is not None:
            self.fetch_state = FetchState.FETCHING
            self.retry_at_ms = None

    def _validate(self, position: FetchPosition) -> None:
        has_epochs = position.offset_epoch is not None and position.leader_epoch is not None
        self.fetch_state = FetchState.AWAIT_VALIDATION if has_epochs else FetchState.FETCHING
        self.position = position
        self.retry_at_ms = None

    # --- where to fetch from (KIP-392) ---

    def prefer_replica(self, node_id: int, until_ms: int) -> None:
        """Fetch from this follower until the time; the same follower does not extend it."""
        if self.preferred_replica != node_id:
            self.preferred_replica, self.preferred_replica_until_ms = node_id, until_ms

    def replica(self, now_ms: int) -> int | None:
        """The preferred follower, if there is one and its time has not passed."""
        if self.preferred_replica is not None and now_ms > self.preferred_replica_until_ms:
            self.preferred_replica = None
        return self.preferred_replica

    def clear_preferred_replica(self) -> int | None:
        """Fetch from the leader again; the follower that was preferred."""
        removed, self.preferred_replica = self.preferred_replica, None
        return removed

    # --- ends of the log ---

    def end_offset(self, *, committed_only: bool) -> int | None:
        return self.last_stable_offset if committed_only else self.high_watermark

    def has_reached_limit(self, *, committed_only: bool) -> bool:
        """Whether everything before the limit was returned; compaction may have removed its last records."""
        limit, position = self.limit, self.position
        if limit is None or position is None:
            return False
        end = self.end_offset(committed_only=committed_only)
        return position.offset >= limit or (self.nothing_at == position.offset and end is not None and end >= limit)

    def saw_nothing(self, offset: int, now_ms: int) -> None:
        """A broker had no records from this offset on. One such answer proves nothing: tiered storage may be slow."""
        if self.nothing_since is None or self.nothing_since[0] != offset:
            self.nothing_since = offset, now_ms
        elif now_ms - self.nothing_since[1] >= CERTAIN_AFTER_MS:
            self.nothing_at = offset

    def lag(self, *, committed_only: bool) -> int | None:
        end = self.end_offset(committed_only=committed_only)
        return None if end is None or self.position is None else end - self.position.offset

    def lead(self) -> int | None:
        start = self.log_start_offset
        return None if start is None or self.position is None else self.position.offset - start

    def saw_ends(
        self,
        high_watermark: int | None = None,
        last_stable_offset: int | None = None,
        log_start_offset: int | None = None,
    ) -> None:
        """Note what an answer of Fetch or ListOffsets says; None changes nothing."""
        if high_watermark is not None:
            self.high_watermark, self.end_offset_requested = high_watermark, False
        if last_stable_offset is not None:
            self.last_stable_offset, self.end_offset_requested = last_stable_offset, False
        if log_start_offset is not None:
            self.log_start_offset = log_start_offset
