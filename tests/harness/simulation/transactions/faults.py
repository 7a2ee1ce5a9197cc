"""The faults of a transactional world and how often they occur, drawn for each seed."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from tests.harness.simulation.clock import MS, SECOND


@dataclass
class Faults:
    """Probabilities are per message or transaction; the other values are mean times between two events, None for never."""

    delay_us: int = 20 * MS  # the longest delay of a message
    reset: float = 0.0
    repeat: float = 0.0
    abort: float = 0.0
    think: float = 0.0  # the probability that a worker takes its time between two requests
    kill_us: int | None = None
    disk_us: int | None = None  # the disk fails in the middle of something; often that is a power cut
    broker_pause_us: int | None = None
    client_crash_us: int | None = None
    client_pause_us: int | None = None
    sweep_us: int | None = None
    level_us: int | None = None

    @classmethod
    def draw(cls, random: Random) -> Faults:
        pick = random.choice

        def now_and_then(*means_s: int | None) -> int | None:
            mean_s = pick([None, *means_s])
            return None if mean_s is None else mean_s * SECOND

        return cls(
            delay_us=pick([MS, 20 * MS, 300 * MS]),
            reset=pick([0, 0.01, 0.05]),
            repeat=pick([0, 0.03, 0.2]),
            abort=pick([0, 0.1, 0.4]),
            think=pick([0, 0.1, 0.3]),
            kill_us=now_and_then(3, 10, 30),
            disk_us=now_and_then(2, 5, 20),
            broker_pause_us=now_and_then(10, 20),
            client_crash_us=now_and_then(2, 5, 10),
            client_pause_us=now_and_then(2, 5, 10),
            sweep_us=now_and_then(10),
            level_us=pick([None, None, None, 5 * SECOND]),
        )
