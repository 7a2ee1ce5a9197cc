"""The world of one seed: successive brokers on one disk, consumers, other clients, and faults."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b
from random import Random
from typing import Any

from broker.cores.groups.classic.group import ClassicGroup
from broker.cores.groups.classic.states import GroupState
from broker.cores.groups.settings import GroupSettings
from tests.harness.simulation.broker import Broker
from tests.harness.simulation.clock import MS, SECOND, Clock
from tests.harness.simulation.consumer import TOPIC, Consumer, Phase, Profile
from tests.harness.simulation.disk import Disk
from tests.harness.simulation.faults import Faults
from tests.harness.simulation.judge import Judge
from tests.harness.simulation.network import Link
from tests.harness.simulation.outsider import Outsider
from tests.harness.simulation.terms import ensure

WALL_MS = 1_700_000_000_000
RETENTION_MINUTES = 30
AUDIT_EVERY = 16  # turns of the broker
# A dead member may delay a join phase and then the sync phase, before the last member that learned of it joins again.
CALM_PHASES, CALM_SLACK_US = 3, 120 * SECOND
ENDLESS = 2**31 - 1


@dataclass(frozen=True)
class Outcome:
    """The figures of one world."""

    seed: int
    events: int
    simulated_us: int
    brokers: int
    generations: int
    commits: int
    calmed_us: int
    digest: str


class World:
    """Runs one seed: `events` with faults, then without, until every group must be stable."""

    judge_type: type[Judge] = Judge

    def __init__(
        self, seed: int, events: int, print_line: Callable[[str], None] | None = None, disk_type: type[Disk] = Disk
    ) -> None:
        self._seed = seed
        self._wanted = events
        self._print_line = print_line
        self._digest = blake2b(digest_size=8)
        self.random = Random(seed)
        self.clock = Clock()
        self.faults = Faults.draw(self.random)
        self.partitions = self.random.choice([1, 4, 9])
        self.disk = disk_type(self._fails, self._commits)
        self.catalog: Any = self
        self.links: dict[Link, None] = {}
        self._offset = 0
        self._wall_shift_ms = self._wall_low_ms = 0
        self._turns = 0
        self._events = 0
        self._in_chaos = True
        self._delay_ms = self.random.choice([0, 3_000])
        self.judge = self.judge_type(self)
        self.consumers = self._make_consumers()
        self._outsider = self._make_outsider()
        self._start_broker()

    # ---- the course of events ----------------------------------------------------------------------------------------

    def run(self) -> Outcome:
        for consumer in self.consumers:
            self.clock.later(self.random.randrange(5 * SECOND), consumer.start)
        self._schedule_faults()
        while self._events < self._wanted:
            self.step()
        calm_from_us = self.clock.us
        self._calm_down()
        self._rest(calm_from_us + self._longest_unrest_us())
        calmed_us = self.clock.us - calm_from_us
        self.judge.audit()
        self.judge.check_hard_state()
        judge = self.judge
        return Outcome(
            self._seed,
            self._events,
            self.clock.us,
            self.broker.number,
            judge.generations,
            judge.acknowledged,
            calmed_us,
            self._digest.hexdigest(),
        )

    def step(self) -> None:
        """Run the next event, outside the broker or in it."""
        turn_us, next_us = self.broker.loop.next_turn_us(), self.clock.next_us()
        if turn_us is None or (next_us is not None and next_us < turn_us):
            self._events += 1
            self.clock.step()
            return
        loop = self.broker.loop
        self.clock.us = max(self.clock.us, turn_us)
        before = loop.callbacks
        loop.turn()
        self._events += loop.callbacks - before
        self._turns += 1
        if self._turns % AUDIT_EVERY == 0 and loop.idle and not loop.dead:
            self.judge.audit()

    def _rest(self, until_us: int) -> None:
        """Continue until every group is stable and stays so for a while."""
        rested: list[tuple[str, int]] | None = None
        while True:
            check_us = self.clock.us + 5 * SECOND
            self.clock.at(check_us, lambda: None)
            while self.clock.us < check_us:
                self.step()
            unrest, generations = self._unrest()
            if not unrest and rested == generations and not self.disk.dirty and self.broker.loop.idle:
                return
            rested = None if unrest else generations
            ensure(self.clock.us < until_us, f"groups are not stable after the faults have ended: {unrest}")

    def _longest_unrest_us(self) -> int:
        sessions = [consumer.profile.session_timeout_ms for consumer in self.consumers]
        rebalances = [consumer.profile.rebalance_timeout_ms for consumer in self.consumers]
        return CALM_PHASES * (max(sessions) + max(rebalances)) * MS + CALM_SLACK_US

    def _unrest(self) -> tuple[str, list[tuple[str, int]]]:
        """What is not stable yet, and the generations of the groups."""
        generations = []
        for group_id in dict.fromkeys(consumer.profile.group_id for consumer in self.consumers):
            consumers = [c for c in self.consumers if c.profile.group_id == group_id and c.alive]
            if len(consumers) > self._max_size(group_id):
                # A client that finds the group full leaves and retries, in Kafka too, so such a group need not become stable.
                continue
            group = self.broker.core.group(group_id)
            unrest = self._unrest_of(group_id, group, consumers)
            if unrest:
                return unrest, []
            generations.append((group_id, group.generation if group is not None else 0))
        return "", generations

    def _max_size(self, group_id: str) -> int:
        return self.broker.settings.group_max_size

    def _unrest_of(self, group_id: str, group: ClassicGroup | None, consumers: list[Consumer]) -> str:
        if self.broker.loop.dead:
            return "no broker is running"
        if group is None:
            return f"{group_id} does not exist" if consumers else ""
        if not group.members and not consumers:
            return "" if group.state is GroupState.EMPTY else f"{group_id} is {group.state.value}"
        if group.state is not GroupState.STABLE:
            return f"{group_id} is {group.state.value} with {len(group.members)} members"
        alive = [c for c in consumers if c.phase is Phase.STABLE and c.member_id in group.members]
        if len(alive) < len(group.members):
            return f"{group_id} has {len(group.members)} members, {len(alive)} of them alive"
        if len(alive) < len(consumers):
            return f"{group_id}: {[(c.name, c.phase.value) for c in consumers if c not in alive]} are not members"
        if any(c.generation != group.generation for c in alive):
            return f"{group_id}: not all members are in generation {group.generation}"
        owned = sorted(partition for c in alive for partition in c.owned)
        return "" if owned == list(range(self.partitions)) else f"{group_id} owns {owned}"

    # ---- for all parts -----------------------------------------------------------------------------------------------

    def happens(self, probability: float) -> bool:
        return probability > 0 and self.random.random() < probability

    def delay_us(self) -> int:
        return self.random.randrange(50, self.faults.delay_us + 1)

    def next_offset(self) -> int:
        self._offset += 1
        return self._offset

    def new_id(self) -> str:
        return f"{self.random.getrandbits(64):016x}"

    def wall_ms(self) -> int:
        return WALL_MS + self.clock.us // MS + self._wall_shift_ms

    def may_expire(self) -> bool:
        """Whether the wall clock was ever so late that an offset may have expired."""
        return self.wall_ms() - WALL_MS - self._wall_low_ms >= RETENTION_MINUTES * 60_000

    def partition_count(self, topic: str) -> int | None:
        return self.partitions if topic == TOPIC else None

    def note(self, *what: object) -> None:
        """Add to the course of the world, which a seed must repeat exactly."""
        line = f"{self.clock.us} {what}"
        self._digest.update(line.encode())
        if self._print_line is not None:
            self._print_line(line)

    # ---- brokers -----------------------------------------------------------------------------------------------------

    def _start_broker(self) -> None:
        number = self.broker.number + 1 if hasattr(self, "broker") else 1
        settings = self._settings()
        self.note("broker starts", number)
        self.judge.restarted()
        self.broker = Broker(self, number, settings)
        self.broker.runner.recover()
        self.judge.recovered()

    def _settings(self) -> GroupSettings:
        return GroupSettings(
            group_initial_rebalance_delay_ms=self._delay_ms,
            group_max_size=self.random.choice([ENDLESS, ENDLESS, ENDLESS, 3]),
            offsets_retention_minutes=RETENTION_MINUTES,
            offsets_retention_check_interval_ms=30_000,
        )

    def crash_broker(self, why: str) -> None:
        loop = self.broker.loop
        if loop.dead:
            return
        self.note("broker dies", why)
        loop.dead = True
        self.disk.crash()
        for link in list(self.links):
            link.broker_died()
        self.links.clear()
        self.clock.later(self.random.randrange(50 * MS, 5 * SECOND), self._start_broker)

    def _fails(self) -> bool | None:
        return self.happens(0.5) if self.happens(self.faults.commit_failure) else None

    def _commits(self) -> None:
        self.broker.loop.be_busy(self.random.randrange(100, 5 * MS))
        if self.happens(self.faults.slow_commit):
            self.broker.loop.be_busy(self.random.randrange(3 * SECOND))

    # ---- faults ------------------------------------------------------------------------------------------------------

    def _schedule_faults(self) -> None:
        faults = self.faults
        for mean_us, act in (
            (faults.broker_crash_us, lambda: self.crash_broker("killed")),
            (faults.broker_pause_us, lambda: self.broker.loop.stop(self.random.randrange(20 * SECOND))),
            (faults.member_crash_us, self._crash_member),
            (faults.member_pause_us, self._pause_member),
            (faults.leave_us, self._let_member_leave),
            (faults.resubscribe_us, lambda: self.random.choice(self.consumers).change_subscription()),
            (faults.wall_jump_us, self._move_wall),
            (faults.outsider_us, self._let_outsider_act),
        ):
            if mean_us is not None:
                self._schedule(mean_us, act)

    def _schedule(self, mean_us: int, act: Callable[[], None]) -> None:
        self.clock.later(int(self.random.expovariate(1 / mean_us)), self._strike, mean_us, act)

    def _strike(self, mean_us: int, act: Callable[[], None]) -> None:
        if self._in_chaos:
            act()
            self._schedule(mean_us, act)

    def _crash_member(self) -> None:
        consumer = self.random.choice(self.consumers)
        if consumer.alive:
            consumer.crash()
        self._bring_back(consumer)

    def _let_member_leave(self) -> None:
        consumer = self.random.choice(self.consumers)
        if consumer.alive:
            consumer.leave()
        self._bring_back(consumer)

    def _bring_back(self, consumer: Consumer) -> None:
        self.clock.later(self.random.choice([100 * MS, 3 * SECOND, 40 * SECOND]), self._start_again, consumer)

    def _start_again(self, consumer: Consumer) -> None:
        if self._in_chaos and not consumer.alive:
            consumer.start()

    def _pause_member(self) -> None:
        consumer = self.random.choice(self.consumers)
        if consumer.alive:
            consumer.pause(self.random.randrange(self.random.choice([SECOND, 60 * SECOND])))

    def _move_wall(self) -> None:
        self._wall_shift_ms += self.random.choice([-3_600_000, -5_000, 5_000, 3_600_000])
        self._wall_low_ms = min(self._wall_low_ms, self.clock.us // MS + self._wall_shift_ms)
        self.note("wall clock", self._wall_shift_ms)

    def _let_outsider_act(self) -> None:
        profile = self.random.choice(self.consumers).profile
        instances = [c.profile.instance_id for c in self.consumers if c.profile.group_id == profile.group_id]
        self._outsider.act(profile.group_id, [instance for instance in instances if instance is not None])

    def _calm_down(self) -> None:
        """End the faults. Some of the dead consumers restart, the others never do."""
        self.note("calm")
        self._in_chaos = False
        self.faults = Faults()
        taken = {c.profile.instance_id for c in self.consumers if c.alive}
        for consumer in self.consumers:
            consumer.wake()
            instance = consumer.profile.instance_id
            if not consumer.alive and self.happens(0.7) and (instance is None or instance not in taken):
                taken.add(instance)
                consumer.start()

    # ---- consumers ---------------------------------------------------------------------------------------------------

    def _make_outsider(self) -> Outsider:
        return Outsider(self)

    def _make_consumers(self) -> list[Consumer]:
        random = self.random
        groups = [f"g{number}" for number in range(random.choice([1, 1, 2, 3]))]
        count = random.choice([3, 4, 6, 10, 30])
        # Two processes with one instance id fence each other.
        instances = random.choice([0, 2, count])
        made = []
        for number in range(count):
            group_id = groups[number % len(groups)]
            is_static = random.randrange(count) < instances
            instance_id = f"i{random.randrange(number + 1) if self.happens(0.1) else number}" if is_static else None
            oldest = (5, 3, 3, 7, 3) if is_static else (0, 0, 0, 2, 0)
            newest = (10, 6, 5, 10, 6)
            versions = [random.randrange(low, high) for low, high in zip(oldest, newest, strict=True)]
            if self.happens(0.5):
                versions = [high - 1 for high in newest]
            profile = Profile(
                group_id,
                instance_id,
                random.choice([6_000, 10_000, 30_000]),
                random.choice([10_000, 30_000]),
                *versions,
            )
            made.append(Consumer(self, f"c{number}", profile))
        return made


def run_seed(seed: int, events: int, print_line: Callable[[str], None] | None = None) -> Outcome:
    """Run one world. A Violation, or any exception of the broker, reports what went wrong."""
    return World(seed, events, print_line).run()
