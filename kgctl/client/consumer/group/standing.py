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
        self.rebalances = self.failed_rebalances = 0

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

    def refusal(self, code: int, request: type[Message]) -> KgctlError:
        """The error for a code that is about the whole group."""
        group = self.settings.group_id
        if code == ErrorCode.FENCED_INSTANCE_ID:
            return FencedInstance(self.settings.group_instance_id, self.generation.member_id)
        return BrokerError(code, f"group {group!r}", asked=Asked(request, group=group))

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
