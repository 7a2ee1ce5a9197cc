"""Requested rebalances with scripted answers: the native request, eviction with consent, and the wait."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from broker.protocol.messages.describe_group_details import DescribeGroupDetailsResponse
from broker.protocol.messages.describe_groups import DescribeGroupsResponse
from broker.protocol.messages.leave_group import LeaveGroupResponse
from broker.protocol.messages.trigger_rebalance import TriggerRebalanceResponse
from kgctl.client.admin.rebalance import plan_rebalance, rebalance
from kgctl.client.net.errors import BrokerError, NotFound, Precondition, TimedOut
from kgctl.client.net.steps import Call
from kgctl.exit_codes import exit_code_of
from kgctl.model.changes import RebalanceRow
from tests.harness.feeding import FIND_COORDINATOR, METADATA, Feeder, cluster, coordinators, metadata
from tests.harness.group_answers import describes, group, lists, member

LEAVE_GROUP, DESCRIBE_GROUPS, LIST_GROUPS, DETAILS, TRIGGER = 13, 15, 16, 10000, 10001
UNKNOWN_MEMBER_ID, INVALID_REQUEST, GROUP_ID_NOT_FOUND = 25, 42, 69


@dataclass
class Scene:
    """A coordinator whose group `g` is described as the next of `looks` says: state, generation, members."""

    looks: list[tuple[str, int, list[DescribeGroupsResponse.Member]]]
    native: bool = True
    error: int = 0
    seconds: float = 0.0
    feeder: Feeder = field(default_factory=Feeder)

    def __post_init__(self) -> None:
        self.feeder.answers = {
            METADATA: metadata({}),
            FIND_COORDINATOR: coordinators(lambda _: 1),
            LIST_GROUPS: lists(),
            DESCRIBE_GROUPS: self._describe,
            DETAILS: self._details,
            TRIGGER: self._trigger,
            LEAVE_GROUP: self._leave,
        }
        if not self.native:
            del self.feeder.offered[DETAILS], self.feeder.offered[TRIGGER]
        self.cluster = cluster()
        self.leaving_error: Callable[[str], int] = lambda _: 0

    def plan(self, *, evict: bool = False) -> list[RebalanceRow]:
        return self.feeder.run(plan_rebalance(self.cluster, "g", evict=evict))

    def go(self, plan: list[RebalanceRow], *, wait: bool = True) -> list[RebalanceRow]:
        return self.feeder.run(rebalance(self.cluster, "g", plan, "why not", wait=wait, clock=self._clock))

    def _clock(self) -> float:
        self.seconds += 0.25
        return self.seconds

    def _describe(self, call: Call) -> DescribeGroupsResponse:
        self.shown = self.looks.pop(0) if len(self.looks) > 1 else self.looks[0]
        state, _, members = self.shown
        return describes(*([group("g", state, *members)] if state != "Dead" else []))(call)

    def _details(self, call: Call) -> DescribeGroupDetailsResponse:
        row = DescribeGroupDetailsResponse.Group(group_id="g", generation_id=self.shown[1])
        return DescribeGroupDetailsResponse(groups=[row])

    def _trigger(self, call: Call) -> TriggerRebalanceResponse:
        row = TriggerRebalanceResponse.Group(group_id="g", error_code=self.error, generation_id=7)
        return TriggerRebalanceResponse(groups=[row])

    def _leave(self, call: Call) -> LeaveGroupResponse:
        request: Any = call.request
        return LeaveGroupResponse(
            members=[
                LeaveGroupResponse.Member(
                    member_id=row.member_id,
                    group_instance_id=row.group_instance_id,
                    error_code=self.leaving_error(row.member_id),
                )
                for row in request.members
            ]
        )


A, B, C = member("a"), member("b"), member("c")


def test_a_rebalance_waits_for_the_new_generation() -> None:
    scene = Scene(
        [("Stable", 7, [A, B]), ("Stable", 7, [A, B]), ("PreparingRebalance", 7, [A, B]), ("Stable", 8, [A, C])]
    )
    plan = scene.plan()
    assert [(row.consumer_id, row.method, row.generation_before, row.status) for row in plan] == [
        ("a", "trigger", 7, "planned"),
        ("b", "trigger", 7, "planned"),
    ]
    rows = scene.go(plan)
    assert [(row.consumer_id, row.status, row.generation_before, row.generation_after) for row in rows] == [
        ("a", "rejoined", 7, 8),
        ("b", "gone", 7, 8),
        ("c", "joined", 7, 8),
    ]
    assert {row.stable_after_ms for row in rows} == {250}
    (call,) = scene.feeder.calls(TRIGGER)
    assert [(row.group_id, row.reason) for row in call.request.groups] == [("g", "why not")]  # type: ignore[attr-defined]
    assert scene.feeder.calls(LEAVE_GROUP) == []


def test_without_wait_the_rebalance_is_only_requested() -> None:
    scene = Scene([("Stable", 7, [A])])
    (row,) = scene.go(scene.plan(), wait=False)
    assert (row.status, row.generation_before, row.generation_after, row.stable_after_ms) == ("done", 7, None, None)
    assert len(scene.feeder.calls(DESCRIBE_GROUPS)) == 1


def test_a_group_that_is_not_stable_in_time_is_a_failed_row_with_the_reason() -> None:
    scene = Scene([("Stable", 7, [A]), ("PreparingRebalance", 7, [A])])
    plan = scene.plan()
    scene.feeder.pauses_allowed = 3
    (row,) = scene.go(plan)
    assert (row.status, str(row.error)) == ("failed", "TIMED_OUT")
    assert row.error is not None
    assert exit_code_of(row.error) == 3
    assert "'g' is PreparingRebalance" in row.error.message


def test_an_answer_that_is_late_does_not_hide_what_the_one_before_said() -> None:
    scene = Scene([("Stable", 7, [A]), ("PreparingRebalance", 7, [A])])
    plan = scene.plan()
    describe = scene.feeder.answers[DESCRIBE_GROUPS]

    def late(call: Call) -> DescribeGroupsResponse | TimedOut:
        if len(scene.feeder.pauses) == 2:
            return TimedOut("n1:9092: no answer in time")
        answer: DescribeGroupsResponse = describe(call)
        return answer

    scene.feeder.answers[DESCRIBE_GROUPS] = late
    (row,) = scene.go(plan)
    assert row.error is not None
    assert (row.status, row.error.name) == ("failed", "TIMED_OUT")
    assert "'g' is PreparingRebalance" in row.error.message


@pytest.mark.parametrize("state", ["Empty", "Dead"])
def test_a_group_without_members_cannot_be_rebalanced(state: str) -> None:
    with pytest.raises(Precondition if state == "Empty" else NotFound):
        Scene([(state, 0, [])]).plan()


def test_an_execution_fails_if_the_members_or_the_group_have_gone_since_the_plan() -> None:
    scene = Scene([("Stable", 7, [A])], error=INVALID_REQUEST)
    with pytest.raises(Precondition, match="no active members"):
        scene.go(scene.plan())
    scene.error = GROUP_ID_NOT_FOUND
    with pytest.raises(BrokerError) as caught:
        scene.go(scene.plan())
    assert exit_code_of(caught.value) == 5


def test_without_the_native_request_the_members_are_evicted_only_with_consent() -> None:
    scene = Scene([("Stable", 7, [A])], native=False)
    with pytest.raises(Precondition, match="Add --evict") as caught:
        scene.plan()
    assert exit_code_of(caught.value) == 6


def test_the_native_request_is_preferred_to_eviction() -> None:
    scene = Scene([("Stable", 7, [A])])
    scene.go(scene.plan(evict=True), wait=False)
    assert scene.feeder.calls(LEAVE_GROUP) == []


def test_evicted_members_rejoin_under_new_ids_and_static_members_keep_theirs() -> None:
    old, new = member("s-1", instance="i"), member("s-2", instance="i")
    scene = Scene(
        [("Stable", 7, [A, old]), ("Stable", 7, [A, old]), ("Empty", 8, []), ("Stable", 9, [C, new])], native=False
    )
    rows = scene.go(scene.plan(evict=True))
    assert [(row.consumer_id, row.status, row.generation_after) for row in rows] == [
        ("a", "gone", None),
        ("s-2", "rejoined", None),
        ("c", "joined", None),
    ]
    (call,) = scene.feeder.calls(LEAVE_GROUP)
    request: Any = call.request
    assert [row.reason for row in request.members] == ["member was removed by an admin: why not"] * 2


def test_without_generations_the_wait_ends_when_as_many_members_are_back() -> None:
    looks = [("Stable", 7, [A, B]), ("Stable", 7, [A, B]), ("Stable", 8, [C]), ("Stable", 9, [C, member("d")])]
    scene = Scene(looks, native=False)
    rows = scene.go(scene.plan(evict=True))
    assert [(row.consumer_id, row.status) for row in rows if row.status == "joined"] == [
        ("c", "joined"),
        ("d", "joined"),
    ]


def test_only_a_member_that_cannot_be_evicted_is_a_failure_not_one_that_has_left() -> None:
    scene = Scene([("Stable", 7, [A, B])], native=False)
    scene.leaving_error = lambda name: UNKNOWN_MEMBER_ID if name == "a" else 30
    rows = scene.go(scene.plan(evict=True), wait=False)
    assert [(row.status, str(row.error)) for row in rows] == [
        ("done", "None"),
        ("failed", "GROUP_AUTHORIZATION_FAILED"),
    ]
