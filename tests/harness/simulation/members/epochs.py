"""Worlds whose members are kgctl's own, in groups of the consumer protocol (KIP-848)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping
from typing import Any

from broker.cores.groups.consumer.group import ConsumerGroup
from broker.cores.groups.settings import GroupSettings
from broker.protocol.messages.offset_commit import OffsetCommitRequest
from kgctl.client.consumer.group.generation import MemberState
from kgctl.model.topic_partition import TopicPartition
from tests.harness.simulation.__main__ import main
from tests.harness.simulation.consumer_groups.judge import ConsumerGroupsJudge
from tests.harness.simulation.consumer_groups.topics import WorldTopics
from tests.harness.simulation.judge import Asked, Judge
from tests.harness.simulation.members.consumer import Member, MemberProfile
from tests.harness.simulation.members.judge import RecordsJudge
from tests.harness.simulation.members.wire import Wires
from tests.harness.simulation.members.world import MemberWorld
from tests.harness.simulation.network import Link
from tests.harness.simulation.world import Outcome

Place = tuple[bytes, int]


class EpochMember(Member):
    _world: EpochsWorld

    @property
    def is_stable(self) -> bool:
        return super().is_stable and not self.member._rebalance.is_needed

    @property
    def member_id(self) -> str:
        return super().member_id if self.alive else ""

    @property
    def claimed(self) -> set[Place]:
        """What its application uses until the member finds that its membership has ended."""
        if not self.alive or self.member.state is MemberState.UNJOINED:
            return set()
        ids = self._world.catalog.topic_id
        return {(topic_id, one.partition) for one in self.owned if (topic_id := ids(one.topic)) is not None}


class EpochsJudge(RecordsJudge, ConsumerGroupsJudge):
    _world: EpochsWorld  # type: ignore[assignment]

    def _judge_commit(self, asked: Asked, request: OffsetCommitRequest, response: Any) -> None:
        Judge._judge_commit(self, asked, request, response)

    def took_over(
        self, member: EpochMember, generation: int, member_id: str, owned: Collection[TopicPartition]
    ) -> None:
        """A member has reconciled: no other one uses its partitions."""
        self.rebalances += 1
        self.gains(member, member.claimed)  # type: ignore[arg-type]


class EpochsWorld(MemberWorld):
    """Connections keep their order: a late heartbeat of an earlier connection could give up what the member has again."""

    judge_type: type[Judge] = EpochsJudge
    catalog: WorldTopics
    reorders = False

    def __init__(self, seed: int, events: int, print_line: Callable[[str], None] | None = None) -> None:
        self.members: list[Member] = []
        self._last_links: dict[str, Link] = {}
        super().__init__(seed, events, print_line)
        self.faults.repeat = 0.0

    @property
    def topics(self) -> Mapping[str, int]:
        return {name: self.catalog.partition_count(name) or 0 for name in self.catalog}

    @topics.setter
    def topics(self, counts: Mapping[str, int]) -> None:
        """What the world of classic members has drawn: here they are made with the members."""

    def partition_count(self, topic: str) -> int | None:
        return self.catalog.partition_count(topic)

    def topic_id(self, topic: str) -> bytes | None:
        return self.catalog.topic_id(topic)

    def connect(self, wires: Wires) -> Link:
        link, before = super().connect(wires), self._last_links.get(wires.name)
        if before is not None:
            link.follow(before)
        self._last_links[wires.name] = link
        return link

    def _add_partitions(self) -> None:
        self.catalog.grow("orders")
        self.note("partitions", self.catalog.partition_count("orders"))

    def _settings(self) -> GroupSettings:
        self.catalog.restarted()
        return (
            super()
            ._settings()
            ._replace(
                group_consumer_session_timeout_ms=self._session_ms,
                group_consumer_heartbeat_interval_ms=self._session_ms // 3,
            )
        )

    def _make_consumers(self) -> list[Member]:  # type: ignore[override]
        random = self.random
        self.catalog = WorldTopics()
        self.catalog.create("orders", self.partitions)
        self.catalog.create("more", random.choice([1, 3]))
        self._session_ms = random.choice([6_000, 10_000])
        groups = [f"k{number}" for number in range(random.choice([1, 1, 2]))]
        count = random.choice([2, 3, 4, 8])
        instances = random.choice([0, 0, 1, count])
        for number in range(count):
            profile = MemberProfile(
                groups[number % len(groups)],
                f"i{number}" if number < instances else None,
                self._session_ms,
                random.choice([10_000, 30_000]),
                ("range",),
                True,
                random.choice(["auto", "sync", "async"]),
                "consumer",
            )
            self.members.append(EpochMember(self, f"c{number}", profile))
        return self.members

    def _unrest_of(self, group_id: str, group: Any, consumers: list[Member]) -> str:  # type: ignore[override]
        if self.broker.loop.dead:
            return "no broker is running"
        if not isinstance(group, ConsumerGroup):
            return f"{group_id} is no consumer group" if consumers else ""
        unsettled = [(one.name, one.phase.value) for one in consumers if not one.is_stable]
        if unsettled:
            return f"{group_id}: {unsettled} are not settled"
        if {one.member_id for one in consumers} != group.members.keys():
            return f"{group_id} has the members {[*group.members]}"
        if group.state_name not in ("Stable", "Empty"):
            return f"{group_id} is {group.state_name}"
        if any(one.generation != group.assignment_epoch for one in consumers):
            return f"{group_id}: not all members are in epoch {group.assignment_epoch}"
        wanted = set[str]().union(*(one.subscribed for one in consumers))
        expected = sorted(
            TopicPartition(topic, number) for topic in wanted for number in range(self.topics.get(topic, 0))
        )
        owned = sorted(partition for one in consumers for partition in one.owned)
        for one in consumers:
            if not all(place.topic in one.subscribed for place in one.owned):
                return f"{one.name} owns {sorted(one.owned)}, to some of which it has not subscribed"
        return "" if owned == expected else f"{group_id} owns {owned}, not {expected}"


def run_seed(seed: int, events: int, print_line: Callable[[str], None] | None = None) -> Outcome:
    """Run one world. A Violation, or any exception of a member or of the broker, reports what went wrong."""
    return EpochsWorld(seed, events, print_line).run()


if __name__ == "__main__":
    sys.exit(main(run_seed, "tests.harness.simulation.members.epochs"))
