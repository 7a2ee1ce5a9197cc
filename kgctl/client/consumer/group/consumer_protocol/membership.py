"""A member of a group of the consumer protocol: its epoch, its heartbeats and what they bring. Kafka's ConsumerMembershipManager."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from broker.protocol import uuids
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from kgctl.client.consumer.group.consumer_protocol.heartbeat_contents import HeartbeatContents, TopicIds
from kgctl.client.consumer.group.generation import Generation, MemberState
from kgctl.client.consumer.group.link import MOVED, CoordinatorLink
from kgctl.client.consumer.group.settings import GroupSettings
from kgctl.client.consumer.group.standing import Standing
from kgctl.client.consumer.subscription import SubscriptionState
from kgctl.client.net.errors import KgctlError

_FOREVER_MS = 1 << 60
JOIN, LEAVE, LEAVE_FOR_A_WHILE = 0, -1, -2
# The group has removed this member, which joins again with the same id. A group without members may have been deleted meanwhile, at
# which Java's consumer gives up. For who joins, the same code says that the group is of another kind.
_FENCED = frozenset({ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.GROUP_ID_NOT_FOUND})
# Patience helps. FENCED_MEMBER_EPOCH for who joins: the group has its earlier membership until the session times out.
_TRANSIENT = frozenset(
    {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.REQUEST_TIMED_OUT, ErrorCode.FENCED_MEMBER_EPOCH, *MOVED}
)


class EpochMembership(Standing):
    """`generation.generation_id` is the member epoch. `target` is what the group last assigned, None before it did.

    `owned` is what the member reports as its own; `is_reporting`, if a heartbeat did that and none was answered since. `incarnation` changes when it joins and when it leaves.
    """

    def __init__(
        self,
        link: CoordinatorLink,
        settings: GroupSettings,
        random: Random,
        subscription: SubscriptionState,
        note: Callable[[str], None],
    ) -> None:
        super().__init__(link, settings, random, note)
        # The broker keeps the session timeout; its answers have the interval between heartbeats.
        self.heartbeat.session_timeout_ms = _FOREVER_MS
        self._contents = HeartbeatContents(settings, subscription)
        self._member_id = uuids.spelled(uuids.chosen(random.randbytes))  # KIP-1082: the member chooses its id
        self.incarnation = 0
        self.target: TopicIds | None = None
        self.owned: TopicIds = {}
        self.is_reporting = False

    # --- for the polling thread ---

    def join(self, now_ms: int) -> None:
        """Become a member with the next heartbeat, which is sent now."""
        self.incarnation += 1
        self.generation = Generation(member_id=self._member_id)
        self.state = MemberState.PREPARING
        self.rejoin_needed = False
        self.target, self.owned = None, {}
        self._contents.forget()
        self.heartbeat.reset(now_ms)
        self.heartbeat.hurry(now_ms)

    def has_reconciled(self, owned: TopicIds, now_ms: int) -> None:
        """The member has these partitions and no others, which the next heartbeat reports."""
        self.owned = owned
        self.rebalances += 1
        self.heartbeat.hurry(now_ms)

    # --- in the background ---

    def advance(self, now_ms: int) -> None:
        if self.state is MemberState.UNJOINED or self.failure is not None:
            return
        if self.heartbeat.poll_expired(now_ms):
            self._leave_because_of_poll(now_ms)
        elif not self.link.is_known:
            self._seek(now_ms)
        elif not self.heartbeat.in_flight:
            if self.state is MemberState.STABLE and self._contents.is_outdated and not self.heartbeat.is_failing:
                self.heartbeat.hurry(now_ms)
            if self.heartbeat.is_due(now_ms):
                self._send_heartbeat(now_ms)

    def wake_at_ms(self) -> int | None:
        if self.state is MemberState.UNJOINED or self.failure is not None:
            return None
        return self.heartbeat.wake_at_ms(is_connected=self.link.is_known)

    def _send_heartbeat(self, now_ms: int) -> None:
        incarnation, sent = self.incarnation, self.generation
        epoch = JOIN if sent.is_reset else sent.generation_id
        request = self._contents.request(sent.member_id, epoch, self.owned)
        self.is_reporting |= request.topic_partitions is not None
        self.heartbeat.sent(now_ms)

        def answered(answer: ConsumerGroupHeartbeatResponse | KgctlError, at_ms: int) -> None:
            if incarnation == self.incarnation and self.state is not MemberState.UNJOINED:
                self._answered(answer, at_ms)

        # Version 1 is the first whose members choose their ids (KIP-1082), and whose patterns the broker matches.
        self.link.send(request, ConsumerGroupHeartbeatResponse, answered, now_ms, min_version=1)

    def _answered(self, answer: ConsumerGroupHeartbeatResponse | KgctlError, now_ms: int) -> None:
        if isinstance(answer, KgctlError):
            self._contents.forget()
            self.heartbeat.failed(now_ms)
            if answer.is_final or not answer.retriable:
                self._fail(answer)
        elif answer.error_code:
            self._refused(answer, now_ms)
        else:
            self.heartbeat.received(now_ms)
            self.heartbeat.interval_ms = answer.heartbeat_interval_ms or self.heartbeat.interval_ms
            if self.state is MemberState.PREPARING:
                self.note(f"joined the group as {self.generation.member_id} in epoch {answer.member_epoch}")
                self.left_because = None
            self.state = MemberState.STABLE
            self.is_reporting = False
            self.generation = self.generation._replace(generation_id=answer.member_epoch)
            if answer.assignment is not None:
                rows = answer.assignment.topic_partitions
                self.target = {row.topic_id: frozenset(row.partitions) for row in rows}

    def _refused(self, answer: ConsumerGroupHeartbeatResponse, now_ms: int) -> None:
        code = answer.error_code
        error = self.refusal(code, ConsumerGroupHeartbeatRequest, answer.error_message)
        self._contents.forget()
        self.heartbeat.failed(now_ms)
        if code in MOVED:
            self.link.lose(error.name)
        if code in _FENCED and self.state is MemberState.STABLE:
            self.reset_after_refusal(error.name, "ConsumerGroupHeartbeat", forget_member_id=False)
        elif code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
            self.failure = error  # it stays a member, and asks again
        elif code not in _TRANSIENT:
            self._fail(error)

    def _fail(self, error: KgctlError) -> None:
        """The application learns why with its next poll; that it polls after that joins again."""
        self.failure = error
        self.reset(f"the heartbeat failed: {error}", forget_member_id=False)

    # --- leaving ---

    def reset(self, reason: str, *, forget_member_id: bool) -> None:
        super().reset(reason, forget_member_id=forget_member_id)
        self.target, self.owned, self.is_reporting = None, {}, False

    def leave(self, reason: str, now_ms: int) -> None:
        """A static member leaves for a while: the group keeps its place until the session times out."""
        member_id, was_member = self.generation.member_id, self.state is not MemberState.UNJOINED
        self.incarnation += 1
        self.reset(reason, forget_member_id=False)
        if not was_member or not self.link.is_known:
            return
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.settings.group_id,
            member_id=member_id,
            member_epoch=LEAVE if self.settings.is_dynamic else LEAVE_FOR_A_WHILE,
            instance_id=self.settings.group_instance_id,
        )
        self.is_leaving = True
        self.link.send(request, ConsumerGroupHeartbeatResponse, self._left, now_ms, min_version=1)

    def _left(self, answer: ConsumerGroupHeartbeatResponse | KgctlError, now_ms: int) -> None:
        self.is_leaving = False
        if isinstance(answer, KgctlError):
            self.note(f"leaving the group failed: {answer}")
        elif answer.error_code:
            self.note(f"leaving the group failed: {self.refusal(answer.error_code, ConsumerGroupHeartbeatRequest)}")
