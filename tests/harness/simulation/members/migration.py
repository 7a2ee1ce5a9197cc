"""Worlds of rolling migrations: kgctl's members of both protocols in one group, which becomes a consumer group and a classic one again."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from broker.cores.groups.consumer.group import ConsumerGroup
from broker.cores.groups.settings import GroupSettings
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.trigger_rebalance import TriggerRebalanceRequest
from tests.harness.simulation.__main__ import main
from tests.harness.simulation.clock import SECOND
from tests.harness.simulation.consumer_groups.topics import WorldTopics
from tests.harness.simulation.judge import Judge
from tests.harness.simulation.members.consumer import Member, MemberProfile
from tests.harness.simulation.members.epochs import EpochMember, EpochsWorld, Place
from tests.harness.simulation.members.migration_judge import MigrationJudge
from tests.harness.simulation.members.world import ASSIGNORS, MemberWorld
from tests.harness.simulation.network import Link
from tests.harness.simulation.world import ENDLESS, Outcome

GROUP = "u0"
CLASSIC, CONSUMER = "classic", "consumer"
POLICIES = ("bidirectional", "bidirectional", "bidirectional", "upgrade")


class MigratingMember(EpochMember):
    """Its next process may speak the other protocol."""

    _world: MigrationWorld
    # The group cannot be upgraded now: its first generation has not started, or a member joins that lacks its protocol.
    refusals = (*EpochMember.refusals, ErrorCode.UNKNOWN_SERVER_ERROR)

    def start(self) -> None:
        assignors, is_cooperative = self._world.assignors
        protocol = self._world.draw_protocol()
        self.profile = self.profile._replace(
            protocol=protocol, assignors=assignors, is_cooperative=is_cooperative or protocol == CONSUMER
        )
        super().start()

    @property
    def claimed(self) -> set[Place]:
        """Without those of the topic that is deleted and created again: the client knows them by name alone."""
        return {place for place in super().claimed if place[0] == self._world.catalog.topic_id("orders")}


class MigrationWorld(EpochsWorld):
    judge_type: type[Judge] = MigrationJudge
    judge: MigrationJudge

    def draw_protocol(self) -> str:
        return self._wanted_protocol if self.happens(self._discipline) else self.random.choice([CLASSIC, CONSUMER])

    def _make_consumers(self) -> list[Member]:  # type: ignore[override]
        random = self.random
        self.catalog = WorldTopics()
        self.catalog.create("orders", self.partitions)
        self.catalog.create("more", random.choice([1, 3]))
        self._session_ms = random.choice([6_000, 10_000])
        self._wanted_protocol = random.choice([CLASSIC, CLASSIC, CONSUMER])
        self._discipline = random.choice([0.5, 0.9, 1.0])
        self._roll_us = random.choice([SECOND, 3 * SECOND, 10 * SECOND])
        self._policy = random.choice(POLICIES)
        self._topics_us = random.choice([5 * SECOND, 20 * SECOND, None])
        self.assignors = random.choice(ASSIGNORS)
        count = random.choice([2, 3, 4, 6])
        instances = random.choice([0, 0, 1, count])
        for number in range(count):
            profile = MemberProfile(
                GROUP,
                f"i{number}" if number < instances else None,
                self._session_ms,
                random.choice([10_000, 30_000]),
                *self.assignors,
                random.choice(["auto", "sync", "async"]),
            )
            self.members.append(MigratingMember(self, f"c{number}", profile))
        return self.members

    def _settings(self) -> GroupSettings:
        return (
            super()
            ._settings()
            ._replace(
                group_consumer_migration_policy=self._policy, group_max_size=self.random.choice([ENDLESS, ENDLESS, 3])
            )
        )

    def _schedule_faults(self) -> None:
        super()._schedule_faults()
        self._schedule(self._roll_us, self._roll)
        if self._topics_us is not None:
            self._schedule(self._topics_us, self._change_topics)

    def _roll(self) -> None:
        """Restart one process with the other protocol; when all speak it, begin the way back."""
        behind = [one for one in self.members if one.profile.protocol != self._wanted_protocol]
        if not behind:
            self._wanted_protocol = CONSUMER if self._wanted_protocol == CLASSIC else CLASSIC
            return
        member = behind[0]
        if member.alive:
            member.leave() if self.happens(0.7) else member.crash()
        self.clock.later(self.random.randrange(8 * SECOND), self._start_again, member)

    def _change_topics(self) -> None:
        if "more" not in self.catalog:
            self.catalog.create("more", self.random.choice([1, 3]))
        elif self.happens(0.5):
            self.catalog.delete("more")
        elif (self.catalog.partition_count("orders") or 0) < 12:
            self.catalog.grow("orders")
        self.note("topics", self.topics)

    def _calm_down(self) -> None:
        super()._calm_down()
        self.clock.later(105 * SECOND, self._trigger)

    def _longest_unrest_us(self) -> int:
        """A dead member may have joined for the first time when an upgrade was refused: it stays for five minutes."""
        return super()._longest_unrest_us() + 300 * SECOND

    def _trigger(self) -> None:
        """An operator rebalances a group in which no member notices that a topic has grown."""
        if not self.judge.sees_growth(GROUP):
            request = TriggerRebalanceRequest(groups=[TriggerRebalanceRequest.Group(group_id=GROUP)])
            Link(self, self._outsider).send(request, 0)

    def _unrest_of(self, group_id: str, group: Any, consumers: list[Member]) -> str:  # type: ignore[override]
        if consumers and not isinstance(group, ConsumerGroup):
            return MemberWorld._unrest_of(self, group_id, group, consumers)
        return super()._unrest_of(group_id, group, consumers)


def run_seed(seed: int, events: int, print_line: Callable[[str], None] | None = None) -> Outcome:
    """Run one world. A Violation, or any exception of a member or of the broker, reports what went wrong."""
    return MigrationWorld(seed, events, print_line).run()


if __name__ == "__main__":
    sys.exit(main(run_seed, "tests.harness.simulation.members.migration"))
