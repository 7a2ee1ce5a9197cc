"""A consumer without clock, sockets and threads: its parts, and what each method of a face does."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from re import Pattern
from typing import TypeVar

from broker.protocol.errors import ErrorCode
from broker.protocol.messages.metadata import MetadataRequest, MetadataResponse
from kgctl.client.consumer.errors import NoGroup, NotSubscribed, WakeupError
from kgctl.client.consumer.fetching.fetches import Fetches
from kgctl.client.consumer.fetching.offset_lookup import OffsetAndTimestamp, OffsetLookup
from kgctl.client.consumer.fetching.options import FetchOptions
from kgctl.client.consumer.fetching.positions import CommittedOffsets, Positions
from kgctl.client.consumer.group.calls import CommitCallback
from kgctl.client.consumer.group.commits import Commit
from kgctl.client.consumer.group.member import GroupMember
from kgctl.client.consumer.offset_and_metadata import OffsetAndMetadata
from kgctl.client.consumer.operations import Operation, Wait
from kgctl.client.consumer.partition_state import FetchPosition
from kgctl.client.consumer.rebalance_listener import RebalanceListener
from kgctl.client.consumer.reset_strategy import LATEST_TIMESTAMP, ResetStrategy
from kgctl.client.consumer.subscription import SubscriptionState, SubscriptionType
from kgctl.client.consumer.subscription_pattern import SubscriptionPattern
from kgctl.client.consumer.wanted_topics import want_topics
from kgctl.client.net.errors import BadValue, BrokerError, KgctlError, TimedOut
from kgctl.client.network.client import NetworkClient
from kgctl.client.network.outgoing import Outgoing
from kgctl.model.topic_partition import TopicPartition

T = TypeVar("T")

# How long closing waits for the brokers to end the fetch sessions.
_LAST_FETCH_MS = 100
# A poll that waits for long lets the membership know that the application is alive.
_LONGEST_WAIT_MS = 1_000


class ConsumerCore:
    """A participant of the client's turns. All calls hold the engine's lock."""

    def __init__(
        self,
        network: NetworkClient,
        subscription: SubscriptionState,
        options: FetchOptions,
        wall_ms: Callable[[], int],
        member: GroupMember | None,
        timeout_ms: int,
        note: Callable[[str], None],
    ) -> None:
        self._note = note
        self.network, self.subscription, self.options, self.member = network, subscription, options, member
        self.timeout_ms = timeout_ms
        find_committed = None if member is None else self._find_committed
        self.positions = Positions(
            network, subscription, options, wall_ms, find_committed, self._was_reset, self._was_replaced
        )
        self.fetches = Fetches(network, subscription, options)
        self._lookups: list[OffsetLookup] = []
        self._now_ms = 0
        self.is_woken = False
        self.is_closed = False

    # --- a participant ---

    def advance(self, now_ms: int) -> None:
        self._now_ms = now_ms
        if self.member is not None:
            self.member.advance(now_ms)
        self.positions.advance(now_ms)
        self.fetches.advance(now_ms)
        for lookup in self._lookups:
            lookup.advance(now_ms)

    def wake_at_ms(self) -> int | None:
        times = [self.positions.wake_at_ms(), self.fetches.wake_at_ms()]
        if self.member is not None:
            times.append(self.member.wake_at_ms())
        times += [lookup.wake_at_ms() for lookup in self._lookups]
        return min((time for time in times if time is not None), default=None)

    def _was_reset(self, partition: TopicPartition, offset: int, strategy: ResetStrategy) -> None:
        lost = self.fetches.lost.pop(partition, None)
        if lost is not None:
            self._note(f"{partition} has no offset {lost}; continuing at {offset}, the {strategy}")

    def _was_replaced(self, partition: TopicPartition, offset: int) -> None:
        self._note(
            f"topic {partition.topic} was deleted and created again: the consumer leaves offset {offset} of {partition}"
        )

    def obstacle(self) -> KgctlError | None:
        """Why records may not arrive now: a missing partition, a leader that fails, offsets of an open transaction, ..."""
        metadata = self.network.metadata
        for one in self.subscription.assigned:
            leader, count = metadata.leader(one), metadata.partition_count(one.topic)
            if leader is not None:
                error = self.network.error_of(leader.node.node_id) or self.fetches.cause(one)
            elif count is not None and one.partition >= count:
                error = BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, str(one))
            else:
                error = metadata.error_of(one.topic)
            if error is not None:
                return error
        if self.positions.waits_because is not None:
            return self.positions.waits_because
        errors = [self.network.error_of(node_id) for node_id in metadata.nodes()]
        return errors[0] if errors and all(errors) else None

    # --- what to read ---

    def subscribe(self, topics: Collection[str], listener: RebalanceListener | None, now_ms: int) -> None:
        member = self.group("subscribe")
        self.subscription.subscribe(topics, listener)
        member.subscription_changed(now_ms)

    def subscribe_pattern(
        self, pattern: Pattern[str] | SubscriptionPattern, listener: RebalanceListener | None, now_ms: int
    ) -> None:
        member = self.group("subscribe")
        if not isinstance(pattern, SubscriptionPattern):
            self.subscription.subscribe_pattern(pattern, listener)
        elif member.settings.protocol == "consumer":
            self.subscription.subscribe_broker_pattern(pattern.pattern, listener)
        else:
            raise BadValue(
                "a broker matches patterns for groups of the consumer protocol only: set group.protocol=consumer"
            )
        member.subscription_changed(now_ms)

    def assign(self, partitions: Collection[TopicPartition], now_ms: int) -> None:
        if self.member is not None and self.subscription.type is SubscriptionType.ASSIGNED:
            self.member.auto_commit_if_due(now_ms)
        self.subscription.assign_from_user(partitions)
        want_topics(self.network.metadata, self.subscription)

    def unsubscribe(self, now_ms: int) -> Operation[None]:
        if self.member is None:
            self.subscription.unsubscribe()
            want_topics(self.network.metadata, self.subscription)
            return
        self.member.begin_unsubscribe(now_ms)
        yield from self._finish(lambda member: member.is_idle, now_ms, None)

    # --- records ---

    def poll_at_once(self, collect: Callable[[], Sequence[T]]) -> Sequence[T] | None:
        """What `poll` gives if it has only to collect; None: call `poll`. Without a group, for which each poll counts."""
        if (
            self.member is not None
            or self.is_closed
            or self.is_woken
            or self.network.metadata.error is not None
            or self.positions.has_error
            or not self.fetches.has_data()
        ):
            return None
        return collect()

    def poll(self, collect: Callable[[], Sequence[T]], now_ms: int, deadline_ms: int) -> Operation[Sequence[T]]:
        """What `collect` gives, as soon as it gives something; else nothing at the deadline."""
        if self.subscription.type is SubscriptionType.NONE:
            raise NotSubscribed("the consumer reads nothing: call subscribe or assign before poll")
        while True:
            self.raise_wakeup()
            if self.member is not None:
                self.member.poll(now_ms)
                now_ms = yield from self._run_calls(self.member, now_ms)
            self.network.metadata.take_error()
            self.positions.raise_error()
            found = collect()
            if found or now_ms >= deadline_ms:
                return found
            now_ms = yield Wait(self._has_something, min(deadline_ms, now_ms + _LONGEST_WAIT_MS))

    def _has_something(self) -> bool:
        return (
            self.is_woken
            or self.fetches.has_data()
            or self.positions.has_error
            or self.network.metadata.error is not None
            or (self.member is not None and self.member.has_work(self._now_ms))
        )

    # --- positions ---

    def seek(self, partition: TopicPartition, target: OffsetAndMetadata) -> None:
        if target.offset < 0:
            raise BadValue(f"{partition}: cannot seek to offset {target.offset}; offsets begin with 0")
        state = self.subscription.state(partition)
        leader = self.network.metadata.leader(partition)
        position = FetchPosition(target.offset, target.leader_epoch)
        if leader is not None:
            epoch = leader.epoch if leader.epoch >= 0 else None
            position = position._replace(leader=leader.node.node_id, leader_epoch=epoch)
        state.seek_unvalidated(position)

    def request_reset(self, partitions: Collection[TopicPartition], strategy: ResetStrategy) -> None:
        for one in list(partitions) or self.subscription.assigned:
            self.subscription.state(one)
        for one in list(partitions) or self.subscription.assigned:
            self.subscription.request_reset(one, strategy)

    def position(self, partition: TopicPartition, now_ms: int, deadline_ms: int) -> Operation[int]:
        while True:
            self.raise_wakeup()
            position = self.subscription.state(partition).valid_position
            if position is not None:
                return position.offset
            self.network.metadata.take_error()
            self.positions.raise_error()
            if now_ms >= deadline_ms:
                obstacle = self.obstacle()
                why = "" if obstacle is None else f": {obstacle}"
                raise TimedOut(f"the position of {partition} is not known in time{why}")
            now_ms = yield Wait(lambda: self._has_position(partition), deadline_ms)

    def _has_position(self, partition: TopicPartition) -> bool:
        state = self.subscription.find(partition)
        return (
            self.is_woken
            or state is None
            or state.has_valid_position
            or self.positions.has_error
            or self.network.metadata.error is not None
        )

    def look_up(
        self, timestamps: Mapping[TopicPartition, int], now_ms: int, deadline_ms: int
    ) -> Operation[dict[TopicPartition, OffsetAndTimestamp | None]]:
        lookup = self._begin_lookup(timestamps, deadline_ms)
        try:
            self.network.metadata.want({one.topic for one in timestamps})
            while not lookup.done:
                self.raise_wakeup()
                self.network.metadata.take_error()
                yield Wait(lambda: lookup.done or self.is_woken or self.network.metadata.error is not None, None)
        finally:
            self._lookups.remove(lookup)
            want_topics(self.network.metadata, self.subscription)
        if lookup.error is not None:
            raise lookup.error
        return lookup.offsets

    def current_lag(self, partition: TopicPartition, now_ms: int) -> int | None:
        """The number of records behind the end of the log; None until the end is known, which this asks for."""
        state = self.subscription.state(partition)
        lag = state.lag(committed_only=self.options.committed_only)
        if lag is None and state.position is not None and not state.end_offset_requested:
            state.end_offset_requested = True
            self._lookups = [one for one in self._lookups if not one.done]
            self._begin_lookup({partition: LATEST_TIMESTAMP}, now_ms + self.timeout_ms)
        return lag

    def _begin_lookup(self, timestamps: Mapping[TopicPartition, int], deadline_ms: int) -> OffsetLookup:
        committed_only = self.options.committed_only

        def seen(one: TopicPartition, found: OffsetAndTimestamp) -> None:
            state = self.subscription.find(one)
            if state is not None and timestamps[one] == LATEST_TIMESTAMP:
                state.saw_ends(None, found.offset) if committed_only else state.saw_ends(found.offset)

        lookup = OffsetLookup(self.network, timestamps, deadline_ms, committed_only=committed_only, seen=seen)
        self._lookups.append(lookup)
        return lookup

    # --- committed offsets ---

    def group(self, what: str) -> GroupMember:
        if self.member is None:
            raise NoGroup(f"cannot {what}: group.id is not set")
        return self.member

    def commit(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], now_ms: int, deadline_ms: int
    ) -> Operation[None]:
        member = self.group("commit offsets")
        commit = member.commit_sync(offsets, now_ms, deadline_ms)
        while not commit.is_done:
            self.raise_wakeup()
            now_ms = yield Wait(lambda: commit.is_done or member.has_calls or self.is_woken, None)
            now_ms = yield from self._run_calls(member, now_ms)
        yield from self._run_calls(member, now_ms)
        if commit.error is not None:
            raise commit.error

    def commit_async(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], callback: CommitCallback | None, now_ms: int
    ) -> Operation[Commit]:
        member = self.group("commit offsets")
        commit = member.commit(offsets, now_ms, callback)
        yield from self._run_calls(member, now_ms)
        return commit

    def committed(
        self, partitions: Collection[TopicPartition], now_ms: int, deadline_ms: int
    ) -> Operation[dict[TopicPartition, OffsetAndMetadata | None]]:
        member = self.group("look up committed offsets")
        lookup = member.committed(partitions, now_ms, deadline_ms)
        while not lookup.is_done:
            self.raise_wakeup()
            self.network.metadata.take_error()
            yield Wait(lambda: lookup.is_done or self.is_woken or self.network.metadata.error is not None, None)
        if lookup.error is not None:
            raise lookup.error
        return {one: lookup.offsets.get(one) for one in partitions}

    def _find_committed(self, partitions: set[TopicPartition], now_ms: int) -> CommittedOffsets:
        return self.group("look up committed offsets").committed(partitions, now_ms, now_ms + self.timeout_ms)

    # --- the cluster ---

    def describe(self, topics: Iterable[str] | None, now_ms: int, deadline_ms: int) -> Operation[MetadataResponse]:
        """The metadata of some topics or of all, asked for now."""
        names = None if topics is None else [MetadataRequest.Topic(name=name) for name in topics]
        answers: list[MetadataResponse | KgctlError] = []
        outgoing = Outgoing(
            MetadataRequest(topics=names, allow_auto_topic_creation=False),
            MetadataResponse,
            lambda answer, at_ms: answers.append(answer),
            max(1, deadline_ms - now_ms),
            min_version=4,
        )
        self.network.send_any(outgoing, now_ms)
        while not answers:
            self.raise_wakeup()
            yield Wait(lambda: bool(answers) or self.is_woken, None)
        answer = answers[0]
        if isinstance(answer, KgctlError):
            raise answer
        return answer

    # --- the end ---

    def close(self, now_ms: int, deadline_ms: int) -> Operation[None]:
        """Commit automatically, leave the group, end the fetch sessions; raises what a listener raised once all is done."""
        self.is_closed = True
        error: Exception | None = None
        if self.member is not None:
            try:
                self.member.begin_close(now_ms, deadline_ms)
                now_ms = yield from self._finish(lambda member: member.is_closed, now_ms, deadline_ms)
            except Exception as raised:  # noqa: BLE001  (raised below)
                error = raised
        self.fetches.close(now_ms)
        yield Wait(lambda: not self.fetches.is_ending, min(deadline_ms, now_ms + _LAST_FETCH_MS))
        if error is not None:
            raise error

    def raise_wakeup(self) -> None:
        if self.is_woken:
            self.is_woken = False
            raise WakeupError("wakeup() was called")

    # --- parts ---

    def _run_calls(self, member: GroupMember, now_ms: int) -> Operation[int]:
        while (call := member.next_call()) is not None:
            try:
                now_ms = yield call
            except GeneratorExit:
                # An interrupt or a cancellation ended the call, and is on its way to the application: the rebalance continues.
                with contextlib.suppress(BaseException):
                    member.call_done(call, self._now_ms)
                raise
            member.call_done(call, now_ms)
        return now_ms

    def _finish(self, is_over: Callable[[GroupMember], bool], now_ms: int, deadline_ms: int | None) -> Operation[int]:
        """Run what the end of a membership needs. An error of the application is raised when all is done."""
        member = self.group("leave a group")
        error: Exception | None = None
        while True:
            try:
                now_ms = yield from self._run_calls(member, now_ms)
            except Exception as raised:  # noqa: BLE001  (raised below)
                error = error or raised
                continue
            if is_over(member) or (deadline_ms is not None and now_ms > deadline_ms):
                break
            until_ms = None if deadline_ms is None else deadline_ms + 1
            now_ms = yield Wait(lambda: is_over(member) or member.has_calls, until_ms)
        if error is not None:
            raise error
        return now_ms
