"""Where to read: leaders, committed offsets, resets and validation of positions. The other half of Kafka's OffsetFetcher."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from broker.protocol.errors import ErrorCode
from broker.protocol.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse
from broker.protocol.wire_types import ZERO_UUID
from kgctl.client.consumer.errors import NoOffsetForPartition
from kgctl.client.consumer.fetching.offset_lookup import OffsetAndTimestamp, Result, ask_leader, is_final
from kgctl.client.consumer.fetching.options import FetchOptions
from kgctl.client.consumer.offset_and_metadata import OffsetAndMetadata
from kgctl.client.consumer.partition_state import FetchPosition, PartitionState
from kgctl.client.consumer.reset_strategy import LATEST_TIMESTAMP, ResetStrategy
from kgctl.client.consumer.subscription import SubscriptionState
from kgctl.client.net.authorization import Asked
from kgctl.client.net.errors import BrokerError, KgctlError, TimedOut, Unsupported
from kgctl.client.network.client import NetworkClient
from kgctl.client.network.outgoing import Outgoing
from kgctl.model.topic_partition import TopicPartition

# Older versions cannot be used without the permission to read the cluster.
_FIRST_EPOCH_VERSION = 3


class CommittedOffsets(Protocol):
    """A lookup of committed offsets, as the membership offers it."""

    is_done: bool
    error: KgctlError | None
    reason: KgctlError | None
    offsets: dict[TopicPartition, OffsetAndMetadata | None]


class Positions:
    """A participant of the client's turns. `wall_ms` is the time since 1970, for resets by duration.

    `find_committed` begins a lookup of committed offsets; without it, partitions start where auto.offset.reset says.
    `reset_to` is called with each position that was found so, `replaced` with each one that was left because its topic was
    deleted and created again.
    """

    def __init__(
        self,
        network: NetworkClient,
        subscription: SubscriptionState,
        options: FetchOptions,
        wall_ms: Callable[[], int],
        find_committed: Callable[[set[TopicPartition], int], CommittedOffsets] | None = None,
        reset_to: Callable[[TopicPartition, int, ResetStrategy], None] = lambda one, offset, strategy: None,
        replaced: Callable[[TopicPartition, int], None] = lambda one, offset: None,
    ) -> None:
        self._network, self._subscription, self._options = network, subscription, options
        self._metadata, self._wall_ms, self._find_committed = network.metadata, wall_ms, find_committed
        self._reset_to, self._replaced = reset_to, replaced
        self._error: KgctlError | None = None
        self._seen_metadata = (-1, -1)
        self._committed: tuple[CommittedOffsets, set[TopicPartition]] | None = None
        self._without_offset: set[TopicPartition] = set()
        self._wake_at: int | None = None

    # --- a participant ---

    def advance(self, now_ms: int) -> None:
        self._wake_at = None
        self._follow_leaders()
        self._initialize(now_ms)
        self._reset(now_ms)
        self._validate(now_ms)

    def wake_at_ms(self) -> int | None:
        return self._wake_at

    # --- for the application ---

    @property
    def has_error(self) -> bool:
        return self._error is not None or bool(self._still_without_offset())

    def raise_error(self) -> None:
        """Raise a failure of a reset or a validation, once."""
        error, self._error = self._error, None
        if error is not None:
            raise error
        without = self._still_without_offset()
        self._without_offset.clear()  # looked up again afterwards
        if without:
            raise NoOffsetForPartition(without)

    @property
    def waits_because(self) -> KgctlError | None:
        """Why committed offsets are looked up again."""
        return None if self._committed is None else self._committed[0].reason

    def _still_without_offset(self) -> set[TopicPartition]:
        """Partitions for which the application has to seek; it may have done so since."""
        return self._without_offset & self._subscription.initializing() if self._without_offset else set()

    # --- leaders ---

    def _follow_leaders(self) -> None:
        """Compare positions with the metadata: with all after an update, else with those that have no leader yet."""
        seen = (self._metadata.version, self._subscription.assignment_id)
        is_new, self._seen_metadata = seen != self._seen_metadata, seen
        if is_new:
            self._leave_replaced_topics()
        for one in self._chosen(lambda state: state.position is not None and (is_new or state.position.leader is None)):
            state = self._subscription.state(one)
            leader = self._metadata.leader(one)
            if leader is None:
                if state.position is not None and state.position.leader is None:
                    self._without_leader(one)
                continue
            node_id = leader.node.node_id
            version = self._network.version_of(node_id, OffsetForLeaderEpochRequest, _FIRST_EPOCH_VERSION)
            epoch = leader.epoch if leader.epoch >= 0 else None
            state.follow_leader(node_id, epoch, can_validate=not isinstance(version, Unsupported))

    def _leave_replaced_topics(self) -> None:
        """A position means nothing in another topic of the same name; Java's consumer continues there."""
        for one in self._chosen(lambda state: state.topic_id is not None):
            state, topic = self._subscription.state(one), self._metadata.topic(one.topic)
            if topic is None or topic.topic_id == state.topic_id or state.position is None:
                continue
            if topic.topic_id == ZERO_UUID:
                state.topic_id = None  # a broker that is too old for ids answered
                continue
            self._replaced(one, state.position.offset)
            if self._subscription.has_default_reset:
                self._subscription.request_reset(one)
            else:
                state.start_over()

    # --- partitions without a position ---

    def _initialize(self, now_ms: int) -> None:
        if self._committed is not None:
            lookup, asked = self._committed
            if not lookup.is_done:
                return
            self._committed = None
            self._apply_committed(lookup, asked)
        waiting = self._subscription.initializing() - self._without_offset
        if not waiting or self._error is not None:
            return
        if self._find_committed is not None:
            lookup = self._find_committed(waiting, now_ms)
            self._committed = (lookup, waiting)
            if lookup.is_done:
                self._initialize(now_ms)
            return
        self._begin_resets(waiting)

    def _apply_committed(self, lookup: CommittedOffsets, asked: set[TopicPartition]) -> None:
        if lookup.error is not None:
            if not isinstance(lookup.error, TimedOut):
                self._fail(lookup.error)
            return
        without = set()
        for one in asked:
            state = self._subscription.find(one)
            if state is None or not state.is_initializing:
                continue
            found = lookup.offsets.get(one)
            if found is None:
                without.add(one)
                continue
            if found.leader_epoch is not None:
                self._metadata.note_epoch(one, found.leader_epoch)
            leader = self._metadata.leader(one)
            state.seek_unvalidated(
                FetchPosition(found.offset, found.leader_epoch)
                if leader is None
                else FetchPosition(
                    found.offset, found.leader_epoch, leader.node.node_id, leader.epoch if leader.epoch >= 0 else None
                )
            )
        self._begin_resets(without)

    def _begin_resets(self, partitions: set[TopicPartition]) -> None:
        if self._subscription.has_default_reset:
            self._subscription.reset_initializing(partitions.__contains__)
        else:
            self._without_offset |= partitions

    # --- resets ---

    def _reset(self, now_ms: int) -> None:
        by_node: dict[int, dict[TopicPartition, tuple[int, int | None]]] = {}
        strategies: dict[TopicPartition, ResetStrategy] = {}
        for one in self._chosen(lambda state: state.awaits_reset):
            state = self._subscription.state(one)
            if state.awaits_retry(now_ms):
                self._wake_by(state.retry_at_ms)
                continue
            strategy = state.reset_strategy
            leader = self._leader(one, now_ms)
            if strategy is None or leader is None:
                continue
            strategies[one] = strategy
            by_node.setdefault(leader[0], {})[one] = (strategy.timestamp(self._wall_ms()), leader[1])
        for node_id, rows in by_node.items():
            self._ask_for_offsets(node_id, rows, strategies, now_ms)

    def _ask_for_offsets(
        self,
        node_id: int,
        rows: dict[TopicPartition, tuple[int, int | None]],
        strategies: dict[TopicPartition, ResetStrategy],
        now_ms: int,
    ) -> None:
        def done(results: dict[TopicPartition, Result], at_ms: int) -> None:
            self._apply_offsets(node_id, rows, results, strategies, at_ms)

        options = self._options
        self._subscription.retry_at(rows, now_ms + options.request_timeout_ms)
        ask_leader(
            self._network,
            node_id,
            rows,
            done,
            now_ms,
            committed_only=options.committed_only,
            request_timeout_ms=options.request_timeout_ms,
        )

    def _apply_offsets(
        self,
        node_id: int,
        rows: dict[TopicPartition, tuple[int, int | None]],
        results: dict[TopicPartition, Result],
        strategies: dict[TopicPartition, ResetStrategy],
        now_ms: int,
    ) -> None:
        newer: dict[TopicPartition, tuple[int, int | None]] = {}
        for one, result in results.items():
            if isinstance(result, KgctlError):
                self._failed(one, result, now_ms)
            elif result is not None:
                self._found(one, result, strategies[one])
            elif rows[one][0] >= 0:
                newer[one] = (LATEST_TIMESTAMP, rows[one][1])  # no record is that young: continue at the end
            else:
                self._retry([one], now_ms)
        if newer:
            if self._network.is_ready(node_id, now_ms):
                self._ask_for_offsets(node_id, newer, strategies, now_ms)
            else:
                self._retry(list(newer), now_ms)

    def _found(self, one: TopicPartition, found: OffsetAndTimestamp, strategy: ResetStrategy) -> None:
        if found.leader_epoch is not None:
            self._metadata.note_epoch(one, found.leader_epoch)
        leader = self._metadata.leader(one)
        position = FetchPosition(found.offset)  # without an epoch, so that it is not validated
        if leader is not None:
            position = position._replace(
                leader=leader.node.node_id, leader_epoch=leader.epoch if leader.epoch >= 0 else None
            )
        if self._subscription.seek_after_reset(one, position, strategy):
            self._reset_to(one, found.offset, strategy)

    # --- validation (KIP-320) ---

    def _validate(self, now_ms: int) -> None:
        by_node: dict[int, dict[TopicPartition, FetchPosition]] = {}
        for one in self._chosen(lambda state: state.awaits_validation):
            state = self._subscription.state(one)
            if state.awaits_retry(now_ms):
                self._wake_by(state.retry_at_ms)
                continue
            position = state.position
            leader = self._leader(one, now_ms)
            if position is None or leader is None:
                continue
            version = self._network.version_of(leader[0], OffsetForLeaderEpochRequest, _FIRST_EPOCH_VERSION)
            if isinstance(version, Unsupported):
                state.complete_validation()
            elif version is not None:
                by_node.setdefault(leader[0], {})[one] = position
        for node_id, positions in by_node.items():
            self._subscription.retry_at(positions, now_ms + self._options.request_timeout_ms)
            self._ask_for_epochs(node_id, positions, now_ms)

    def _ask_for_epochs(self, node_id: int, positions: dict[TopicPartition, FetchPosition], now_ms: int) -> None:
        topics: dict[str, OffsetForLeaderEpochRequest.Topic] = {}
        for one, position in positions.items():
            topic = topics.setdefault(one.topic, OffsetForLeaderEpochRequest.Topic(topic=one.topic, partitions=[]))
            topic.partitions.append(
                OffsetForLeaderEpochRequest.Partition(
                    partition=one.partition,
                    current_leader_epoch=-1 if position.leader_epoch is None else position.leader_epoch,
                    leader_epoch=-1 if position.offset_epoch is None else position.offset_epoch,
                )
            )

        def done(answer: OffsetForLeaderEpochResponse | KgctlError, at_ms: int) -> None:
            self._apply_epochs(positions, answer, at_ms)

        request = OffsetForLeaderEpochRequest(replica_id=-1, topics=list(topics.values()))
        outgoing = Outgoing(
            request,
            OffsetForLeaderEpochResponse,
            done,
            self._options.request_timeout_ms,
            min_version=_FIRST_EPOCH_VERSION,
        )
        self._network.send(node_id, outgoing, now_ms)

    def _apply_epochs(
        self,
        positions: dict[TopicPartition, FetchPosition],
        answer: OffsetForLeaderEpochResponse | KgctlError,
        now_ms: int,
    ) -> None:
        if isinstance(answer, KgctlError):
            for one in positions:
                self._failed(one, answer, now_ms)
            return
        missing = dict(positions)
        for topic in answer.topics:
            for row in topic.partitions:
                one = TopicPartition(topic.topic, row.partition)
                asked = missing.pop(one, None)
                if asked is None:
                    continue
                if row.error_code:
                    about = Asked(OffsetForLeaderEpochRequest, topic=one.topic)
                    self._failed(one, BrokerError(row.error_code, str(one), asked=about, by_leader=True), now_ms)
                    continue
                truncated = self._subscription.complete_validation(one, asked, row.leader_epoch, row.end_offset)
                if truncated is not None:
                    self._fail(truncated)
        self._retry(list(missing), now_ms)

    # --- parts ---

    def _chosen(self, wanted: Callable[[PartitionState], bool]) -> list[TopicPartition]:
        """In an order that does not depend on hashes, so that simulations can be replayed."""
        return sorted(self._subscription.select(wanted))

    def _leader(self, one: TopicPartition, now_ms: int) -> tuple[int, int | None] | None:
        """Node and epoch of the leader, if it is ready."""
        leader = self._metadata.leader(one)
        if leader is None:
            self._without_leader(one)
            return None
        node_id = leader.node.node_id
        if not self._network.is_ready(node_id, now_ms):
            error = self._network.error_of(node_id)
            if error is not None and error.is_final:
                self._fail(error)
            self._wake_by(self._network.ready_at_ms(node_id, now_ms))
            return None
        return node_id, leader.epoch if leader.epoch >= 0 else None

    def _without_leader(self, one: TopicPartition) -> None:
        self._metadata.request_update()
        error = self._metadata.error_of(one.topic)
        if isinstance(error, BrokerError) and error.code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
            self._fail(error)

    def _failed(self, one: TopicPartition, error: KgctlError, now_ms: int) -> None:
        self._retry([one], now_ms)
        if is_final(error):
            self._fail(error)

    def _retry(self, partitions: list[TopicPartition], now_ms: int) -> None:
        if partitions:
            self._subscription.retry_at(partitions, now_ms + self._options.retry_backoff_ms)
            self._metadata.request_update()

    def _fail(self, error: KgctlError) -> None:
        self._error = self._error or error

    def _wake_by(self, at_ms: int | None) -> None:
        if at_ms is not None and (self._wake_at is None or at_ms < self._wake_at):
            self._wake_at = at_ms
