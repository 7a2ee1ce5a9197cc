"""A member of a group: its generation, heartbeats and leaving. Kafka's AbstractCoordinator, without the application's part."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from broker.protocol.errors import ErrorCode
from broker.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from broker.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from broker.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from kgctl.client.consumer.group.generation import Generation, MemberState
from kgctl.client.consumer.group.join_attempt import REASON_LENGTH, JoinAttempt
from kgctl.client.consumer.group.leader import Assigning
from kgctl.client.consumer.group.link import MOVED, CoordinatorLink
from kgctl.client.consumer.group.settings import GroupSettings
from kgctl.client.consumer.group.standing import Standing
from kgctl.client.net.errors import KgctlError

_AUTHORIZATION = frozenset({ErrorCode.GROUP_AUTHORIZATION_FAILED, ErrorCode.TOPIC_AUTHORIZATION_FAILED})


class Membership(Standing):
    """`advance` sends heartbeats and notices timeouts, whatever the application does. `failure` waits for its next poll."""

    def __init__(
        self,
        link: CoordinatorLink,
        settings: GroupSettings,
        random: Random,
        protocols: Callable[[], list[JoinGroupRequest.Protocol]],
        start_assigning: Callable[[JoinGroupResponse], Assigning],
        note: Callable[[str], None],
    ) -> None:
        super().__init__(link, settings, random, note)
        self._protocols = protocols
        self._start_assigning = start_assigning
        self.attempt: JoinAttempt | None = None
        self._was_known = False

    # --- joining ---

    def join(self, now_ms: int) -> JoinAttempt:
        """The attempt that is under way, or a new one."""
        if self.attempt is None:
            self.attempt = JoinAttempt(self, self._protocols(), self._start_assigning, now_ms)
        return self.attempt

    # --- in the background ---

    def advance(self, now_ms: int) -> None:
        if self.link.is_known and not self._was_known:
            self.heartbeat.reset_session(now_ms)
        self._was_known = self.link.is_known
        if self.attempt is not None:
            self.attempt.advance(now_ms)
        if not self.state.has_joined or self.failure is not None:
            return
        if self.heartbeat.poll_expired(now_ms):
            self._leave_because_of_poll(now_ms)
        elif not self.link.is_known:
            self._seek(now_ms)
        elif self.heartbeat.session_expired(now_ms):
            self.heartbeat.reset_session(now_ms)
            self.link.disconnect("the session timed out without an answer to a heartbeat", now_ms)
        elif self.heartbeat.is_due(now_ms) and not self.heartbeat.in_flight:
            self._send_heartbeat(now_ms)

    def wake_at_ms(self) -> int | None:
        if not self.state.has_joined or self.failure is not None:
            return None
        return self.heartbeat.wake_at_ms(is_connected=self.link.is_known)

    def _send_heartbeat(self, now_ms: int) -> None:
        sent = self.generation
        request = HeartbeatRequest(
            group_id=self.settings.group_id,
            generation_id=sent.generation_id,
            member_id=sent.member_id,
            group_instance_id=self.settings.group_instance_id,
        )
        self.heartbeat.sent(now_ms)
        self.link.send(
            request,
            HeartbeatResponse,
            lambda answer, at: self._heartbeat_done(sent, answer, at),
            now_ms,
            min_version=self.settings.min_version(HeartbeatRequest),
        )

    def _heartbeat_done(self, sent: Generation, answer: HeartbeatResponse | KgctlError, now_ms: int) -> None:
        if isinstance(answer, KgctlError):
            self.heartbeat.failed(now_ms)
            if answer.is_final:
                self.failure = answer
            return
        code = answer.error_code
        if code in (ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS):
            self.heartbeat.received(now_ms)
            if code and self.state is MemberState.STABLE:
                self.request_rejoin("group is already rebalancing")
            return
        error = self.refusal(code, HeartbeatRequest)
        is_about_generation = code in (
            ErrorCode.ILLEGAL_GENERATION,
            ErrorCode.UNKNOWN_MEMBER_ID,
            ErrorCode.FENCED_INSTANCE_ID,
        )
        if is_about_generation and self.generation != sent:
            self.heartbeat.received(now_ms)
            return
        self.heartbeat.failed(now_ms)
        if code in MOVED:
            self.link.lose(error.name)
        elif is_about_generation:
            # A fenced member that joined with a new id would in turn fence the instance that took over.
            forget = code == ErrorCode.UNKNOWN_MEMBER_ID
            self.reset_after_refusal(error.name, "Heartbeat", forget_member_id=forget)
        if code == ErrorCode.FENCED_INSTANCE_ID or code in _AUTHORIZATION:
            self.failure = error

    # --- leaving ---

    def leave(self, reason: str, now_ms: int) -> None:
        """Leave the group; a static member only forgets its generation. `is_leaving` ends with the answer."""
        if (
            self.settings.is_dynamic
            and self.link.is_known
            and self.state is not MemberState.UNJOINED
            and self.generation.member_id
        ):
            member_id = self.generation.member_id
            member = LeaveGroupRequest.Member(member_id=member_id, reason=reason[:REASON_LENGTH])
            request = LeaveGroupRequest(group_id=self.settings.group_id, member_id=member_id, members=[member])
            self.is_leaving = True
            self.link.send(request, LeaveGroupResponse, self._left, now_ms, is_apart=self.attempt is not None)
        if self.attempt is not None:
            self.attempt.abandon()
            self.attempt = None
        self.reset("consumer pro-actively leaving the group", forget_member_id=True)

    def _left(self, answer: LeaveGroupResponse | KgctlError, now_ms: int) -> None:
        self.is_leaving = False
        if isinstance(answer, KgctlError):
            self.note(f"leaving the group failed: {answer}")
            return
        codes = [answer.error_code, *(row.error_code for row in answer.members)]
        if code := next((code for code in codes if code), 0):
            self.note(f"leaving the group failed: {self.refusal(code, LeaveGroupRequest)}")
