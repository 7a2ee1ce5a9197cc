"""Plays the same failures in every design, and adds up what happened."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from broker.light_dataclasses import dataclass, field
from kgctl.lab.design import Group, LabSettings
from kgctl.lab.failures import START_MS, draw, end_ms
from kgctl.lab.ledger import Ledger
from kgctl.lab.server_side import ServerSideGroup
from kgctl.lab.two_phase import TwoPhaseGroup
from kgctl.lab.world import World
from kgctl.lab.zookeeper import ZooKeeperGroup
from kgctl.model.lab import LabDesignRow

Make = Callable[[World, Ledger, LabSettings], Group]

DESIGNS: dict[str, Make] = {
    "zookeeper": ZooKeeperGroup,
    "server-side": ServerSideGroup,
    "two-phase": lambda world, ledger, settings: TwoPhaseGroup(world, ledger, settings, ["range"]),
    "cooperative": lambda world, ledger, settings: TwoPhaseGroup(world, ledger, settings, ["cooperative-sticky"]),
}


@dataclass(slots=True)
class Outcome:
    """One design with one seed. `settled_ms`: for each disturbance the time to the last change of an owner after it."""

    messages: int = 0
    heartbeats: int = 0
    notifications: int = 0
    attempts: int = 0
    failed_attempts: int = 0
    double_ms: int = 0
    fenced_ms: int = 0
    unowned_ms: int = 0
    settled_ms: list[int] = field(default_factory=list)
    unstable: int = 0
    """How often the group was not whole when the next disturbance came."""


def play(design: str, settings: LabSettings, failures: int, seed: int) -> Outcome:
    """The group starts, settles without being measured, and meets one failure after the other."""
    world = World(f"{design} {seed}")
    ledger = Ledger(world, settings.partitions)
    group = DESIGNS[design](world, ledger, settings)
    disturbances = draw(seed, settings.members, failures)
    group.start()
    world.run_until(START_MS - 1)
    ledger.forget_times()
    before = _counts(world, group)
    group.schedule(disturbances)
    outcome = Outcome()
    times = [each.at_ms for each in disturbances]
    for at_ms, until_ms in zip(times, [*times[1:], end_ms(disturbances)], strict=True):
        world.run_until(until_ms - 1)
        ledger.pass_time()
        outcome.settled_ms.append(max(0, ledger.last_change_ms - at_ms))
        outcome.unstable += not ledger.is_whole()
    counts = [now - then for now, then in zip(_counts(world, group), before, strict=True)]
    outcome.messages, outcome.heartbeats, outcome.notifications, outcome.attempts, outcome.failed_attempts = counts
    outcome.double_ms, outcome.fenced_ms, outcome.unowned_ms = ledger.double_ms, ledger.fenced_ms, ledger.unowned_ms
    return outcome


def _counts(world: World, group: Group) -> list[int]:
    own = [getattr(group, name, 0) for name in ("notifications", "attempts", "failed_attempts")]
    return [world.messages, world.heartbeats, *own]


def compare(
    designs: Iterable[str],
    settings: LabSettings,
    failures: int,
    seeds: Sequence[int],
    progress: Callable[[str], None] = lambda text: None,
) -> list[LabDesignRow]:
    """One row for each design."""
    rows = []
    for design in designs:
        outcomes = []
        for seed in seeds:
            progress(f"{design}, seed {seed}")
            outcomes.append(play(design, settings, failures, seed))
        rows.append(_row(design, settings, failures, outcomes))
    return rows


def _row(design: str, settings: LabSettings, failures: int, outcomes: Sequence[Outcome]) -> LabDesignRow:
    settled = [ms for one in outcomes for ms in one.settled_ms]
    return LabDesignRow(
        design=design,
        seeds=len(outcomes),
        members=settings.members,
        partitions=settings.partitions,
        failures=failures,
        messages=sum(one.messages for one in outcomes),
        heartbeats=sum(one.heartbeats for one in outcomes),
        notifications=sum(one.notifications for one in outcomes),
        attempts=sum(one.attempts for one in outcomes),
        failed_attempts=sum(one.failed_attempts for one in outcomes),
        double_owner_s=_seconds(sum(one.double_ms for one in outcomes)),
        fenced_s=_seconds(sum(one.fenced_ms for one in outcomes)),
        unowned_s=_seconds(sum(one.unowned_ms for one in outcomes)),
        stable_s=_seconds(sum(settled) / max(len(settled), 1)),
        slowest_s=_seconds(max(settled, default=0)),
        unstable=sum(one.unstable for one in outcomes),
    )


def _seconds(ms: float) -> float:
    return round(ms / 1000, 1)
