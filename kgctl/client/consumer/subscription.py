"""What a consumer reads: subscribed topics or a pattern, the group's topics, assigned partitions. Kafka's SubscriptionState."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable
from enum import Enum

from kgctl.client.consumer.errors import LogTruncated, MixedSubscription, NoOffsetForPartition, NotAssigned
from kgctl.client.consumer.offset_and_metadata import OffsetAndMetadata
from kgctl.client.consumer.partition_state import FetchPosition, PartitionState
from kgctl.client.consumer.rebalance_listener import RebalanceListener
from kgctl.client.consumer.reset_strategy import NONE, ResetStrategy
from kgctl.model.topic_partition import TopicPartition


class SubscriptionType(Enum):
    NONE = "nothing"
    TOPICS = "topics"
    PATTERN = "a pattern"
    BROKER_PATTERN = "a pattern that the broker matches"
    ASSIGNED = "partitions"


_CALLS = {
    SubscriptionType.TOPICS: "subscribe to topics",
    SubscriptionType.PATTERN: "subscribe to a pattern",
    SubscriptionType.BROKER_PATTERN: "subscribe to a pattern",
    SubscriptionType.ASSIGNED: "assign partitions",
}


class SubscriptionState:
    """Positions and pauses last as long as a partition stays assigned. Partitions keep the order in which to fetch them."""

    def __init__(self, reset_strategy: ResetStrategy) -> None:
        self.default_reset = reset_strategy
        self.type = SubscriptionType.NONE
        self.pattern: re.Pattern[str] | None = None
        self.broker_pattern: str | None = None
        self.listener: RebalanceListener | None = None
        self.assignment_id = 0  # counts changes of the assignment
        self._topics: frozenset[str] = frozenset()
        self._group_topics: frozenset[str] = frozenset()
        self._assigned: dict[TopicPartition, PartitionState] = {}

    # --- what is subscribed ---

    def subscribe(self, topics: Iterable[str], listener: RebalanceListener | None = None) -> bool:
        """True if the topics changed."""
        self._set_type(SubscriptionType.TOPICS)
        self.listener = listener
        return self._change_topics(topics)

    def subscribe_pattern(self, pattern: re.Pattern[str], listener: RebalanceListener | None = None) -> None:
        """Subscribe to the topics that the whole pattern matches; `subscribe_from_pattern` brings them."""
        self._set_type(SubscriptionType.PATTERN)
        self.listener = listener
        self.pattern = pattern

    def subscribe_broker_pattern(self, pattern: str, listener: RebalanceListener | None = None) -> None:
        """Subscribe to the topics that the broker finds."""
        self._set_type(SubscriptionType.BROKER_PATTERN)
        self.listener = listener
        self.broker_pattern = pattern

    def subscribe_from_pattern(self, topics: Iterable[str]) -> bool:
        """True if the topics that match changed."""
        if self.type is not SubscriptionType.PATTERN:
            raise MixedSubscription(f"the consumer has no pattern: it has {self.type.value}")
        return self._change_topics(topics)

    def subscribe_group(self, topics: Iterable[str]) -> bool:
        """Follow the topics of all members, as the leader does; true if they include topics of other members only."""
        if not self.is_auto_assigned:
            raise MixedSubscription(f"the consumer is not subscribed: it has {self.type.value}")
        self._group_topics = frozenset(topics)
        return not self._topics >= self._group_topics

    def reset_group_subscription(self) -> None:
        self._group_topics = frozenset()

    def unsubscribe(self) -> None:
        self._topics = self._group_topics = frozenset()
        self._assigned = {}
        self.pattern = self.broker_pattern = None
        self.type = SubscriptionType.NONE
        self.assignment_id += 1

    @property
    def is_auto_assigned(self) -> bool:
        """A group assigns the partitions."""
        return self.type not in (SubscriptionType.NONE, SubscriptionType.ASSIGNED)

    @property
    def topics(self) -> frozenset[str]:
        """The subscribed topics; none if the user assigned partitions."""
        return self._topics if self.is_auto_assigned else frozenset()

    @property
    def metadata_topics(self) -> frozenset[str]:
        """The topics to know about: of the assignment, of the subscription, and for a leader those of all members."""
        return self._topics | self._group_topics

    def matches_pattern(self, topic: str) -> bool:
        return self.pattern is not None and self.pattern.fullmatch(topic) is not None

    def unsubscribed(self, partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
        """Those of the partitions that do not fit the subscription."""
        if self.pattern is not None:
            return [one for one in partitions if not self.matches_pattern(one.topic)]
        return [one for one in partitions if one.topic not in self._topics]

    def __str__(self) -> str:
        match self.type:
            case SubscriptionType.TOPICS:
                return f"topics {', '.join(sorted(self._topics))}"
            case SubscriptionType.PATTERN if self.pattern is not None:
                return f"pattern {self.pattern.pattern!r}"
            case SubscriptionType.BROKER_PATTERN:
                return f"pattern {self.broker_pattern!r} of the broker"
            case SubscriptionType.ASSIGNED:
                return f"partitions {', '.join(map(str, sorted(self._assigned)))}"
        return "nothing"

    # --- what is assigned ---

    def assign_from_user(self, partitions: Collection[TopicPartition]) -> bool:
        """True if the topics changed. Partitions that stay keep their positions."""
        self._set_type(SubscriptionType.ASSIGNED)
        if self._assigned.keys() == set(partitions):
            return False
        self._assign(partitions)
        return self._change_topics(one.topic for one in partitions)

    def assign_from_group(self, partitions: Collection[TopicPartition]) -> None:
        """Take over what the group assigned. Partitions that stay keep their positions."""
        if not self.is_auto_assigned:
            raise MixedSubscription(f"a group cannot assign partitions: the consumer has {self}")
        self._assign(partitions)

    def assign_awaiting_call(self, partitions: Collection[TopicPartition], added: Iterable[TopicPartition]) -> None:
        """Take over what the group assigned; the added ones are not fetched until `enable` after the listener's call."""
        self.assign_from_group(partitions)
        for partition in added:
            self._assigned[partition].pending_assigned_call = True

    def enable(self, partitions: Iterable[TopicPartition]) -> None:
        """The listener has run: fetch the partitions. Those that were revoked since then are skipped."""
        for partition in partitions:
            if (state := self._assigned.get(partition)) is not None:
                state.pending_assigned_call = False

    def mark_pending_revocation(self, partitions: Iterable[TopicPartition]) -> None:
        """Fetch nothing more from partitions that are about to be revoked."""
        for partition in partitions:
            self.state(partition).pending_revocation = True

    @property
    def assigned(self) -> set[TopicPartition]:
        return set(self._assigned)

    def is_assigned(self, partition: TopicPartition) -> bool:
        return partition in self._assigned

    def state(self, partition: TopicPartition) -> PartitionState:
        """Raises NotAssigned."""
        try:
            return self._assigned[partition]
        except KeyError:
            raise NotAssigned(partition) from None

    def find(self, partition: TopicPartition) -> PartitionState | None:
        return self._assigned.get(partition)

    def fetchable(self, is_available: Callable[[TopicPartition], bool] | None = None) -> list[TopicPartition]:
        """The partitions to fetch, in order."""
        return [
            partition
            for partition, state in self._assigned.items()
            if state.is_fetchable and (is_available is None or is_available(partition))
        ]

    def move_to_end(self, partition: TopicPartition) -> None:
        """Fetch this partition after all others next time."""
        if (state := self._assigned.pop(partition, None)) is not None:
            self._assigned[partition] = state

    def select(self, wanted: Callable[[PartitionState], bool]) -> set[TopicPartition]:
        return {partition for partition, state in self._assigned.items() if wanted(state)}

    @property
    def paused(self) -> set[TopicPartition]:
        return self.select(lambda state: state.paused)

    # --- positions ---

    def seek(self, partition: TopicPartition, offset: int) -> None:
        self.state(partition).seek_validated(FetchPosition(offset))

    def seek_after_reset(self, partition: TopicPartition, position: FetchPosition, strategy: ResetStrategy) -> bool:
        """Take over what ListOffsets found, unless the partition went or something else was asked for meanwhile."""
        state = self._assigned.get(partition)
        if state is None or not state.awaits_reset or state.reset_strategy != strategy:
            return False
        state.seek_unvalidated(position)
        return True

    def request_reset(self, partition: TopicPartition, strategy: ResetStrategy | None = None) -> None:
        """Look up a new position by the strategy, or by auto.offset.reset."""
        self.state(partition).reset(self.default_reset if strategy is None else strategy)

    @property
    def has_default_reset(self) -> bool:
        return self.default_reset != NONE

    @property
    def has_all_positions(self) -> bool:
        return all(state.has_valid_position for state in self._assigned.values())

    def initializing(self) -> set[TopicPartition]:
        """Partitions that need a committed offset or a reset."""
        return self.select(lambda state: state.is_initializing)

    def reset_initializing(self, include: Callable[[TopicPartition], bool] = lambda partition: True) -> None:
        """Apply auto.offset.reset to partitions that still have no position. Raises NoOffsetForPartition if it is none."""
        waiting = [one for one, state in self._assigned.items() if state.is_initializing and include(one)]
        if waiting and not self.has_default_reset:
            raise NoOffsetForPartition(waiting)
        for partition in waiting:
            self.request_reset(partition)

    def needing_reset(self, now_ms: int) -> set[TopicPartition]:
        return self.select(lambda state: state.awaits_reset and not state.awaits_retry(now_ms))

    def needing_validation(self, now_ms: int) -> set[TopicPartition]:
        return self.select(lambda state: state.awaits_validation and not state.awaits_retry(now_ms))

    def retry_at(self, partitions: Iterable[TopicPartition], at_ms: int) -> None:
        """Ask again for resets and validations of these partitions from then on. Unassigned ones are skipped."""
        for partition in partitions:
            if (state := self._assigned.get(partition)) is not None:
                state.retry_at_ms = at_ms

    def complete_validation(
        self, partition: TopicPartition, asked: FetchPosition, epoch: int, end_offset: int
    ) -> LogTruncated | None:
        """Apply an answer of OffsetForLeaderEpoch about the position `asked`; -1 means undefined.

        Returns the error to raise if the log was truncated and auto.offset.reset is none.
        """
        state = self._assigned.get(partition)
        if state is None or not state.awaits_validation or state.position != asked:
            return None
        if end_offset < 0 or epoch < 0:
            if not self.has_default_reset:
                return LogTruncated(partition, asked, None)
            state.reset(self.default_reset)
        elif end_offset < asked.offset:
            if not self.has_default_reset:
                return LogTruncated(partition, asked, OffsetAndMetadata(end_offset, epoch))
            state.seek_validated(asked._replace(offset=end_offset, offset_epoch=epoch))
        else:
            state.complete_validation()
        return None

    def consumed(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """The positions to commit: of all partitions with a valid one."""
        return {
            partition: OffsetAndMetadata(position.offset, position.offset_epoch)
            for partition, state in self._assigned.items()
            if (position := state.valid_position) is not None
        }

    # --- parts ---

    def _set_type(self, wanted: SubscriptionType) -> None:
        if self.type not in (SubscriptionType.NONE, wanted):
            raise MixedSubscription(
                f"cannot {_CALLS[wanted]}: the consumer has {self}; topics, a pattern and partitions exclude each other,"
                " so call unsubscribe() first"
            )
        self.type = wanted

    def _change_topics(self, topics: Iterable[str]) -> bool:
        before, self._topics = self._topics, frozenset(topics)
        self._mark_unsubscribed()
        return before != self._topics

    def _mark_unsubscribed(self) -> None:
        if self.type is SubscriptionType.TOPICS:
            for one, state in self._assigned.items():
                state.is_unsubscribed = one.topic not in self._topics

    def _assign(self, partitions: Collection[TopicPartition]) -> None:
        """Partitions of one topic stand together, so that a request names each topic once."""
        self.assignment_id += 1
        topics: dict[str, list[TopicPartition]] = {}
        for one in partitions:
            topics.setdefault(one.topic, []).append(one)
        old = self._assigned
        self._assigned = {one: old.get(one) or PartitionState() for rows in topics.values() for one in rows}
        self._mark_unsubscribed()
