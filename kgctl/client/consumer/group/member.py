"""The face of a consumer's membership in its group: what the polling thread calls, and what the engine calls.

All calls hold the engine's lock, and none waits. `now_ms` is the engine's clock.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable
from random import Random

from kgctl.client.consumer.assignors.assignor import Assignor, RebalanceProtocol
from kgctl.client.consumer.assignors.loading import common_protocols
from kgctl.client.consumer.group.calls import Call, CommitCallback, ListenerCall
from kgctl.client.consumer.group.commits import Commit, Commits, Offsets
from kgctl.client.consumer.group.committed import CommittedOffsets, Lookup
from kgctl.client.consumer.group.flows import Flow, GroupFlows, Wait
from kgctl.client.consumer.group.generation import MemberState
from kgctl.client.consumer.group.link import CoordinatorLink
from kgctl.client.consumer.group.membership import Membership
from kgctl.client.consumer.group.rebalance import Rebalance
from kgctl.client.consumer.group.settings import GroupSettings
from kgctl.client.consumer.group.standing import Standing
from kgctl.client.consumer.group.topics import TopicWatch
from kgctl.client.consumer.group_metadata import ConsumerGroupMetadata
from kgctl.client.consumer.subscription import SubscriptionState
from kgctl.client.net.errors import BadValue, KgctlError, Unreachable
from kgctl.client.network.client import NetworkClient
from kgctl.client.network.coordinator import GROUP, Coordinator
from kgctl.model.topic_partition import TopicPartition

# How long a close waits while no broker is connected. One that restarts is mostly back by then.
_OUT_OF_REACH_MS = 3_000
_LOOK_AGAIN_MS = 500


class GroupMember:
    """A participant of the network. It exists for every consumer with a group.id, also for one that only commits."""

    def __init__(
        self,
        network: NetworkClient,
        subscription: SubscriptionState,
        settings: GroupSettings,
        assignors: Iterable[Assignor],
        random: Random,
        note: Callable[[str], None] = lambda text: None,
    ) -> None:
        self.settings = settings
        self._network, self._subscription = network, subscription
        self._link = CoordinatorLink(
            network, Coordinator(network, settings.group_id, GROUP, random), settings.request_timeout_ms
        )
        self._calls: deque[Call] = deque()
        self._topics = TopicWatch(subscription, network.metadata, settings)
        self._membership: Standing
        self._rebalance: GroupFlows
        if settings.protocol == "consumer":
            from kgctl.client.consumer.group.consumer_protocol.membership import EpochMembership
            from kgctl.client.consumer.group.consumer_protocol.reconciliation import Reconciliation

            epochs = EpochMembership(self._link, settings, random, subscription, note)
            self._membership = epochs
            self._commits = Commits(epochs, subscription, random, self._calls)
            self._rebalance = Reconciliation(epochs, self._commits, subscription, self._topics, network.metadata)
        else:
            assignors = list(assignors)
            is_cooperative = RebalanceProtocol.COOPERATIVE in common_protocols(assignors)
            protocol = RebalanceProtocol.COOPERATIVE if is_cooperative else RebalanceProtocol.EAGER
            membership = Membership(
                self._link,
                settings,
                random,
                lambda: rebalance.protocols(),
                lambda joined: rebalance.start_assigning(joined),
                note,
            )
            self._membership = membership
            self._commits = Commits(membership, subscription, random, self._calls)
            rebalance = Rebalance(
                membership, self._commits, subscription, self._topics, network.metadata, assignors, protocol
            )
            self._rebalance = rebalance
        self._committed = CommittedOffsets(self._link, settings, random)
        self._flow: Flow | None = None
        self._blocking: Call | None = None
        self._wait: Wait | None = None
        self._advanced_ms = 0
        self._closing_error: Exception | None = None  # of the listener
        self._is_ending = self._is_closing = False
        self.is_closed = False

    # --- for the engine ---

    def advance(self, now_ms: int) -> None:
        """Heartbeats, timeouts and answers continue while the application does other things."""
        self._advanced_ms = now_ms
        if self.is_closed:
            return
        self._link.advance(now_ms)
        self._membership.advance(now_ms)
        self._commits.advance(now_ms)
        self._committed.advance(now_ms)
        if self._is_ending:
            self._continue(now_ms)

    def wake_at_ms(self) -> int | None:
        if self.is_closed:
            return None
        times = [*self._link.wake_at_ms(self._advanced_ms), *self._commits.wake_at_ms(), *self._committed.wake_at_ms()]
        for time in (self._membership.wake_at_ms(), self._wait.at_ms if self._wait is not None else None):
            if time is not None:
                times.append(time)
        # What was due at the last turn waits for an event or for the application.
        return min((time for time in times if time > self._advanced_ms), default=None)

    # --- for poll ---

    def poll(self, now_ms: int) -> None:
        """The application polled: rejoin if that is due, then commit automatically. Raises what went wrong since then."""
        self._commits.raise_if_fenced()
        self._topics.update(now_ms)
        if not self._subscription.is_auto_assigned:
            self._commits.auto_commit_if_due(now_ms)
            return
        self._membership.poll(now_ms)
        if self._flow is None and not self._is_ending:
            if not self._rebalance.is_needed:
                self._link.seek(now_ms)
                self._commits.auto_commit_if_due(now_ms)
                return
            self._start(self._rebalance.active_group())
        self._continue(now_ms)

    def has_work(self, now_ms: int) -> bool:
        """Whether `poll` or `next_call` would do something. What `begin_close` began continues by itself."""
        if self._calls:
            return True
        if self._is_ending:
            return False
        if self._flow is not None:
            return self._blocking is None and (self._wait is None or self._wait.ready(now_ms))
        if self._membership.failure is not None or self._topics.is_outdated:
            return True
        return self._commits.auto_commit_due(now_ms) or self._rebalance.is_needed

    @property
    def has_calls(self) -> bool:
        """Whether `next_call` gives one."""
        return bool(self._calls)

    def next_call(self) -> Call | None:
        """Code of the application to run in this thread, without the lock. Give it back with `call_done`.

        It may commit, so that the callbacks of those commits run inside.
        """
        if not self._calls:
            return None
        call = self._calls.popleft()
        if isinstance(call, ListenerCall) and call.kind == "revoked" and self._membership.generation.owns_nothing:
            call.kind = "lost"  # the membership ended since the call was due
        return call

    def call_done(self, call: Call, now_ms: int) -> None:
        """Continue after a call. Raises what it raised, once everything is in order again."""
        if call is not self._blocking:
            if isinstance(call.error, Exception):
                raise call.error
            return
        self._blocking = None
        self._continue(now_ms)
        if self._closing_error is not None:
            error, self._closing_error = self._closing_error, None
            raise error

    # --- the subscription ---

    def subscription_changed(self, now_ms: int) -> None:
        """Call this after `subscribe` or `assign` of the subscription."""
        self._topics.subscribed()

    def enforce_rebalance(self, reason: str | None = None) -> None:
        """Rejoin in the next poll. Raises BadValue in a group of the consumer protocol, where only the broker rebalances."""
        if self.settings.protocol == "consumer":
            raise BadValue(
                "a member of a group of the consumer protocol cannot enforce a rebalance: the broker assigns"
            )
        self._membership.request_rejoin(reason or "rebalance enforced by user")

    def begin_unsubscribe(self, now_ms: int) -> None:
        """Give up the partitions and leave; done when `is_idle`. The listener's calls come from `next_call`."""
        self._begin(self._unsubscribe(), now_ms)

    def begin_close(self, now_ms: int, deadline_ms: int) -> None:
        """Commit automatically, give up the partitions and leave; done when `is_closed`, at the latest at the deadline."""
        if not self._is_closing:
            self._is_closing = True
            self._begin(self._close(deadline_ms), now_ms)

    @property
    def is_idle(self) -> bool:
        """Neither a rebalance nor the end of the membership is under way."""
        return self._flow is None

    @property
    def is_rebalancing(self) -> bool:
        return self._membership.state.is_rebalancing or self._flow is not None

    @property
    def state(self) -> MemberState:
        return self._membership.state

    @property
    def group_metadata(self) -> ConsumerGroupMetadata:
        """For transactions (KIP-447): the generation that poll completed last, or the member's epoch."""
        return self._rebalance.group_metadata

    # --- offsets ---

    def commit(self, offsets: Offsets, now_ms: int, callback: CommitCallback | None = None) -> Commit:
        """Commit without waiting and without retries. The callback comes from `next_call`, in the order of the commits."""
        return self._commits.commit(offsets, now_ms, callback)

    def commit_sync(self, offsets: Offsets, now_ms: int, deadline_ms: int) -> Commit:
        """Commit with retries until the deadline. Wait until it is done, and run the calls of commits before it."""
        return self._commits.commit_sync(offsets, now_ms, deadline_ms)

    def auto_commit_if_due(self, now_ms: int) -> None:
        """Before `assign` replaces partitions."""
        self._commits.auto_commit_if_due(now_ms)

    def committed(self, partitions: Collection[TopicPartition], now_ms: int, deadline_ms: int) -> Lookup:
        return self._committed.look_up(partitions, now_ms, deadline_ms)

    def on_commit(self, interceptor: Callable[[Offsets], object] | None) -> None:
        """Call this with the offsets of each commit that succeeded, from `next_call`."""
        self._commits.on_commit = interceptor

    # --- flows ---

    def _begin(self, flow: Flow, now_ms: int) -> None:
        """End what is under way, and the membership."""
        self._is_ending = True
        self._start(flow)
        self._continue(now_ms)

    def _start(self, flow: Flow) -> None:
        if self._blocking is not None and self._blocking in self._calls:
            self._calls.remove(self._blocking)
        if self._flow is not None:
            self._flow.close()
        self._flow, self._wait, self._blocking = flow, None, None

    def _continue(self, now_ms: int) -> None:
        self._rebalance.now_ms = now_ms
        flow = self._flow
        while flow is not None and flow is self._flow and self._blocking is None:
            if self._wait is not None and not self._wait.ready(now_ms):
                return
            self._wait = None
            try:
                step = next(flow)
            except BaseException as error:
                self._flow = None
                self._is_ending = self._is_closing
                if isinstance(error, StopIteration):
                    return
                raise
            if isinstance(step, Wait):
                self._wait = step
            else:
                self._blocking = step
                self._calls.append(step)

    def _unsubscribe(self) -> Flow:
        try:
            yield from self._rebalance.leave("the consumer unsubscribed from all topics")
        finally:
            self._subscription.unsubscribe()
            self._topics.subscribed()

    def _close(self, deadline_ms: int) -> Flow:
        try:
            if self.settings.auto_commit:
                yield from self._last_commit(deadline_ms)
            yield from self._while_reachable(lambda: not self._commits.has_open, deadline_ms)
            if self.settings.leave_group_on_close:
                try:
                    yield from self._rebalance.leave("the consumer is being closed")
                except Exception as error:  # noqa: BLE001  the application raises what it likes
                    self._closing_error = error
                yield from self._while_reachable(lambda: not self._membership.is_leaving, deadline_ms)
        finally:
            self.is_closed = True
            closed = Unreachable("the consumer is closed")
            self._commits.fail_all(closed, self._rebalance.now_ms)
            self._committed.fail_all(closed)

    def _last_commit(self, deadline_ms: int) -> Flow:
        offsets = self._subscription.consumed()
        try:
            commit = self._commits.commit_sync(offsets, self._rebalance.now_ms, deadline_ms)
        except KgctlError as error:
            self._membership.note(f"the automatic commit failed: {error}")
            return
        yield from self._while_reachable(lambda: commit.is_done, deadline_ms)
        if commit.error is not None or not commit.is_done:
            reason = commit.error or self._network.why_unreachable() or "the consumer closed before it was done"
            self._membership.note(f"the automatic commit failed: {reason}")

    def _while_reachable(self, is_over: Callable[[], bool], deadline_ms: int) -> Flow:
        """Wait until it is over, at the latest until the deadline, or until no broker can be reached.

        Kafka's consumer waits for the deadline with a last commit that no coordinator takes.
        """

        def ready(now_ms: int) -> bool:
            return is_over() or now_ms >= deadline_ms or self._network.unreached_ms(now_ms) >= _OUT_OF_REACH_MS

        while not ready(now_ms := self._rebalance.now_ms):
            again_ms = min(deadline_ms, now_ms + _LOOK_AGAIN_MS)
            yield Wait(lambda at_ms, again_ms=again_ms: at_ms >= again_ms or ready(at_ms), again_ms)  # type: ignore[misc]
