"""One JoinGroup and the SyncGroup that follows, up to an assignment or an error."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum

from broker.protocol.consumer_protocol import PROTOCOL_TYPE
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from broker.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from kgctl.client.consumer.group.errors import CoordinatorUnknown
from kgctl.client.consumer.group.generation import Generation, MemberState
from kgctl.client.consumer.group.leader import Assigning, BadAssignment
from kgctl.client.consumer.group.link import MOVED
from kgctl.client.consumer.group.standing import Standing
from kgctl.client.net.errors import BrokerError, KgctlError

REASON_LENGTH = 255
# The member rejoins at once.
_AT_ONCE = frozenset(
    {
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.MEMBER_ID_REQUIRED,
    }
)


class Stage(Enum):
    JOINING = "joining"
    ASSIGNING = "assigning"
    SYNCING = "syncing"
    DONE = "done"


class Superseded(CoordinatorUnknown):
    """The membership ended while the request was on its way."""

    name = "UNJOINED"


class JoinAttempt:
    """`advance` continues what waits for metadata; answers continue the rest. Nothing here needs the application."""

    def __init__(
        self,
        member: Standing,
        protocols: Sequence[JoinGroupRequest.Protocol],
        start_assigning: Callable[[JoinGroupResponse], Assigning],
        now_ms: int,
    ) -> None:
        self._member = member
        self._start_assigning = start_assigning
        self.stage = Stage.JOINING
        self.assignment: bytes | None = None
        self.error: KgctlError | None = None
        self._sent = member.generation
        self._assigning: Assigning | None = None
        self._is_abandoned = False
        self._send_join(list(protocols), now_ms)

    @property
    def is_done(self) -> bool:
        return self.stage is Stage.DONE

    @property
    def may_retry_at_once(self) -> bool:
        error = self.error
        return isinstance(error, Superseded) or (isinstance(error, BrokerError) and error.code in _AT_ONCE)

    @property
    def got_member_id(self) -> bool:
        return isinstance(self.error, BrokerError) and self.error.code == ErrorCode.MEMBER_ID_REQUIRED

    def abandon(self) -> None:
        """The member left: ignore what arrives."""
        self._is_abandoned = True
        self.assignment = None
        self._fail(Superseded("the membership ended before the rebalance"))

    def advance(self, now_ms: int) -> None:
        if self._assigning is None or self.stage is not Stage.ASSIGNING:
            return
        if self._member.generation.is_reset:
            self._fail(Superseded("a heartbeat ended the membership before the assignment was sent"))
            return
        try:
            assignments = self._assigning.step()
        except KgctlError as error:
            self._fail(error)
        except Exception as error:  # noqa: BLE001  of an assignor by the user
            failed = BadAssignment(f"the assignor failed: {type(error).__name__}: {error}")
            failed.__cause__ = error
            self._fail(failed)
        else:
            if assignments is not None:
                self._send_sync(assignments, now_ms)

    # --- JoinGroup ---

    def _send_join(self, protocols: list[JoinGroupRequest.Protocol], now_ms: int) -> None:
        member, settings = self._member, self._member.settings
        member.state = MemberState.PREPARING
        request = JoinGroupRequest(
            group_id=settings.group_id,
            session_timeout_ms=settings.session_timeout_ms,
            rebalance_timeout_ms=settings.max_poll_interval_ms,
            member_id=member.generation.member_id,
            group_instance_id=settings.group_instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocols=protocols,
            reason=member.rejoin_reason[:REASON_LENGTH],
        )
        member.link.send(
            request,
            JoinGroupResponse,
            self._joined,
            now_ms,
            timeout_ms=settings.join_timeout_ms,
            min_version=settings.min_version(JoinGroupRequest),
        )

    def _joined(self, answer: JoinGroupResponse | KgctlError, now_ms: int) -> None:
        if self._is_abandoned:
            return
        member = self._member
        if isinstance(answer, KgctlError):
            self._fail(answer)
        elif answer.error_code:
            self._join_refused(answer)
        elif answer.protocol_type not in (None, PROTOCOL_TYPE):
            self._fail(member.refusal(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, JoinGroupRequest))
        elif member.state is not MemberState.PREPARING:
            self._fail(Superseded("the membership ended before the group answered JoinGroup"))
        else:
            member.joined(Generation(answer.generation_id, answer.member_id, answer.protocol_name), now_ms)
            if answer.leader == answer.member_id:
                self._lead(answer, now_ms)
            else:
                self._send_sync({}, now_ms)

    def _join_refused(self, answer: JoinGroupResponse) -> None:
        member, code = self._member, answer.error_code
        error = member.refusal(code, JoinGroupRequest)
        if code == ErrorCode.UNKNOWN_MEMBER_ID and member.generation == self._sent:
            member.reset_after_refusal(error.name, "JoinGroup", forget_member_id=True)
        elif code in MOVED:
            member.link.lose(error.name)
        elif code == ErrorCode.MEMBER_ID_REQUIRED:  # KIP-394
            member.generation = Generation(member_id=answer.member_id)
            member.request_rejoin(f"need to re-join with the given member-id: {answer.member_id}")
        self._fail(error)

    def _lead(self, joined: JoinGroupResponse, now_ms: int) -> None:
        self.stage = Stage.ASSIGNING
        try:
            self._assigning = self._start_assigning(joined)
        except KgctlError as error:
            self._fail(error)
        else:
            self.advance(now_ms)

    # --- SyncGroup ---

    def _send_sync(self, assignments: dict[str, bytes], now_ms: int) -> None:
        member, generation = self._member, self._member.generation
        self.stage = Stage.SYNCING
        self._sent = generation
        request = SyncGroupRequest(
            group_id=member.settings.group_id,
            generation_id=generation.generation_id,
            member_id=generation.member_id,
            group_instance_id=member.settings.group_instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocol_name=generation.protocol_name,
            assignments=[
                SyncGroupRequest.Assignment(member_id=member_id, assignment=blob)
                for member_id, blob in assignments.items()
            ],
        )
        oldest = member.settings.min_version(SyncGroupRequest)
        member.link.send(request, SyncGroupResponse, self._synced, now_ms, min_version=oldest)

    def _synced(self, answer: SyncGroupResponse | KgctlError, now_ms: int) -> None:
        if self._is_abandoned:
            return
        member = self._member
        if isinstance(answer, KgctlError):
            self._fail(answer)
        elif answer.error_code:
            self._sync_refused(answer.error_code)
        elif answer.protocol_type not in (None, PROTOCOL_TYPE):
            self._fail(member.refusal(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, SyncGroupRequest))
        elif member.generation.is_reset or member.state is not MemberState.COMPLETING:
            # A heartbeat ended the generation meanwhile.
            self._fail(member.refusal(ErrorCode.ILLEGAL_GENERATION, SyncGroupRequest))
        elif answer.protocol_name not in (None, member.generation.protocol_name):
            self._fail(member.refusal(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, SyncGroupRequest))
        else:
            member.synced(now_ms)
            self.assignment = answer.assignment
            self.stage = Stage.DONE

    def _sync_refused(self, code: int) -> None:
        member = self._member
        error = member.refusal(code, SyncGroupRequest)
        if code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION):
            if member.generation == self._sent:
                forget = code != ErrorCode.ILLEGAL_GENERATION  # which leaves the member id valid
                member.reset_after_refusal(error.name, "SyncGroup", forget_member_id=forget)
        elif code in MOVED:
            member.link.lose(error.name)
        self._fail(error)

    def _fail(self, error: KgctlError) -> None:
        self.error = error
        self.stage = Stage.DONE
