"""Plans and changes with scripted answers: resets and their limits, removals, deletions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from broker.protocol.consumer_protocol import ConsumerProtocolSubscription, encode_blob
from broker.protocol.messages.consumer_group_describe import ConsumerGroupDescribeResponse
from broker.protocol.messages.delete_groups import DeleteGroupsResponse
from broker.protocol.messages.describe_groups import DescribeGroupsResponse
from broker.protocol.messages.leave_group import LeaveGroupResponse
from broker.protocol.messages.offset_commit import OffsetCommitResponse
from kgctl.client.admin.removals import (
    delete_groups,
    plan_group_deletion,
    plan_member_removal,
    plan_offset_deletion,
    remove_members,
)
from kgctl.client.admin.reset import apply_reset, plan_reset
from kgctl.client.admin.reset_targets import Scope, Target
from kgctl.client.net.errors import NotFound, Precondition, Refused, Unreachable, Unsupported
from kgctl.client.net.steps import Call
from kgctl.exit_codes import exit_code_of
from kgctl.model.changes import GroupChange
from kgctl.model.topic_partition import TopicPartition
from tests.harness.feeding import FIND_COORDINATOR, METADATA, Feeder, cluster, coordinators, metadata
from tests.harness.group_answers import by_timestamp, commits, describes, group, lists, member

LIST_OFFSETS, OFFSET_COMMIT, OFFSET_FETCH, LEAVE_GROUP, DESCRIBE_GROUPS, LIST_GROUPS, DELETE_GROUPS = (
    2,
    8,
    9,
    13,
    15,
    16,
    42,
)
CONSUMER_GROUP_DESCRIBE = 69
NOON = 1_700_000_000_000
TOPICS = {"orders": {0: 1, 1: 1}, "views": {0: 1}}
LOGS: dict[int, dict[TopicPartition, int]] = {
    -2: {("orders", 0): 10, ("orders", 1): 0, ("views", 0): 0},
    -1: {("orders", 0): 100, ("orders", 1): 0, ("views", 0): 50},
    NOON: {("orders", 0): 40},
}
EVERYTHING = Scope(all_topics=True)
ORDERS = Scope((("orders", None),))


def wanting(topic: str) -> DescribeGroupsResponse.Member:
    found = member("m")
    found.member_metadata = encode_blob(ConsumerProtocolSubscription(topics=[topic]))
    return found


class Groups:
    """A coordinator that keeps what is committed, for one group `g`."""

    def __init__(self, committed: dict[TopicPartition, int], state: str = "Empty", refusal: int = 0) -> None:
        self.committed = dict(committed)
        self.refusal = refusal
        members = (member("m", {"orders": [0]}),) if state == "Stable" else ()
        self.feeder = Feeder(
            {
                METADATA: metadata(TOPICS),
                FIND_COORDINATOR: coordinators(lambda _: 1),
                LIST_OFFSETS: by_timestamp(LOGS),
                LIST_GROUPS: lists(),
                DESCRIBE_GROUPS: describes(*([group("g", state, *members)] if state else [])),
                OFFSET_FETCH: lambda call: commits({"g": self.committed})(call),
                OFFSET_COMMIT: self.commit,
            }
        )
        del self.feeder.offered[10000]

    def commit(self, call: Call) -> OffsetCommitResponse:
        request: Any = call.request
        rows = []
        for topic in request.topics:
            for row in topic.partitions:
                if not self.refusal:
                    self.committed[topic.name, row.partition_index] = row.committed_offset
            done = [
                OffsetCommitResponse.Partition(partition_index=row.partition_index, error_code=self.refusal)
                for row in topic.partitions
            ]
            rows.append(OffsetCommitResponse.Topic(name=topic.name, partitions=done))
        return OffsetCommitResponse(topics=rows)

    def plan(self, scope: Scope, target: Target) -> Any:
        return self.feeder.run(plan_reset(cluster(), "g", scope, target))

    def apply(self, plan: Any) -> Any:
        return self.feeder.run(apply_reset(cluster(), plan))


# --- where each strategy goes: the log of orders-0 is [10, 100), 60 is committed ---


@pytest.mark.parametrize(
    ("target", "new", "clamped"),
    [
        (Target("earliest"), 10, False),
        (Target("latest"), 100, False),
        (Target("current"), 60, False),
        (Target("timestamp", NOON), 40, False),
        (Target("offset", 10), 10, False),
        (Target("offset", 9), 10, True),
        (Target("offset", 100), 100, False),
        (Target("offset", 101), 100, True),
        (Target("shift", 40), 100, False),
        (Target("shift", 41), 100, True),
        (Target("shift", -50), 10, False),
        (Target("shift", -51), 10, True),
    ],
)
def test_each_strategy_has_its_target_and_never_leaves_the_log(target: Target, new: int, clamped: bool) -> None:
    plan = Groups({("orders", 0): 60}).plan(EVERYTHING, target)
    (row,) = plan.rows
    assert (row.old_offset, row.new_offset, row.delta, row.status, row.error) == (60, new, new - 60, "planned", None)
    assert bool(row.note and "clamped" in row.note) == clamped


def test_a_file_names_its_partitions_and_is_clamped_too() -> None:
    plan = Groups({("orders", 0): 60}).plan(
        Scope(), Target("file", offsets={TopicPartition("orders", 0): 5, TopicPartition("views", 0): 7})
    )
    assert [(row.topic, row.old_offset, row.new_offset, row.delta) for row in plan.rows] == [
        ("orders", 60, 10, -50),
        ("views", None, 7, None),
    ]


def test_a_time_after_the_last_record_means_the_end_with_a_note() -> None:
    plan = Groups({("views", 0): 60}).plan(EVERYTHING, Target("timestamp", NOON))
    assert [(row.new_offset, row.note) for row in plan.rows] == [(50, "no record at or after that time: latest")]


def test_current_keeps_a_committed_offset_that_the_log_does_not_have() -> None:
    plan = Groups({("orders", 0): 500, ("orders", 1): 7, ("views", 0): 20}).plan(EVERYTHING, Target("current"))
    assert [(row.topic, row.partition, row.new_offset, row.delta, row.note) for row in plan.rows] == [
        ("orders", 0, 500, 0, "500 is after the end of the log: kept"),
        ("orders", 1, 7, 0, "7 is after the end of the log: kept"),
        ("views", 0, 20, 0, None),
    ]


def test_current_keeps_the_committed_offset_of_a_deleted_topic() -> None:
    (row,) = Groups({("gone", 0): 3}).plan(EVERYTHING, Target("current")).rows
    assert (row.new_offset, row.error) == (3, None)


def test_a_refused_reset_advises_to_evict_members_of_classic_groups_only() -> None:
    groups = Groups({("orders", 0): 60}, "Stable")
    with pytest.raises(
        Precondition, match="Stop its consumers, or evict them with `kgctl groups reset-offsets --drain`"
    ):
        groups.plan(EVERYTHING, Target("earliest"))
    groups.feeder.answers |= {
        LIST_GROUPS: lists(g="consumer"),
        CONSUMER_GROUP_DESCRIBE: lambda _: ConsumerGroupDescribeResponse(
            groups=[
                ConsumerGroupDescribeResponse.Group(
                    group_id="g",
                    group_state="Stable",
                    group_epoch=1,
                    assignment_epoch=1,
                    assignor_name="uniform",
                    members=[],
                )
            ]
        ),
    }
    with pytest.raises(Precondition, match=r"the current state is Stable\. Stop its consumers\.$"):
        groups.plan(EVERYTHING, Target("earliest"))


def test_deleting_offsets_of_a_missing_topic_or_partition_says_that_it_does_not_exist() -> None:
    groups = Groups({("orders", 0): 60})
    scope = Scope((("nope", None), ("orders", (0, 1, 9)), ("views", None)))
    rows = groups.feeder.run(plan_offset_deletion(cluster(), "g", scope))
    assert [(row.topic, row.partition, str(row.error)) for row in rows] == [
        ("nope", None, "UNKNOWN_TOPIC_OR_PARTITION"),
        ("orders", 0, "None"),
        ("orders", 1, "NOT_FOUND"),
        ("orders", 9, "UNKNOWN_TOPIC_OR_PARTITION"),
        ("views", None, "NOT_FOUND"),
    ]


def test_current_means_the_end_where_nothing_is_committed() -> None:
    plan = Groups({("orders", 0): 60}).plan(Scope((("orders", (0,)), ("views", None))), Target("current"))
    assert [(row.new_offset, row.note) for row in plan.rows] == [(60, None), (50, "nothing committed: latest")]


def test_a_shift_needs_a_committed_offset() -> None:
    plan = Groups({}).plan(Scope((("views", None),)), Target("shift", -1))
    (row,) = plan.rows
    assert str(row.error) == "NO_COMMITTED_OFFSET"
    assert row.error.message == "Cannot shift offset for partition views-0 since there is no current committed offset"
    assert plan.failed


# --- scope ---


def test_all_topics_means_those_with_commits_and_a_topic_means_all_its_partitions() -> None:
    groups = Groups({("orders", 0): 60, ("views", 0): 1})
    assert [(row.topic, row.partition) for row in groups.plan(EVERYTHING, Target("latest")).rows] == [
        ("orders", 0),
        ("views", 0),
    ]
    assert [(row.topic, row.partition) for row in groups.plan(ORDERS, Target("latest")).rows] == [
        ("orders", 0),
        ("orders", 1),
    ]
    assert [(row.topic, row.partition) for row in groups.plan(Scope((("orders", (1,)),)), Target("latest")).rows] == [
        ("orders", 1)
    ]


def test_a_missing_topic_or_partition_is_a_row_with_its_error() -> None:
    plan = Groups({}).plan(Scope((("orders", (1, 2)), ("nope", None))), Target("earliest"))
    assert [(row.topic, row.partition, str(row.error)) for row in plan.rows] == [
        ("nope", None, "UNKNOWN_TOPIC_OR_PARTITION"),
        ("orders", 1, "None"),
        ("orders", 2, "UNKNOWN_TOPIC_OR_PARTITION"),
    ]


# --- which groups ---


@pytest.mark.parametrize("state", ["Stable", "PreparingRebalance", "CompletingRebalance"])
def test_a_group_that_is_not_empty_is_refused_before_anything_is_planned(state: str) -> None:
    with pytest.raises(Precondition, match=f"group 'g' is inactive, but the current state is {state}") as caught:
        Groups({("orders", 0): 60}, state).plan(EVERYTHING, Target("earliest"))
    assert exit_code_of(caught.value) == 6


def test_a_missing_group_gets_offsets_for_named_topics_only() -> None:
    groups = Groups({}, state="")
    assert groups.plan(ORDERS, Target("earliest")).state is None
    with pytest.raises(NotFound):
        groups.plan(EVERYTHING, Target("earliest"))


# --- execution ---


def test_an_execution_commits_as_a_simple_consumer_and_reads_the_offsets_back() -> None:
    groups = Groups({("orders", 0): 60})
    done = groups.apply(groups.plan(ORDERS, Target("earliest")))
    assert [(row.partition, row.new_offset, row.status) for row in done.rows] == [(0, 10, "done"), (1, 0, "done")]
    assert groups.committed == {("orders", 0): 10, ("orders", 1): 0}
    (call,) = groups.feeder.calls(OFFSET_COMMIT)
    assert (call.request.generation_id_or_member_epoch, call.request.member_id) == (-1, "")  # type: ignore[attr-defined]


def test_a_plan_with_a_failed_row_changes_nothing() -> None:
    groups = Groups({("orders", 0): 60})
    plan = groups.plan(Scope((("orders", (0, 9)),)), Target("earliest"))
    assert [(row.partition, row.status) for row in plan.rows] == [(0, "planned"), (9, "failed")]
    assert [(row.partition, row.status) for row in groups.apply(plan).rows] == [(0, "skipped"), (9, "failed")]
    assert groups.feeder.calls(OFFSET_COMMIT) == []


def test_an_execution_fails_if_members_joined_after_the_plan() -> None:
    groups = Groups({("orders", 0): 60})
    plan = groups.plan(EVERYTHING, Target("earliest"))
    groups.refusal, groups.feeder.answers[DESCRIBE_GROUPS] = 25, describes(group("g", "Stable"))
    with pytest.raises(Precondition, match="current state is Stable"):
        groups.apply(plan)


def test_an_offset_that_reads_back_differently_is_a_failure() -> None:
    groups = Groups({("orders", 0): 60})
    plan = groups.plan(EVERYTHING, Target("earliest"))

    def commit_as_another_client_does(call: Call) -> OffsetCommitResponse:
        answer = groups.commit(call)
        groups.committed = {TopicPartition("orders", 0): 61}
        return answer

    groups.feeder.answers[OFFSET_COMMIT] = commit_as_another_client_does
    (row,) = groups.apply(plan).rows
    assert (row.status, str(row.error)) == ("failed", "READ_BACK_DIFFERS")


def test_a_partition_that_the_coordinator_refuses_is_one_failed_row() -> None:
    groups = Groups({("orders", 0): 60, ("views", 0): 1})
    plan = groups.plan(EVERYTHING, Target("earliest"))

    def refuse_views(call: Call) -> OffsetCommitResponse:
        answer = Groups.commit(groups, call)
        for topic in answer.topics:
            if topic.name == "views":
                topic.partitions[0].error_code = 29
        return answer

    groups.feeder.answers[OFFSET_COMMIT] = refuse_views
    assert [(row.topic, row.status, str(row.error)) for row in groups.apply(plan).rows] == [
        ("orders", "done", "None"),
        ("views", "failed", "TOPIC_AUTHORIZATION_FAILED"),
    ]


# --- deletion of groups and offsets ---


def test_a_deletion_is_planned_for_empty_groups_and_refused_for_the_others() -> None:
    fed = Groups({}).feeder
    fed.answers[DESCRIBE_GROUPS] = describes(group("empty", "Empty"), group("live", "Stable"))
    rows = fed.run(plan_group_deletion(cluster(), ["live", "empty", "absent"]))
    assert [(row.group, row.status, str(row.error)) for row in rows] == [
        ("absent", "failed", "NOT_FOUND"),
        ("empty", "planned", "None"),
        ("live", "failed", "NON_EMPTY_GROUP"),
    ]


def test_a_deletion_that_the_coordinator_refuses_is_a_row_with_its_error() -> None:
    fed = Groups({}).feeder
    fed.answers[DESCRIBE_GROUPS] = describes(group("a", "Empty"), group("b", "Empty"))
    fed.answers[DELETE_GROUPS] = lambda call: DeleteGroupsResponse(
        results=[
            DeleteGroupsResponse.Result(group_id=name, error_code=68 if name == "b" else 0)
            for name in call.request.groups_names
        ]  # type: ignore[attr-defined]
    )
    known = cluster()
    rows = fed.run(delete_groups(known, fed.run(plan_group_deletion(known, ["a", "b"]))))
    assert [(row.group, row.status, str(row.error)) for row in rows] == [
        ("a", "done", "None"),
        ("b", "failed", "NON_EMPTY_GROUP"),
    ]


def test_the_offsets_to_delete_are_the_committed_ones() -> None:
    fed = Groups({("orders", 0): 5, ("orders", 1): 6, ("views", 0): 7}).feeder
    rows = fed.run(plan_offset_deletion(cluster(), "g", Scope((("orders", None), ("views", (0, 3)), ("nope", None)))))
    assert [(row.topic, row.partition, row.old_offset, str(row.error)) for row in rows] == [
        ("nope", None, None, "UNKNOWN_TOPIC_OR_PARTITION"),
        ("orders", 0, 5, "None"),
        ("orders", 1, 6, "None"),
        ("views", 0, 7, "None"),
        ("views", 3, None, "UNKNOWN_TOPIC_OR_PARTITION"),
    ]


# --- removal of members ---


def removal_feeder() -> Feeder:
    fed = Groups({}).feeder
    fed.answers[DESCRIBE_GROUPS] = describes(
        group("g", "Stable", member("m-1", {}), member("m-2", {}, instance="i-2")), group("none", "Empty")
    )
    fed.answers[LEAVE_GROUP] = lambda call: LeaveGroupResponse(
        members=[
            LeaveGroupResponse.Member(member_id=row.member_id, group_instance_id=row.group_instance_id)
            for row in call.request.members  # type: ignore[attr-defined]
        ]
    )
    return fed


@pytest.mark.parametrize(
    ("live", "error"),
    [
        (group("g", "Stable", wanting("orders")), "GROUP_SUBSCRIBED_TO_TOPIC"),
        (group("g", "Stable", wanting("views")), "None"),
        # Kafka reports no subscriptions during a rebalance, so only the execution can show the error.
        (group("g", "PreparingRebalance", member("m")), "None"),
        (group("g", "Stable", member("m", b"x"), protocol_type="connect"), "NON_EMPTY_GROUP"),
        (group("g", "Empty", protocol_type="connect"), "None"),
    ],
)
def test_an_offset_whose_deletion_will_be_refused_is_a_row_with_its_error(live: Any, error: str) -> None:
    fed = Groups({("orders", 0): 5}).feeder
    fed.answers[DESCRIBE_GROUPS] = describes(live)
    (row,) = fed.run(plan_offset_deletion(cluster(), "g", ORDERS))
    assert str(row.error) == error
    assert row.status == ("planned" if error == "None" else "failed")


def test_static_members_are_removed_by_instance_id_and_others_by_member_id() -> None:
    fed, known = removal_feeder(), cluster()
    plan = fed.run(plan_member_removal(known, "g", everyone=True))
    rows = fed.run(remove_members(known, "g", plan, "deploy"))
    assert [(row.consumer_id, row.group_instance_id, row.status) for row in rows] == [
        ("m-1", None, "done"),
        ("m-2", "i-2", "done"),
    ]
    (call,) = fed.calls(LEAVE_GROUP)
    sent: Any = call.request
    assert [(row.member_id, row.group_instance_id) for row in sent.members] == [("m-1", None), ("", "i-2")]
    assert {row.reason for row in sent.members} == {"member was removed by an admin: deploy"}


def test_only_named_members_are_removed_and_unknown_ids_are_rows_with_errors() -> None:
    fed, known = removal_feeder(), cluster()
    plan = fed.run(plan_member_removal(known, "g", ["m-1", "m-9"], ["i-9"]))
    assert [(row.consumer_id, row.group_instance_id, str(row.error)) for row in plan] == [
        ("m-1", None, "None"),
        ("m-9", None, "NOT_FOUND"),
        ("", "i-9", "NOT_FOUND"),
    ]
    fed.run(remove_members(known, "g", plan))
    assert [row.member_id for call in fed.calls(LEAVE_GROUP) for row in call.request.members] == ["m-1"]  # type: ignore[attr-defined]


def test_an_empty_removal_sends_no_request() -> None:
    fed, known = removal_feeder(), cluster()
    assert fed.run(plan_member_removal(known, "none", everyone=True)) == []
    assert fed.run(remove_members(known, "none", [])) == []
    assert fed.calls(LEAVE_GROUP) == []


def test_a_member_that_left_after_the_plan_is_a_row_with_its_error() -> None:
    fed, known = removal_feeder(), cluster()
    fed.answers[LEAVE_GROUP] = lambda call: LeaveGroupResponse(
        members=[
            LeaveGroupResponse.Member(
                member_id=row.member_id, group_instance_id=row.group_instance_id, error_code=25 if row.member_id else 0
            )
            for row in call.request.members  # type: ignore[attr-defined]
        ]
    )
    rows = fed.run(remove_members(known, "g", fed.run(plan_member_removal(known, "g", everyone=True))))
    assert [str(row.error) for row in rows] == ["UNKNOWN_MEMBER_ID", "None"]


def left(errors: dict[str, int]) -> LeaveGroupResponse:
    """What became of each member, by member id or instance id."""
    return LeaveGroupResponse(
        members=[
            LeaveGroupResponse.Member(
                member_id=name if name.startswith("m") else "",
                group_instance_id=name if name.startswith("i") else None,
                error_code=code,
            )
            for name, code in errors.items()
        ]
    )


def test_a_member_missing_from_the_answer_is_a_row_with_an_error() -> None:
    fed, known = removal_feeder(), cluster()
    fed.answers[LEAVE_GROUP] = lambda call: left({"i-2": 0})
    rows = fed.run(remove_members(known, "g", fed.run(plan_member_removal(known, "g", everyone=True))))
    assert [(row.status, str(row.error)) for row in rows] == [("failed", "NO_ANSWER"), ("done", "None")]


def test_a_static_member_is_found_in_an_answer_that_names_its_member_id_too() -> None:
    fed, known = removal_feeder(), cluster()
    fed.answers[LEAVE_GROUP] = lambda call: LeaveGroupResponse(
        members=[LeaveGroupResponse.Member(member_id="m-2", group_instance_id="i-2", error_code=82)]
    )
    (row,) = fed.run(remove_members(known, "g", fed.run(plan_member_removal(known, "g", instances=["i-2"]))))
    assert str(row.error) == "FENCED_INSTANCE_ID"


@pytest.mark.parametrize("second", [left({"m-1": 25, "i-2": 0}), LeaveGroupResponse(error_code=25, members=[])])
def test_members_that_are_gone_after_a_lost_answer_count_as_removed(second: LeaveGroupResponse) -> None:
    fed, known = removal_feeder(), cluster()
    answers: Iterator[Any] = iter([Unreachable("the connection broke"), second])
    fed.answers[LEAVE_GROUP] = lambda call: next(answers)
    rows = fed.run(remove_members(known, "g", fed.run(plan_member_removal(known, "g", everyone=True))))
    assert [(row.status, row.error) for row in rows] == [("done", None)] * 2


@pytest.mark.parametrize(
    ("first", "error"),
    [
        (Unreachable("the connection broke"), "None"),
        (Refused("nobody listens"), "GROUP_ID_NOT_FOUND"),
        (16, "GROUP_ID_NOT_FOUND"),
    ],
)
def test_a_group_that_is_gone_after_a_lost_answer_counts_as_deleted(first: Any, error: str) -> None:
    def deleted(code: int) -> DeleteGroupsResponse:
        return DeleteGroupsResponse(results=[DeleteGroupsResponse.Result(group_id="g", error_code=code)])

    answers: Iterator[Any] = iter([deleted(first) if isinstance(first, int) else first, deleted(69)])
    fed = Groups({}).feeder
    fed.answers[DELETE_GROUPS] = lambda call: next(answers)
    (row,) = fed.run(delete_groups(cluster(), [GroupChange("g", "Empty")]))
    assert str(row.error) == error


def test_a_partition_missing_from_the_answer_to_a_commit_is_a_row_with_an_error() -> None:
    groups = Groups({("orders", 0): 60, ("orders", 1): 0, ("views", 0): 5})
    plan = groups.plan(EVERYTHING, Target("earliest"))
    groups.feeder.answers[OFFSET_COMMIT] = lambda call: OffsetCommitResponse(topics=groups.commit(call).topics[:1])
    found = {(row.topic, row.partition): (row.status, str(row.error)) for row in groups.apply(plan).rows}
    assert found["orders", 0] == ("done", "None")
    assert found["views", 0] == ("failed", "NO_ANSWER")


def test_a_broker_without_LeaveGroup_v3_gets_no_request() -> None:
    fed, known = removal_feeder(), cluster()
    fed.offered[LEAVE_GROUP] = (0, 2)
    plan = fed.run(plan_member_removal(known, "g", everyone=True))
    with pytest.raises(Unsupported):
        fed.run(remove_members(known, "g", plan))
    assert fed.calls(LEAVE_GROUP) == []


def test_a_group_that_does_not_exist_has_no_members_to_remove() -> None:
    with pytest.raises(NotFound):
        removal_feeder().run(plan_member_removal(cluster(), "absent", everyone=True))
