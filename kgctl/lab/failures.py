"""What happens to the members of a group, drawn from a seed; every design meets the same."""

from __future__ import annotations

import random
from enum import Enum

from broker.light_dataclasses import dataclass

# The first failure comes when the group has settled; each one has the time to be repaired before the next.
START_MS = 60_000
SPACING_MS = (40_000, 60_000)
REPAIR_MS = (15_000, 25_000)


class Trouble(Enum):
    """What happens to a member, and the way back."""

    CRASH = "crash"
    LEAVE = "leave"
    PAUSE = "pause"
    """The process stops, as in a long garbage collection, and continues without knowing it."""
    CUT_OFF = "cut off"
    """The member loses the network to the coordinator or ZooKeeper; it still reads and writes records."""
    START = "start"
    RESUME = "resume"
    RECONNECT = "reconnect"


WAY_BACK = {
    Trouble.CRASH: Trouble.START,
    Trouble.LEAVE: Trouble.START,
    Trouble.PAUSE: Trouble.RESUME,
    Trouble.CUT_OFF: Trouble.RECONNECT,
}


@dataclass(frozen=True, slots=True)
class Disturbance:
    at_ms: int
    trouble: Trouble
    member: int


def draw(seed: int, members: int, failures: int) -> list[Disturbance]:
    """Failures one after the other, each followed by its way back."""
    source = random.Random(f"failures {seed}")
    found = []
    at_ms = START_MS
    for _ in range(failures):
        trouble, member = source.choice(list(WAY_BACK)), source.randrange(members)
        found.append(Disturbance(at_ms, trouble, member))
        found.append(Disturbance(at_ms + source.randint(*REPAIR_MS), WAY_BACK[trouble], member))
        at_ms += source.randint(*SPACING_MS)
    return found


def end_ms(disturbances: list[Disturbance]) -> int:
    """When the play ends: the last repair has as much time as the others."""
    return max((one.at_ms for one in disturbances), default=START_MS) + SPACING_MS[1]
