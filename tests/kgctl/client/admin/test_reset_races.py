"""What happens to a group between its plan and the commit: the plan is not applied to a group that has changed."""

from __future__ import annotations

from typing import Any

import pytest

from kgctl.client.admin.draining import drain_and_reset
from kgctl.client.admin.offsets import PARTITIONS_PER_REQUEST
from kgctl.client.admin.reset import apply_resets
from kgctl.client.admin.reset_plans import plan_resets
from kgctl.client.admin.reset_targets import Scope, Target
from kgctl.client.net.errors import Unreachable
from kgctl.client.net.steps import Call
from kgctl.exit_codes import exit_code_of
from kgctl.model.changes import ResetPlan
from kgctl.model.topic_partition import TopicPartition
from tests.harness.feeding import METADATA, cluster, metadata
from tests.harness.group_answers import by_timestamp, commits, describes, group, member
from tests.kgctl.client.admin.test_changes import (
    DESCRIBE_GROUPS,
    EVERYTHING,
    LEAVE_GROUP,
    LIST_OFFSETS,
    OFFSET_COMMIT,
    OFFSET_FETCH,
    ORDERS,
    Groups,
)

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


def test_a_refusal_after_a_lost_answer_does_not_say_that_nothing_was_committed() -> None:
    groups = Groups({KEY: 60})
    planned = plan(groups)

    def lost(call: Call) -> Any:
        answer = groups.commit(call)
        if groups.refusal:
            return answer
        groups.refusal = 25
        groups.feeder.answers[DESCRIBE_GROUPS] = describes(group("g", "Stable", member("m")))
        return Unreachable("the connection broke")

    groups.feeder.answers[OFFSET_COMMIT] = lost
    (row,) = applied(groups, planned).rows
    assert row.error is not None
    assert (row.status, groups.committed) == ("failed", {KEY: 10})
    assert "its offsets may have been changed" in row.error.message


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
    assert "committed 61 now, not 60 as when the plan was made" in done.error.message
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

    def drain(self, scope: Scope = EVERYTHING, target: Target = EARLIEST, *, known_only: bool = False) -> ResetPlan:
        self.notes: list[str] = []
        (planned,) = self.feeder.run(plan_resets(cluster(), ["g"], scope, target, known_only=known_only))
        return self.feeder.run(
            drain_and_reset(cluster(), planned, scope, target, known_only=known_only, note=self.notes.append)
        )


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
    assert [row.status for row in done.rows] == ["skipped"]
    assert groups.committed == {KEY: 60}
    assert groups.feeder.calls(OFFSET_COMMIT) == []


def test_draining_commits_once_when_a_partition_is_refused() -> None:
    groups = Draining(stubborn=1)
    groups.committed[TopicPartition("views", 0)] = 20

    def all_but_views(call: Call) -> Any:
        answer = groups.commit(call)
        for topic in answer.topics:
            if topic.name == "views":
                groups.committed[TopicPartition("views", 0)] = 20
                topic.partitions[0].error_code = 29
        return answer

    groups.feeder.answers[OFFSET_COMMIT] = all_but_views
    groups.feeder.pauses_allowed = 5
    done = groups.drain(target=Target("shift", -1))
    assert [(row.topic, row.status) for row in done.rows] == [("orders", "done"), ("views", "failed")]
    assert groups.committed == {KEY: 59, ("views", 0): 20}
    assert done.error is None


def test_draining_keeps_out_of_topics_for_which_a_listed_group_has_committed_nothing() -> None:
    groups = Draining(stubborn=1)
    done = groups.drain(Scope((("orders", None), ("views", None))), known_only=True)
    assert {row.topic for row in done.rows} == {"orders"}
    assert {topic for topic, _ in groups.committed} == {"orders"}


def test_draining_plans_again_when_the_offsets_have_moved() -> None:
    groups = Draining(stubborn=1)
    fetches = 0

    def moving(call: Call) -> Any:
        nonlocal fetches
        fetches += 1
        if fetches == 5:  # right before the commit
            groups.committed[KEY] = 70
        return commits({"g": groups.committed})(call)

    groups.feeder.answers[OFFSET_FETCH] = moving
    done = groups.drain(target=Target("shift", -1))
    assert [(row.old_offset, row.new_offset, row.status) for row in done.rows] == [(70, 69, "done")]


def test_draining_gives_up_without_a_change_when_another_client_commits() -> None:
    groups = Draining(stubborn=1)

    def moving(call: Call) -> Any:
        groups.committed[KEY] += 1
        return commits({"g": groups.committed})(call)

    groups.feeder.answers[OFFSET_FETCH] = moving
    groups.feeder.pauses_allowed = 5
    done = groups.drain()
    assert done.error is not None
    assert (done.error.name, exit_code_of(done.error)) == ("TIMED_OUT", 3)
    assert "another client commits" in done.error.message
    assert groups.feeder.calls(OFFSET_COMMIT) == []


def test_a_group_that_got_members_between_two_parts_of_its_commit_is_changed_in_part() -> None:
    count = PARTITIONS_PER_REQUEST + 1
    keys = {TopicPartition("many", number): 5 for number in range(count)}
    groups = Groups(keys)
    groups.feeder.answers[METADATA] = metadata({"many": dict.fromkeys(range(count), 1)})
    groups.feeder.answers[LIST_OFFSETS] = by_timestamp({-1: dict.fromkeys(keys, 9), -2: dict.fromkeys(keys, 1)})
    planned = plan(groups)

    def joined(call: Call) -> Any:
        answer = groups.commit(call)
        groups.refusal = 25
        groups.feeder.answers[DESCRIBE_GROUPS] = describes(group("g", "Stable", member("m")))
        return answer

    groups.feeder.answers[OFFSET_COMMIT] = joined
    done = applied(groups, planned)
    assert [row.status for row in done.rows] == ["done"] * PARTITIONS_PER_REQUEST + ["failed"]
    assert sorted(groups.committed.values()) == [1] * PARTITIONS_PER_REQUEST + [5]


@pytest.mark.parametrize("scope", [EVERYTHING, ORDERS])
def test_a_listed_group_does_not_take_topics_from_another_group(scope: Scope) -> None:
    groups = Groups({KEY: 60})
    groups.feeder.answers[OFFSET_FETCH] = commits({"g": {KEY: 60}, "source": {KEY: 30, ("views", 0): 3}})
    target = Target("group", source="source")
    (planned,) = groups.feeder.run(plan_resets(cluster(), ["g"], scope, target, known_only=True))
    assert [(row.topic, row.new_offset) for row in planned.rows] == [("orders", 30)]
