"""The faults of a world and how often they occur, drawn for each seed so that rare combinations occur too."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from tests.harness.simulation.clock import MS, SECOND


@dataclass
class Faults:
    """Probabilities are per message or flush; the other values are mean times between two events, None for never."""

    delay_us: int = 20 * MS  # the longest delay of a message
    reset: float = 0.0
    repeat: float = 0.0
    commit_failure: float = 0.0
    slow_commit: float = 0.0
    broker_crash_us: int | None = None
    broker_pause_us: int | None = None
    member_crash_us: int | None = None
    member_pause_us: int | None = None
    leave_us: int | None = None
    resubscribe_us: int | None = None
    wall_jump_us: int | None = None
    outsider_us: int | None = None

    @classmethod
    def draw(cls, random: Random) -> Faults:
        pick = random.choice

        def now_and_then(*means_s: int | None) -> int | None:
            mean_s = pick([None, *means_s])
            return None if mean_s is None else mean_s * SECOND

        return cls(
            delay_us=pick([MS, 20 * MS, 300 * MS, 3 * SECOND]),
            reset=pick([0, 0.003, 0.03]),
            repeat=pick([0, 0.01, 0.1]),
            commit_failure=pick([0, 0.002, 0.02]),
            slow_commit=pick([0, 0.01]),
            broker_crash_us=now_and_then(5, 20, 60),
            broker_pause_us=now_and_then(20),
            member_crash_us=now_and_then(5, 20),
            member_pause_us=now_and_then(5, 20),
            leave_us=now_and_then(10),
            resubscribe_us=now_and_then(20),
            wall_jump_us=now_and_then(20),
            outsider_us=pick([SECOND, 5 * SECOND]),
        )
