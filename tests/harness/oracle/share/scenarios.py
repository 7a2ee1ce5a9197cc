"""Timed scenarios of share groups: scripts of members of which some fall silent. They are recorded and replayed as walks are.

Times are whole units; the session timeout ends between two. Kafka is started with SETTINGS.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from tests.harness.oracle.consumer.player import IN_TIME, UNIT_S, Inconclusive
from tests.harness.oracle.share.files import Walk
from tests.harness.oracle.share.record import Recorder, prepare

SESSION_MS = round(5.5 * UNIT_S * 1000)
SETTINGS = {
    "group.share.session.timeout.ms": str(SESSION_MS),
    "group.share.min.session.timeout.ms": str(SESSION_MS),
    "group.share.heartbeat.interval.ms": "1000",
    "group.share.min.heartbeat.interval.ms": "1000",
}
ATTEMPTS = 20
AT_ONCE = 4
FIRST, SECOND, THIRD = "a1", "b2", "c3"


class Scenario(Recorder):
    """A scenario that is being recorded. Its topics are made before its time begins."""

    def __init__(self, address: tuple[str, int], seed: int, tag: str) -> None:
        super().__init__(address, seed, tag)
        for _ in range(2):
            self.change_topics()
        self._began, self._units = time.monotonic(), 0

    def wait(self, units: int) -> None:
        """Until this many units after the last wait ended, or the scenario began. Raises Inconclusive if that is over."""
        self._watch_time()
        self._units += units
        time.sleep(max(0.0, self._now_s() - time.monotonic()))
        self.steps.append({"wait_ms": round(units * UNIT_S * 1000), "answer": None, "records": self.new_records()})
        self._watch_time()

    def _watch_time(self) -> None:
        if time.monotonic() - self._now_s() > IN_TIME * UNIT_S:
            raise Inconclusive("the machine is too slow for timeouts")

    def _now_s(self) -> float:
        return self._began + self._units * UNIT_S

    # ---- what members do

    def joins(self, member_id: str, topics: list[str] | None = None) -> None:
        self.send(self.heartbeat(member_id, 0, topics=topics or self.names))

    def beats(self, member_id: str, ahead: int = 0) -> None:
        self.send(self.heartbeat(member_id, self.epochs.get(member_id, 1) + ahead))

    def leaves(self, member_id: str) -> None:
        self.send(self.heartbeat(member_id, -1))


def member_that_falls_silent(s: Scenario) -> None:
    for _ in range(2):
        s.joins(FIRST)
        s.joins(SECOND)
    s.wait(3)
    s.beats(FIRST)
    s.wait(2)
    s.describe()
    s.wait(1)
    s.describe()
    s.beats(FIRST)
    s.beats(SECOND)


def all_members_fall_silent(s: Scenario) -> None:
    s.joins(FIRST)
    s.wait(1)
    s.joins(SECOND, s.names[:1])
    s.wait(5)
    s.describe()
    s.wait(1)
    s.describe()
    s.delete_offsets()
    s.beats(FIRST)


def members_fall_silent_together(s: Scenario) -> None:
    for member_id in (FIRST, SECOND, THIRD):
        s.joins(member_id)
    s.wait(6)
    s.describe()
    s.joins(FIRST)
    s.beats(FIRST)


def refused_heartbeats_do_not_count(s: Scenario) -> None:
    s.joins(FIRST)
    s.joins(SECOND)
    s.wait(3)
    s.beats(SECOND, ahead=3)
    s.beats(FIRST)
    s.wait(3)
    s.beats(FIRST)
    s.beats(SECOND)


def former_epochs_and_joins_count(s: Scenario) -> None:
    s.joins(FIRST)
    s.joins(SECOND)
    s.beats(FIRST)
    s.wait(3)
    s.beats(FIRST, ahead=-1)
    s.joins(SECOND)
    s.wait(4)
    s.describe()
    s.wait(2)
    s.describe()


def member_that_leaves_and_joins(s: Scenario) -> None:
    """Only its last session counts."""
    s.joins(FIRST)
    s.joins(SECOND)
    s.wait(3)
    s.leaves(FIRST)
    s.beats(SECOND)
    s.wait(1)
    s.joins(FIRST)
    s.wait(2)
    s.beats(SECOND)
    s.wait(4)
    s.beats(SECOND)


def topics_change_while_a_member_is_silent(s: Scenario) -> None:
    s.joins(FIRST)
    s.joins(SECOND)
    s.beats(FIRST)
    s.wait(2)
    s.change_topics()
    s.wait(2)
    s.beats(FIRST)
    s.wait(2)
    s.beats(FIRST)
    s.beats(FIRST)
    s.describe()


def member_with_another_subscription_falls_silent(s: Scenario) -> None:
    """Its topics are no longer subscribed to."""
    s.joins(FIRST, s.names[:1])
    s.joins(SECOND, s.names)
    s.beats(SECOND)
    s.wait(4)
    s.beats(FIRST)
    s.describe_offsets()
    s.wait(2)
    s.beats(FIRST)
    s.describe_offsets()
    s.wait(4)
    s.wait(2)
    s.describe()


SCENARIOS: list[Callable[[Scenario], None]] = [
    member_that_falls_silent,
    all_members_fall_silent,
    members_fall_silent_together,
    refused_heartbeats_do_not_count,
    former_epochs_and_joins_count,
    member_that_leaves_and_joins,
    topics_change_while_a_member_is_silent,
    member_with_another_subscription_falls_silent,
]


def record(address: tuple[str, int]) -> list[Walk]:
    """All scenarios; one that the machine was too slow for is played again."""
    tag = prepare(address)

    def play(number: int) -> Walk:
        for attempt in range(ATTEMPTS):
            played = Scenario(address, number, f"{tag}-{attempt}")
            try:
                SCENARIOS[number](played)
            except Inconclusive:
                continue
            finally:
                played.end()
            return {"seed": number, "settings": SETTINGS, "scenario": SCENARIOS[number].__name__, "steps": played.steps}
        raise Inconclusive(SCENARIOS[number].__name__)

    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(play, range(len(SCENARIOS))))
