"""Which answers are waited for, which are left out, and which end the question."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from broker.protocol.errors import ErrorCode
from kgctl.client.net.errors import BrokerError, KgctlError, NotKafka, TimedOut, Unreachable
from kgctl.pipelines.jobs import asking_again
from kgctl.pipelines.jobs.asking_again import Patience, patiently

NO_LEADER = BrokerError(ErrorCode.LEADER_NOT_AVAILABLE, "t-1")
SILENT = Unreachable("node 2")
Answer = int | KgctlError
PATIENCE = Patience(leader_s=2.5, broker_s=5.5)


class Asked:
    """Answers for p0 at once; for p1 one of `answers` after the other, the last one again and again. A question takes `took_s`."""

    def __init__(self, clock: Clock, *answers: Answer, took_s: float = 0.0) -> None:
        self._clock, self._answers, self._took_s = clock, list(answers), took_s
        self.questions: list[list[str]] = []

    def __call__(self, wanted: Mapping[str, None]) -> dict[str, Answer]:
        self.questions.append(sorted(wanted))
        self._clock.now += self._took_s
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        return {name: 7 if name == "p0" else answer for name in wanted}


class Clock:
    now = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(asking_again, "time", made)
    return made


def ask(asked: Asked, *names: str) -> dict[str, int]:
    return patiently(asked, dict.fromkeys(names), PATIENCE)


@pytest.mark.parametrize("error", [NO_LEADER, SILENT])
def test_only_what_failed_is_asked_again(clock: Clock, error: KgctlError) -> None:
    asked = Asked(clock, error, error, 9)
    assert ask(asked, "p0", "p1") == {"p0": 7, "p1": 9}
    assert asked.questions == [["p0", "p1"], ["p1"], ["p1"]]


def test_a_partition_that_stays_without_a_leader_is_left_out(clock: Clock) -> None:
    assert ask(Asked(clock, NO_LEADER), "p0", "p1") == {"p0": 7}
    assert clock.now == 3.0
    with pytest.raises(BrokerError):
        ask(Asked(clock, NO_LEADER), "p1")


def test_an_election_after_a_silence_has_its_own_time(clock: Clock) -> None:
    asked = Asked(clock, SILENT, SILENT, SILENT, SILENT, NO_LEADER, NO_LEADER, 9)
    assert ask(asked, "p0", "p1") == {"p0": 7, "p1": 9}
    # One error is none that lasts, however long the question took.
    assert ask(Asked(clock, NO_LEADER, 9, took_s=30.0), "p0", "p1") == {"p0": 7, "p1": 9}


@pytest.mark.parametrize("error", [SILENT, TimedOut("no answer")])
def test_a_broker_that_stays_silent_ends_the_question(clock: Clock, error: KgctlError) -> None:
    with pytest.raises(type(error)):
        ask(Asked(clock, error), "p0", "p1")
    assert clock.now == 6.0


def test_partitions_are_left_out_at_once_only_for_what_a_broker_says_of_them(clock: Clock) -> None:
    for code in (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.TOPIC_AUTHORIZATION_FAILED):
        assert ask(Asked(clock, BrokerError(code, "t-1")), "p0", "p1") == {"p0": 7}
    with pytest.raises(NotKafka):
        ask(Asked(clock, NotKafka("node 2")), "p0", "p1")

    def refuse(_: Mapping[str, None]) -> dict[str, Answer]:
        raise BrokerError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "cluster")

    with pytest.raises(BrokerError):
        patiently(refuse, {"p0": None}, PATIENCE)
    assert clock.now == 0.0
