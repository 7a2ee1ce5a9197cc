"""Where a member stands in its group: its generation, and whether it has to rejoin and why."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from broker.protocol.errors import ErrorCode
from broker.protocol.wire_types import Message
from kgctl.client.consumer.group.errors import FencedInstance
from kgctl.client.consumer.group.generation import NO_GENERATION, Generation, MemberState
from kgctl.client.consumer.group.heartbeat import Heartbeat
from kgctl.client.consumer.group.link import CoordinatorLink
from kgctl.client.consumer.group.settings import GroupSettings
from kgctl.client.net.authorization import Asked
from kgctl.client.net.errors import BrokerError, KgctlError


class Standing:
    def __init__(
        self, link: CoordinatorLink, settings: GroupSettings, random: Random, note: Callable[[str], None]
    ) -> None:
        self.link = link
        self.settings = settings
        self.note = note
        self.heartbeat = Heartbeat(settings, random)
        self.generation = NO_GENERATION
        self.state = MemberState.UNJOINED
        self.rejoin_needed = True
        self.rejoin_reason = ""
        # The partitions of the generation before are still to be revoked or lost.
        self.needs_prepare = True
        # Why the member left by itself, for the commit that comes too late.
        self.left_because: str | None = None
        # Waits for the next poll of the application.
        self.failure: KgctlError | None = None
        self.is_leaving = False
        self.rebalances = self.failed_rebalances = 0

    # --- of each protocol ---

    def advance(self, now_ms: int) -> None:
        """Send heartbeats and notice timeouts, whatever the application does."""
        raise NotImplementedError

    def wake_at_ms(self) -> int | None:
        """When to call `advance` again."""
        raise NotImplementedError

    def leave(self, reason: str, now_ms: int) -> None:
        """Leave the group as far as its kind of member does; `is_leaving` ends with the answer."""
        raise NotImplementedError

    # --- of all ---

    def poll(self, now_ms: int) -> None:
        """The application polls. Raises what failed since it did so last."""
        self.heartbeat.poll(now_ms)
        if self.failure is not None:
            failure, self.failure = self.failure, None
            raise failure

    @property
    def stable_generation(self) -> Generation | None:
        return self.generation if self.state is MemberState.STABLE else None

    def request_rejoin(self, reason: str, full_reason: str | None = None) -> None:
        """Join again in the next poll. The coordinator learns the short reason (KIP-800)."""
        self.note(f"rejoining the group: {full_reason or reason}")
        self.rejoin_reason = reason
        self.rejoin_needed = True

    def reset(self, reason: str, *, forget_member_id: bool) -> None:
        """The generation ended: what was owned is lost. If the application polls, it joins again."""
        self.note(f"the membership ended: {reason}")
        self.state = MemberState.UNJOINED
        self.generation = NO_GENERATION if forget_member_id else Generation(member_id=self.generation.member_id)
        self.rejoin_reason = reason
        self.rejoin_needed = self.needs_prepare = True

    def reset_after_refusal(self, error: str, request: str, *, forget_member_id: bool) -> None:
        self.reset(f"encountered {error} from {request} response", forget_member_id=forget_member_id)

    def refusal(self, code: int, request: type[Message], message: str | None = None) -> KgctlError:
        """The error for a code that is about the whole group, with what the broker says about it."""
        group = self.settings.group_id
        if code == ErrorCode.FENCED_INSTANCE_ID:
            return FencedInstance(self.settings.group_instance_id, self.generation.member_id)
        return BrokerError(code, f"group {group!r}", message, asked=Asked(request, group=group))

    def joined(self, generation: Generation, now_ms: int) -> None:
        """JoinGroup is answered: heartbeats begin."""
        self.generation = generation
        self.state = MemberState.COMPLETING
        self.heartbeat.reset(now_ms)
        self.note(f"joined the group as {generation.member_id} in generation {generation.generation_id}")

    def synced(self, now_ms: int) -> None:
        self.state = MemberState.STABLE
        self.rejoin_needed, self.rejoin_reason = False, ""
        self.left_because = None
        self.rebalances += 1

    def _seek(self, now_ms: int) -> None:
        try:
            self.link.seek(now_ms)
        except KgctlError as error:
            self.failure = error

    def _leave_because_of_poll(self, now_ms: int) -> None:
        self.leave("consumer poll timeout has expired.", now_ms)
        limit, elapsed = self.settings.max_poll_interval_ms, now_ms - self.heartbeat.polled_ms
        self.left_because = (
            f"the application did not poll for {elapsed} ms (max.poll.interval.ms={limit}), so this member left the group;"
            " process fewer records per poll (max.poll.records) or raise max.poll.interval.ms"
        )
        self.note(self.left_because)
