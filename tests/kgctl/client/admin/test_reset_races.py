"""What happens to a group between its plan and the commit: the plan is not applied to a group that has changed."""

from __future__ import annotations

from typing import Any

import pytest

from kgctl.client.admin.draining import drain_and_reset
from kgctl.client.admin.reset import apply_resets
from kgctl.client.admin.reset_plans import plan_resets
from kgctl.client.admin.reset_targets import Scope, Target
from kgctl.client.net.steps import Call
from kgctl.exit_codes import exit_code_of
from kgctl.model.changes import ResetPlan
from kgctl.model.topic_partition import TopicPartition
from tests.harness.feeding import cluster
from tests.harness.group_answers import describes, group, member
from tests.kgctl.client.admin.test_changes import DESCRIBE_GROUPS, EVERYTHING, LEAVE_GROUP, OFFSET_COMMIT, Groups

KEY = TopicPartition("orders", 0)
EARLIEST = Target("earliest")


def plan(groups: Groups, scope: Scope = EVERYTHING) -> ResetPlan:
    (found,) = groups.feeder.run(plan_resets(cluster(), ["g"], scope, EARLIEST))
    return found


def applied(groups: Groups, planned: ResetPlan) -> ResetPlan:
    (done,) = groups.feeder.run(apply_resets(cluster(), [planned]))
    return done


def refused(groups: Groups, done: ResetPlan) -> tuple[str, int]:
    """The error of a plan of which nothing was committed, and its exit code."""
    assert done.error is not None
    assert [row.status for row in done.rows] == ["skipped"] * len(done.rows)
    assert groups.committed.get(KEY) in (60, 61)
    return done.error.name, exit_code_of(done.error)


def test_a_member_that_joined_before_the_commit_is_seen_by_the_check() -> None:
    groups = Groups({KEY: 60})
    planned = plan(groups)
    groups.feeder.answers[DESCRIBE_GROUPS] = describes(group("g", "Stable", member("m")))
    assert refused(groups, applied(groups, planned)) == ("PRECONDITION", 6)
    assert groups.feeder.calls(OFFSET_COMMIT) == []


@pytest.mark.parametrize("refusal", [25, 22, 27])
def test_a_member_that_joined_between_check_and_commit_makes_the_coordinator_refuse(refusal: int) -> None:
    groups = Groups({KEY: 60}, refusal=refusal)
    planned = plan(groups)

    def joined(call: Call) -> Any:
        groups.feeder.answers[DESCRIBE_GROUPS] = describes(group("g", "Stable", member("m")))
        return groups.commit(call)

    groups.feeder.answers[OFFSET_COMMIT] = joined
    assert refused(groups, applied(groups, planned)) == ("PRECONDITION", 6)


def test_a_group_that_was_deleted_meanwhile_is_not_created_again() -> None:
    groups = Groups({KEY: 60})
    planned = plan(groups)
    groups.feeder.answers[DESCRIBE_GROUPS] = describes()
    assert refused(groups, applied(groups, planned)) == ("NOT_FOUND", 5)
    assert groups.feeder.calls(OFFSET_COMMIT) == []


def test_offsets_that_another_client_committed_meanwhile_are_not_overwritten() -> None:
    groups = Groups({KEY: 60})
    planned = plan(groups)
    groups.committed[KEY] = 61
    done = applied(groups, planned)
    assert refused(groups, done) == ("GROUP_MOVED", 6)
    assert done.error is not None
    assert "committed 61 instead of 60, as when the plan was made" in done.error.message
    assert groups.feeder.calls(OFFSET_COMMIT) == []


class Draining(Groups):
    """A group whose member rejoins until it was evicted `stubborn` times."""

    def __init__(self, stubborn: int) -> None:
        super().__init__({KEY: 60}, "Stable")
        self.evictions, self.stubborn = 0, stubborn
        self.feeder.answers[LEAVE_GROUP] = self.leave
        self.feeder.answers[DESCRIBE_GROUPS] = lambda call: describes(
            group("g", *(["Empty"] if self.evictions >= self.stubborn else ["Stable", member("m")]))
        )(call)

    def leave(self, call: Call) -> Any:
        from broker.protocol.messages.leave_group import LeaveGroupResponse

        self.evictions += 1
        return LeaveGroupResponse(members=[LeaveGroupResponse.Member(member_id="m", group_instance_id=None)])

    def drain(self) -> ResetPlan:
        self.notes: list[str] = []
        return self.feeder.run(drain_and_reset(cluster(), plan(self), EVERYTHING, EARLIEST, note=self.notes.append))


def test_draining_evicts_again_until_the_commit_succeeds() -> None:
    groups = Draining(stubborn=3)
    done = groups.drain()
    assert ([row.status for row in done.rows], groups.evictions) == (["done"], 3)
    assert groups.committed == {KEY: 10}
    assert groups.notes == ["Group 'g': evicting 1 member: m."] * 3


def test_draining_gives_up_without_a_change_when_members_keep_rejoining() -> None:
    groups = Draining(stubborn=1000)
    groups.feeder.pauses_allowed = 5
    done = groups.drain()
    assert done.error is not None
    assert (done.error.name, exit_code_of(done.error)) == ("TIMED_OUT", 3)
    assert "is still Stable, with 1 member" in done.error.message
    assert groups.committed == {KEY: 60}
    assert groups.feeder.calls(OFFSET_COMMIT) == []
