"""Listing and describing groups, with scripted answers."""

from __future__ import annotations

from typing import Any

import pytest

from broker.protocol.messages.consumer_group_describe import ConsumerGroupDescribeResponse
from broker.protocol.messages.describe_group_details import DescribeGroupDetailsResponse
from broker.protocol.messages.list_groups import ListGroupsResponse
from kgctl.client.admin.groups import describe_groups, list_groups
from kgctl.client.net.errors import Unreachable, Unsupported
from kgctl.client.net.steps import Call
from kgctl.exit_codes import exit_code_of
from kgctl.model.groups import GroupListing, TopicPartitions
from tests.harness.feeding import FIND_COORDINATOR, METADATA, Feeder, cluster, coordinators, endpoint, metadata
from tests.harness.group_answers import commits, describes, ends, group, lists, member

LIST_OFFSETS, OFFSET_FETCH, DESCRIBE_GROUPS, LIST_GROUPS, CONSUMER_GROUP_DESCRIBE, DETAILS = 2, 9, 15, 16, 69, 10000
TOPICS = {"orders": {0: 1, 1: 1, 2: 2}, "views": {0: 2}}
LOG_ENDS = {("orders", 0): 100, ("orders", 1): 200, ("orders", 2): 300, ("views", 0): 50}


def feeder(**answers: Any) -> Feeder:
    """Two nodes; groups ending in 2 have the second one as their coordinator."""
    made = Feeder(
        {
            METADATA: metadata(TOPICS, nodes=(1, 2)),
            FIND_COORDINATOR: coordinators(lambda name: 2 if name.endswith("2") else 1),
            LIST_OFFSETS: ends(LOG_ENDS),
            LIST_GROUPS: answers.pop("lists", lists()),
            DESCRIBE_GROUPS: describes(*answers.pop("groups", ())),
            OFFSET_FETCH: commits(answers.pop("commits", {})),
        }
    )
    del made.offered[DETAILS]
    assert not answers
    return made


# --- describe: offsets ---


def test_lag_is_log_end_minus_committed_offset_and_unknown_without_a_commit() -> None:
    fed = feeder(groups=[group("g", "Stable", member("m", {"orders": [0, 1]}))], commits={"g": {("orders", 0): 90}})
    (found,) = fed.run(describe_groups(cluster(), ["g"]))
    assert [(row.partition, row.current_offset, row.log_end_offset, row.lag) for row in found.partitions] == [
        (0, 90, 100, 10),
        (1, None, 200, None),
    ]
    assert found.total_lag == 10


def test_a_commit_beyond_the_end_is_a_negative_lag() -> None:
    fed = feeder(groups=[group("g", "Empty")], commits={"g": {("orders", 0): 101, ("orders", 1): 200}})
    (found,) = fed.run(describe_groups(cluster(), ["g"]))
    assert [row.lag for row in found.partitions] == [-1, 0]
    assert found.total_lag == 0


def test_two_groups_on_one_partition_keep_their_own_offsets_and_members() -> None:
    fed = feeder(
        groups=[
            group("a1", "Stable", member("ma", {"orders": [0]})),
            group("b1", "Stable", member("mb", {"orders": [0]})),
            group("c2", "Empty"),
        ],
        commits={"a1": {("orders", 0): 10}, "b1": {("orders", 0): 20}, "c2": {("orders", 0): 30}},
    )
    found = fed.run(describe_groups(cluster(), ["c2", "b1", "a1"]))
    rows = [
        (row.group, row.current_offset, row.lag, row.consumer_id)
        for description in found
        for row in description.partitions
    ]
    assert rows == [("a1", 10, 90, "ma"), ("b1", 20, 80, "mb"), ("c2", 30, 70, None)]


def test_many_groups_need_one_request_of_each_kind_per_node() -> None:
    names = [f"g{number}-{node}" for number in range(50) for node in (1, 2)]
    fed = feeder(
        groups=[group(name, "Empty") for name in names],
        commits={name: {("orders", 0): 1, ("views", 0): 2} for name in names},
    )
    assert len(fed.run(describe_groups(cluster(), names))) == 100
    for api_key in (DESCRIBE_GROUPS, OFFSET_FETCH, LIST_OFFSETS):
        assert sorted(call.endpoint for call in fed.calls(api_key)) == [endpoint(1), endpoint(2)]
    assert len(fed.calls(FIND_COORDINATOR)) == 1


def test_a_coordinator_before_kafka_3_is_asked_for_one_group_at_a_time() -> None:
    fed = feeder(
        groups=[group("a", "Empty"), group("b", "Empty")], commits={"a": {("orders", 0): 1}, "b": {("orders", 0): 2}}
    )
    fed.offered[OFFSET_FETCH] = (1, 7)
    found = fed.run(describe_groups(cluster(), ["a", "b"]))
    assert [row.current_offset for description in found for row in description.partitions] == [1, 2]
    assert [(call.version, call.request.group_id) for call in fed.calls(OFFSET_FETCH)] == [(7, "a"), (7, "b")]  # type: ignore[attr-defined]


def test_rows_are_sorted_by_members_with_most_partitions_and_then_unowned_partitions() -> None:
    fed = feeder(
        groups=[group("g", "Stable", member("a", {"views": [0]}), member("z", {"orders": [2, 1]}), member("idle", {}))],
        commits={"g": {("orders", 0): 5, ("views", 0): 5}},
    )
    (found,) = fed.run(describe_groups(cluster(), ["g"]))
    assert [(row.consumer_id, row.topic, row.partition) for row in found.partitions] == [
        ("z", "orders", 1),
        ("z", "orders", 2),
        ("a", "views", 0),
        (None, "orders", 0),
    ]


def test_a_deleted_topic_is_one_row_with_an_error() -> None:
    fed = feeder(groups=[group("g", "Empty")], commits={"g": {("gone", 0): 5, ("orders", 0): 5}})
    (found,) = fed.run(describe_groups(cluster(), ["g"]))
    assert [(row.topic, row.lag, str(row.error)) for row in found.partitions] == [
        ("gone", None, "UNKNOWN_TOPIC_OR_PARTITION"),
        ("orders", 95, "None"),
    ]


def test_an_offset_that_the_coordinator_refuses_is_a_row_with_its_error() -> None:
    fed = feeder(groups=[group("g", "Empty")], commits={"g": {("orders", 0): -1 - 29, ("orders", 1): 5}})
    (found,) = fed.run(describe_groups(cluster(), ["g"]))
    assert [(row.current_offset, str(row.error)) for row in found.partitions] == [
        (None, "TOPIC_AUTHORIZATION_FAILED"),
        (5, "None"),
    ]


# --- describe: groups and members ---


@pytest.mark.parametrize("version", [5, 6])
def test_a_missing_group_is_a_description_with_an_error_beside_the_others(version: int) -> None:
    fed = feeder(groups=[group("there", "Empty")])
    fed.offered[DESCRIBE_GROUPS] = (0, version)
    absent, there = fed.run(describe_groups(cluster(), ["there", "absent"]))
    assert absent.error is not None
    assert (absent.error.message, exit_code_of(absent.error)) == ("Consumer group 'absent' does not exist.", 5)
    assert (there.state, there.error) == ("Empty", None)


def test_a_coordinator_that_is_down_affects_only_its_groups() -> None:
    fed = feeder(groups=[group("a1", "Empty")], commits={"a1": {("orders", 0): 1}})
    fed.down = {endpoint(2)}
    one, two = fed.run(describe_groups(cluster(), ["a1", "b2"]))
    assert one.error is None
    assert str(two.error) == "UNREACHABLE"


def test_members_have_their_assignments_by_topic_in_order() -> None:
    fed = feeder(
        groups=[group("g", "Stable", member("b", {"views": [0], "orders": [2, 0]}, instance="i-1"), member("a", {}))]
    )
    (found,) = fed.run(describe_groups(cluster(), ["g"], offsets=False))
    assert [(row.consumer_id, row.group_instance_id, row.partitions) for row in found.members] == [
        ("a", None, 0),
        ("b", "i-1", 3),
    ]
    assert found.members[1].current_assignment == (TopicPartitions("orders", (0, 2)), TopicPartitions("views", (0,)))
    assert fed.calls(OFFSET_FETCH) == []


def test_an_assignment_of_another_protocol_is_unknown_but_no_error() -> None:
    fed = feeder(
        groups=[
            group("connect", "Stable", member("m", b"\0\1what"), protocol_type="connect"),
            group("odd", "Stable", member("m", b"\0")),
        ]
    )
    found = fed.run(describe_groups(cluster(), ["connect", "odd"]))
    assert [(row.error, row.members[0].partitions) for row in found] == [(None, None), (None, None)]


def test_a_consumer_group_is_described_with_its_epochs() -> None:
    def newer(call: Call) -> ConsumerGroupDescribeResponse:
        owned = ConsumerGroupDescribeResponse.Assignment(
            topic_partitions=[
                ConsumerGroupDescribeResponse.TopicPartitions(
                    topic_id=bytes(16), topic_name="orders", partitions=[1, 0]
                )
            ]
        )
        one = ConsumerGroupDescribeResponse.Member(
            member_id="m",
            member_epoch=7,
            client_id="app",
            client_host="/1",
            subscribed_topic_names=[],
            assignment=owned,
            target_assignment=owned,
        )
        row = ConsumerGroupDescribeResponse.Group(
            group_id="new",
            group_state="Stable",
            group_epoch=8,
            assignment_epoch=7,
            assignor_name="uniform",
            members=[one],
        )
        return ConsumerGroupDescribeResponse(groups=[row])

    fed = feeder(lists=lists(new="consumer"), commits={"new": {("orders", 0): 1}})
    fed.answers[CONSUMER_GROUP_DESCRIBE] = newer
    (found,) = fed.run(describe_groups(cluster(), ["new"]))
    assert (found.type, found.state, found.assignment_strategy, found.group_epoch, found.error) == (
        "Consumer",
        "Stable",
        "uniform",
        8,
        None,
    )
    assert [(row.current_epoch, row.partitions, row.generation) for row in found.members] == [(7, 2, None)]
    assert [(row.partition, row.lag) for row in found.partitions] == [(0, 99), (1, None)]


def test_a_listed_group_is_described_with_the_request_of_its_type_only() -> None:
    fed, known = feeder(groups=[group("old", "Empty")], lists=lists(new="consumer", old="consumer")), cluster()
    fed.answers[LIST_GROUPS] = lambda _: ListGroupsResponse(
        groups=[
            ListGroupsResponse.Group(
                group_id="new", protocol_type="consumer", group_state="Empty", group_type="consumer"
            ),
            ListGroupsResponse.Group(
                group_id="old", protocol_type="consumer", group_state="Empty", group_type="classic"
            ),
        ]
    )
    fed.answers[CONSUMER_GROUP_DESCRIBE] = empty_consumer_group
    fed.run(list_groups(known))
    listings = len(fed.calls(LIST_GROUPS))
    found = fed.run(describe_groups(known, ["new", "old"], offsets=False))
    assert [(row.group, row.type, row.error) for row in found] == [("new", "Consumer", None), ("old", "Classic", None)]
    assert [call.request.groups for call in fed.calls(DESCRIBE_GROUPS)] == [["old"]]  # type: ignore[attr-defined]
    assert [call.request.group_ids for call in fed.calls(CONSUMER_GROUP_DESCRIBE)] == [["new"]]  # type: ignore[attr-defined]
    assert len(fed.calls(LIST_GROUPS)) == listings


def test_a_group_that_was_recreated_with_another_type_is_found() -> None:
    fed, known = feeder(groups=[group("g", "Empty")], lists=lists(g="classic")), cluster()
    assert fed.run(describe_groups(known, ["g"], offsets=False))[0].type == "Classic"
    fed.answers |= {
        DESCRIBE_GROUPS: describes(),
        LIST_GROUPS: lists(g="consumer"),
        CONSUMER_GROUP_DESCRIBE: empty_consumer_group,
    }
    (found,) = fed.run(describe_groups(known, ["g"], offsets=False))
    assert (found.type, found.error) == ("Consumer", None)


def empty_consumer_group(call: Call) -> ConsumerGroupDescribeResponse:
    names = call.request.group_ids  # type: ignore[attr-defined]
    row = ConsumerGroupDescribeResponse.Group
    return ConsumerGroupDescribeResponse(
        groups=[
            row(
                group_id=name,
                group_state="Empty",
                group_epoch=1,
                assignment_epoch=1,
                assignor_name="uniform",
                members=[],
            )
            for name in names
        ]
    )


def test_a_group_of_a_type_that_cannot_be_described_is_a_row_with_its_type() -> None:
    (found,) = feeder(lists=lists(flow="streams")).run(describe_groups(cluster(), ["flow"]))
    assert (found.type, found.state, found.error, found.members) == ("Streams", "Stable", None, ())


# --- generation ---


def details(**generations: int) -> Any:
    def answer(call: Call) -> DescribeGroupDetailsResponse:
        one = DescribeGroupDetailsResponse.Member(
            member_id="m",
            client_id="",
            client_host="",
            session_timeout_ms=10,
            rebalance_timeout_ms=20,
            heartbeat_age_ms=30,
            phase="stable",
        )
        rows = [
            DescribeGroupDetailsResponse.Group(
                group_id=name,
                generation_id=generations.get(name, 0),
                leader="m",
                members=[one],
                error_code=0 if name in generations else 69,
            )
            for name in call.request.groups  # type: ignore[attr-defined]
        ]
        return DescribeGroupDetailsResponse(groups=rows)

    return answer


def test_the_generation_is_known_where_the_broker_offers_it() -> None:
    fed = feeder(groups=[group("g", "Stable", member("m", {}))])
    fed.offered[DETAILS], fed.answers[DETAILS] = (0, 0), details(g=7)
    (found,) = fed.run(describe_groups(cluster(), ["g"]))
    assert (found.generation, found.leader) == (7, "m")
    assert [
        (m.generation, m.leader, m.session_timeout_ms, m.rebalance_timeout_ms, m.heartbeat_age_ms, m.phase)
        for m in found.members
    ] == [(7, True, 10, 20, 30, "stable")]


def test_the_generation_is_unknown_where_the_broker_lacks_the_request_or_refuses_it() -> None:
    for refuse in (False, True):
        fed = feeder(groups=[group("g", "Stable", member("m", {}))])
        if refuse:
            fed.offered[DETAILS], fed.answers[DETAILS] = (0, 0), details()
        (found,) = fed.run(describe_groups(cluster(), ["g"]))
        assert (found.generation, found.error, found.members[0].generation) == (None, None, None)


# --- list ---


def test_groups_of_all_brokers_are_listed_once_and_by_name() -> None:
    rows = {endpoint(1): {"b": "classic", "a": "consumer"}, endpoint(2): {"c": "share", "b": "classic"}}
    fed = feeder(lists=lambda call: lists(**rows[call.endpoint])(call))
    found = fed.run(list_groups(cluster()))
    assert [(row.group, row.type) for row in found.groups] == [("a", "Consumer"), ("b", "Classic"), ("c", "Share")]
    assert found.errors == ()


def test_an_old_broker_lists_groups_without_state_as_classic() -> None:
    fed = feeder(
        lists=lambda call: ListGroupsResponse(groups=[ListGroupsResponse.Group(group_id="g", protocol_type="")])
    )
    fed.offered[LIST_GROUPS] = (0, 2)
    assert fed.run(list_groups(cluster())).groups == (GroupListing("g", "Classic", None, None),)


def test_a_broker_that_is_down_is_an_error_beside_the_groups_of_the_others() -> None:
    fed = feeder(lists=lists(a="classic"))
    fed.down = {endpoint(2)}
    found = fed.run(list_groups(cluster()))
    assert [row.group for row in found.groups] == ["a"]
    assert [error.name for error in found.errors] == ["UNREACHABLE"]


def test_a_listing_fails_if_no_broker_answers() -> None:
    fed = feeder(lists=lambda call: Unreachable("gone"))
    with pytest.raises(Unreachable):
        fed.run(list_groups(cluster()))


@pytest.mark.parametrize(("filters", "needed"), [({"states": ["Empty"]}, 4), ({"types": ["Classic"]}, 5)])
def test_a_filter_is_sent_to_brokers_that_support_it_and_is_an_error_for_older_ones(
    filters: dict[str, list[str]], needed: int
) -> None:
    fed = feeder(lists=lists())
    fed.offered[LIST_GROUPS] = (0, needed)
    fed.run(list_groups(cluster(), **filters))
    assert {call.version for call in fed.calls(LIST_GROUPS)} == {needed}
    fed = feeder(lists=lists())
    fed.offered[LIST_GROUPS] = (0, needed - 1)
    with pytest.raises(Unsupported):
        fed.run(list_groups(cluster(), **filters))


# --- rows of groups that cannot be described ---


def test_a_group_that_cannot_be_described_is_one_row_with_its_error_in_every_view() -> None:
    fed = feeder(groups=[group("a1", "Empty")], commits={"a1": {("orders", 0): 1}})
    fed.answers[OFFSET_FETCH] = lambda call: Unreachable("gone")
    (found,) = fed.run(describe_groups(cluster(), ["a1"]))
    assert found.error is not None
    assert [(row.group, row.topic, row.error) for row in found.partition_rows()] == [("a1", None, found.error)]
    assert [(row.group, row.consumer_id, row.error) for row in found.member_rows()] == [("a1", None, found.error)]
    assert (found.state_row().state, found.state_row().error) == ("Empty", found.error)
