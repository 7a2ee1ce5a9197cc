"""The world of one seed: members of the consumer protocol beside classic ones, and topics that change."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from broker.cores.groups.consumer.group import ConsumerGroup
from broker.cores.groups.settings import GroupSettings
from tests.harness.simulation.clock import MS, SECOND
from tests.harness.simulation.consumer import TOPIC, Consumer
from tests.harness.simulation.consumer_groups.chronicle import is_consumer_group
from tests.harness.simulation.consumer_groups.judge import ConsumerGroupsJudge
from tests.harness.simulation.consumer_groups.member import GroupMember, MemberProfile, State, Subscription
from tests.harness.simulation.consumer_groups.outsider import ConsumerGroupsOutsider
from tests.harness.simulation.consumer_groups.topics import WorldTopics
from tests.harness.simulation.judge import Judge
from tests.harness.simulation.network import Link
from tests.harness.simulation.outsider import Outsider
from tests.harness.simulation.world import ENDLESS, Outcome, World

# TOPIC is never deleted; the others come and go.
OTHERS = ("t0", "t1", "x0")
PATTERNS = ("t.*", "orders|x.", ".*[01]")


class ConsumerGroupsWorld(World):
    """`reorders`: late copies of requests arrive, and requests of an earlier connection after those of a later one.

    A heartbeat has no number, so a late copy may tell the coordinator that a member has given up partitions that it has again: of
    such worlds the judge does not ask that partitions have one owner. All else holds.
    """

    judge_type: type[Judge] = ConsumerGroupsJudge
    judge: ConsumerGroupsJudge
    catalog: WorldTopics

    def __init__(self, seed: int, events: int, print_line: Callable[[str], None] | None = None) -> None:
        self.members: list[GroupMember] = []
        super().__init__(seed, events, print_line)

    def _prepare(self) -> None:
        """Draw what the members depend on; called when the world makes its consumers."""
        random = self.random
        self.catalog = WorldTopics()
        self.catalog.create(TOPIC, self.partitions)
        for name in OTHERS:
            if self.happens(0.5):
                self.catalog.create(name, random.choice([1, 3]))
        self.reorders = self.happens(0.2)
        if not self.reorders:
            self.faults.repeat = 0.0
        self._has_regexes = self.happens(0.5)
        if self._has_regexes:
            # The coordinator looks up topics again after some time by the wall clock.
            self.faults.wall_jump_us = None
        self._session_ms = random.choice([3_000, 6_000, 10_000])
        self._interval_ms = random.choice([500, 1_000])
        self._stubborn = random.choice([0.0, 0.0, 0.05, 0.3])
        self._topics_us = random.choice([5 * SECOND, 20 * SECOND, None])

    # ---- for members -------------------------------------------------------------------------------------------------

    def connect(self, member: GroupMember) -> Link:
        """A connection; what it sends arrives after what the member has sent before, unless the world reorders."""
        link, before = Link(self, member), self._last_links.get(member.name)
        if before is not None and not self.reorders:
            link.follow(before)
        self._last_links[member.name] = link
        return link

    def listener_us(self, stubborn: float) -> int | None:
        """How long a call of a listener takes; None: it does not return."""
        if not self._in_chaos:
            return self.random.randrange(50 * MS)
        if self.happens(stubborn):
            return None
        return self.random.randrange(self.random.choice([1, 50 * MS, 50 * MS, 8 * SECOND]))

    def draw_subscription(self, version: int) -> Subscription:
        random = self.random
        regex = random.choice(PATTERNS) if self._has_regexes and version and self.happens(0.5) else None
        names = (TOPIC, *(name for name in OTHERS if self.happens(0.3)))
        return Subscription(() if regex is not None and self.happens(0.7) else names, regex)

    def topics_of(self, subscription: Subscription) -> set[str]:
        names, regex = subscription
        found = set(names) & set(self.catalog)
        return found if regex is None else found | {name for name in self.catalog if re.fullmatch(regex, name)}

    # ---- the course of events ----------------------------------------------------------------------------------------

    def _settings(self) -> GroupSettings:
        self.catalog.restarted()
        return (
            super()
            ._settings()
            ._replace(
                group_consumer_session_timeout_ms=self._session_ms,
                group_consumer_heartbeat_interval_ms=self._interval_ms,
                group_consumer_max_size=self.random.choice([ENDLESS, ENDLESS, ENDLESS, 3]),
            )
        )

    def _schedule_faults(self) -> None:
        super()._schedule_faults()
        if self._topics_us is not None:
            self._schedule(self._topics_us, self._change_topics)
        if self.faults.member_pause_us is not None:
            self._schedule(self.faults.member_pause_us, lambda: self.random.choice(self.members).stall())

    def _change_topics(self) -> None:
        name, catalog = self.random.choice([TOPIC, *OTHERS]), self.catalog
        if name not in catalog:
            catalog.create(name, self.random.choice([1, 3]))
        elif name == TOPIC or self.happens(0.5):
            if (catalog.partition_count(name) or 0) < 12:
                catalog.grow(name)
        else:
            catalog.delete(name)
        self.note("topic", name, catalog.partition_count(name))

    def partition_count(self, topic: str) -> int | None:
        return self.catalog.partition_count(topic)

    def _calm_down(self) -> None:
        super()._calm_down()
        missing = [name for name in OTHERS if name not in self.catalog]
        if missing and self.happens(0.5):
            self.clock.later(self.random.randrange(20 * SECOND), self.catalog.create, missing[0], 3)
        self.clock.later(45 * SECOND, self._repair)

    def _repair(self) -> None:
        """Do what repairs a group that would stay as it is, as with Kafka 4.1.

        It does not rebalance if a member drops its regular expression, or changes to one without topics. And a late copy of a
        heartbeat may have got the answer with an assignment.
        """
        if self.reorders:
            for member in self.members:
                member.doubt()
        if not self._has_regexes:
            return
        for group_id in {member.profile.group_id: None for member in self.members}:
            member = next((one for one in self.members if one.alive and one.profile.group_id == group_id), None)
            if member is not None:
                names, regex = member.subscription
                member.subscription = Subscription((*names, "absent"), regex)

    def _max_size(self, group_id: str) -> int:
        settings = self.broker.settings
        return settings.group_consumer_max_size if is_consumer_group(group_id) else settings.group_max_size

    def _unrest_of(self, group_id: str, group: Any, consumers: list[Any]) -> str:
        if not is_consumer_group(group_id):
            return super()._unrest_of(group_id, group, consumers)
        if self.broker.loop.dead:
            return "no broker is running"
        if not isinstance(group, ConsumerGroup):
            return f"{group_id} is no consumer group" if consumers else ""
        held = {one.profile.instance_id for one in consumers if one.is_settled}
        # Only one of two processes with the same instance id becomes a member.
        members = [one for one in consumers if one.state is not State.REFUSED or one.profile.instance_id not in held]
        unsettled = [(one.name, one.state.value) for one in members if not one.is_settled]
        if unsettled:
            return f"{group_id}: {unsettled} are not settled"
        if {one.member_id for one in members} != group.members.keys():
            return f"{group_id} has the members {[*group.members]}"
        if group.state_name not in ("Stable", "Empty"):
            return f"{group_id} is {group.state_name}"
        if any(one.epoch != group.assignment_epoch for one in members):
            return f"{group_id}: not all members are in epoch {group.assignment_epoch}"
        return self._unrest_of_owners(group_id, group, members)

    def _unrest_of_owners(self, group_id: str, group: ConsumerGroup, members: list[GroupMember]) -> str:
        catalog, expected = self.catalog, set[tuple[bytes, int]]()
        for one in members:
            wanted = [
                (catalog.topic_id(name), catalog.partition_count(name) or 0)
                for name in self.topics_of(one.subscription)
            ]
            places = {
                (topic_id, number) for topic_id, count in wanted if topic_id is not None for number in range(count)
            }
            expected |= places
            if not one.owned <= places:
                return f"{group_id}: {one.name} owns {sorted(one.owned - places)}, to which it has not subscribed"
        owned = sorted(place for one in members for place in one.owned)
        return "" if owned == sorted(expected) else f"{group_id} owns {owned}, not {sorted(expected)}"

    # ---- consumers ---------------------------------------------------------------------------------------------------

    def _make_outsider(self) -> Outsider:
        return ConsumerGroupsOutsider(self)

    def _make_consumers(self) -> list[Any]:  # type: ignore[override]
        self._prepare()
        self._last_links: dict[str, Link] = {}
        random = self.random
        classic: list[Consumer] = super()._make_consumers()[:3] if self.happens(0.3) else []
        groups = [f"k{number}" for number in range(random.choice([1, 1, 2]))]
        count = random.choice([1, 2, 3, 4, 8])
        instances = random.choice([0, 0, 2, count])
        for number in range(count):
            is_static = random.randrange(count) < instances
            instance_id = f"i{random.randrange(number + 1) if self.happens(0.3) else number}" if is_static else None
            version = random.choice([0, 1, 1])
            if is_static:
                # One of version 0 would keep the regular expression of another process with its instance id.
                version = 1
            profile = MemberProfile(
                groups[number % len(groups)],
                instance_id,
                self._session_ms,
                random.choice([3_000, 10_000, 20_000]),
                version,
                random.choice([None, None, "uniform", "range"]),
                random.choice([None, None, "rack"]),
                self._stubborn,
            )
            self.members.append(GroupMember(self, f"m{number}", profile, self.draw_subscription(version)))
        return [*classic, *self.members]


def run_seed(seed: int, events: int, print_line: Callable[[str], None] | None = None) -> Outcome:
    """Run one world. A Violation, or any exception of the broker, reports what went wrong."""
    return ConsumerGroupsWorld(seed, events, print_line).run()
