"""The world of one seed: the real coordinator, and consumers with kgctl's real network and membership."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from broker.cores.groups.classic.group import ClassicGroup
from broker.cores.groups.classic.states import GroupState
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.api_versions import ApiVersionsRequest
from broker.protocol.messages.find_coordinator import FindCoordinatorRequest
from broker.protocol.messages.metadata import MetadataRequest
from broker.protocol.wire_types import Message
from kgctl.model.topic_partition import TopicPartition
from tests.harness.simulation.clock import MS, SECOND
from tests.harness.simulation.members.consumer import Member, MemberProfile
from tests.harness.simulation.members.judge import MemberJudge
from tests.harness.simulation.members.wire import Wires, coordinator, metadata, moved, versions
from tests.harness.simulation.network import Link
from tests.harness.simulation.world import Outcome, World

if TYPE_CHECKING:
    from tests.harness.simulation.judge import Judge

ASSIGNORS = (
    (("range",), False),
    (("range", "cooperative-sticky"), False),
    (("sticky",), False),
    (("roundrobin",), False),
    (("cooperative-sticky",), True),
    (("cooperative-sticky",), True),
)


class MemberWorld(World):
    """Nothing but members changes committed offsets here, so that the judge can follow every record."""

    judge_type: type[Judge] = MemberJudge
    judge: MemberJudge
    consumers: list[Member]  # type: ignore[assignment]

    def __init__(self, seed: int, events: int, print_line: Callable[[str], None] | None = None) -> None:
        super().__init__(seed, events, print_line)
        self.faults.outsider_us = self.faults.wall_jump_us = None
        self.topics = {"orders": self.partitions, "more": self.random.choice([1, 3])}
        self.clock.later(self.random.randrange(60 * SECOND), self._add_partitions)

    @property
    def now_ms(self) -> int:
        return self.clock.us // MS

    def answer(self, request: Any, version: int) -> Message:
        """Of a broker: what does not concern groups."""
        if isinstance(request, ApiVersionsRequest):
            return versions()
        if isinstance(request, MetadataRequest):
            return metadata(request, self.topics, self.topic_id)
        if isinstance(request, FindCoordinatorRequest):
            return coordinator(request, version, ErrorCode.COORDINATOR_NOT_AVAILABLE if self._is_unsettled() else 0)
        return moved(request)

    def partition_count(self, topic: str) -> int | None:
        return self.topics.get(topic)

    def topic_id(self, topic: str) -> bytes | None:
        return topic.encode().ljust(16, b"\1")[:16]

    def connect(self, wires: Wires) -> Link:
        """Make a connection of a client."""
        return Link(self, wires)  # type: ignore[arg-type]

    def is_moved(self) -> bool:
        """Whether the broker denies that it is the coordinator."""
        return self._in_chaos and self.happens(0.01)

    def _is_unsettled(self) -> bool:
        return self._in_chaos and self.happens(0.05)

    def _add_partitions(self) -> None:
        self.topics["orders"] += 1
        self.note("partitions", self.topics["orders"])

    def _calm_down(self) -> None:
        """A static leader that comes back does not see what changed while it was gone (KIP-814), so something changes again."""
        super()._calm_down()
        is_static = any(consumer.profile.instance_id is not None for consumer in self.consumers)
        earliest = 90 * SECOND if is_static else 0
        self.clock.later(earliest + self.random.randrange(10 * SECOND), self._add_partitions)

    def _make_consumers(self) -> list[Member]:  # type: ignore[override]
        random = self.random
        groups = {f"g{number}": random.choice(ASSIGNORS) for number in range(random.choice([1, 1, 2]))}
        count = random.choice([2, 3, 4, 8])
        instances = random.choice([0, 0, 1, count])
        made = []
        for number in range(count):
            group_id = list(groups)[number % len(groups)]
            assignors, is_cooperative = groups[group_id]
            instance_id = (
                f"i{random.randrange(number + 1) if self.happens(0.1) else number}" if number < instances else None
            )
            profile = MemberProfile(
                group_id,
                instance_id,
                random.choice([6_000, 10_000]),
                random.choice([10_000, 30_000]),
                assignors,
                is_cooperative,
                random.choice(["auto", "sync", "async"]),
            )
            made.append(Member(self, f"c{number}", profile))
        return made

    def _unrest_of(self, group_id: str, group: ClassicGroup | None, consumers: list[Member]) -> str:  # type: ignore[override]
        if self.broker.loop.dead:
            return "no broker is running"
        if group is None:
            return f"{group_id} does not exist" if consumers else ""
        if not group.members and not consumers:
            return "" if group.state is GroupState.EMPTY else f"{group_id} is {group.state.value}"
        if group.state is not GroupState.STABLE:
            return f"{group_id} is {group.state.value} with {len(group.members)} members"
        alive = [one for one in consumers if one.is_stable and one.member_id in group.members]
        if len(alive) < len(group.members):
            return f"{group_id} has {len(group.members)} members, {len(alive)} of them alive"
        if len(alive) < len(consumers):
            return (
                f"{group_id}: {[(one.name, one.phase.value) for one in consumers if one not in alive]} are not members"
            )
        if any(one.generation != group.generation for one in alive):
            return f"{group_id}: not all members are in generation {group.generation}"
        wanted = {"orders", "more"} if any(one._wants_more for one in alive) else {"orders"}
        expected = sorted(
            TopicPartition(topic, number) for topic in wanted for number in range(self.topics.get(topic, 0))
        )
        owned = sorted(partition for one in alive for partition in one.owned)
        return "" if owned == expected else f"{group_id} owns {owned}, not {expected}"


def run_seed(seed: int, events: int, print_line: Callable[[str], None] | None = None) -> Outcome:
    """Run one world. A Violation, or any exception of a member or of the broker, reports what went wrong."""
    return MemberWorld(seed, events, print_line).run()
