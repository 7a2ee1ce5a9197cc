"""Reaching a cluster with scripted answers: versions, leaders, coordinators, retries."""

from __future__ import annotations

import pytest

from broker.protocol.messages.api_versions import ApiVersionsResponse
from broker.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from kgctl.client.admin.offsets import LATEST, OffsetAt, list_offsets
from kgctl.client.net.cluster import RETRY_WAITS, Ask, Batch, Node
from kgctl.client.net.errors import BrokerError, KgctlError, TimedOut, Unreachable, Unsupported
from kgctl.client.net.steps import Call, Endpoint
from kgctl.exit_codes import exit_code_of
from kgctl.model.topic_partition import TopicPartition
from tests.harness.feeding import (
    API_VERSIONS,
    FIND_COORDINATOR,
    METADATA,
    SEED,
    Feeder,
    cluster,
    coordinators,
    endpoint,
    error_of,
    metadata,
    offers,
)
from tests.harness.group_answers import ends

LIST_GROUPS, LIST_OFFSETS = 16, 2


def no_groups(call: Call) -> ListGroupsResponse:
    return ListGroupsResponse(groups=[])


def list_groups(at: Endpoint = SEED, low: int = 0, high: int = 99) -> Ask[ListGroupsResponse]:
    return Ask(at, ListGroupsRequest(), ListGroupsResponse, low, high)


# --- versions ---


@pytest.mark.parametrize(
    ("offered", "bound", "chosen"),
    [((0, 5), 99, 5), ((0, 99), 99, 5), ((0, 3), 99, 3), ((0, 5), 4, 4), ((5, 9), 99, 5), ((2, 2), 2, 2)],
)
def test_the_highest_common_version_within_the_bounds_is_sent(
    offered: tuple[int, int], bound: int, chosen: int
) -> None:
    feeder = Feeder({LIST_GROUPS: no_groups}, offered={LIST_GROUPS: offered})
    feeder.run(cluster().ask(list_groups(high=bound)))
    assert [call.version for call in feeder.calls(LIST_GROUPS)] == [chosen]


@pytest.mark.parametrize(
    ("offered", "low", "high"),
    [({LIST_GROUPS: (6, 9)}, 0, 99), ({}, 0, 99), ({LIST_GROUPS: (0, 3)}, 4, 99), ({LIST_GROUPS: (3, 5)}, 0, 2)],
)
def test_a_request_without_a_common_version_is_not_sent(
    offered: dict[int, tuple[int, int]], low: int, high: int
) -> None:
    feeder = Feeder({LIST_GROUPS: no_groups}, offered=offered)
    with pytest.raises(Unsupported, match="ListGroups"):
        feeder.run(cluster().ask(list_groups(low=low, high=high)))
    assert feeder.calls(LIST_GROUPS) == []


def test_versions_are_requested_once_per_node() -> None:
    feeder, known = Feeder({LIST_GROUPS: no_groups}), cluster()
    for _ in range(3):
        feeder.run(known.ask_each([list_groups(), list_groups(endpoint(2))]))
    assert sorted(call.endpoint for call in feeder.calls(API_VERSIONS)) == [endpoint(2), SEED]


def test_a_broker_that_does_not_know_our_ApiVersions_is_asked_in_version_0() -> None:
    def old(call: Call) -> ApiVersionsResponse:
        return ApiVersionsResponse(error_code=35, api_keys=[]) if call.version else offers({LIST_GROUPS: (0, 1)})

    feeder = Feeder({API_VERSIONS: old, LIST_GROUPS: no_groups})
    feeder.run(cluster().ask(list_groups()))
    assert [call.version for call in feeder.calls(API_VERSIONS)] == [4, 0]
    assert feeder.calls(LIST_GROUPS)[0].version == 1


def test_a_node_that_is_down_affects_only_its_own_answer() -> None:
    feeder = Feeder({LIST_GROUPS: no_groups}, down={endpoint(2)})
    first, second = feeder.run(cluster().ask_each([list_groups(), list_groups(endpoint(2))]))
    assert isinstance(first, ListGroupsResponse)
    assert error_of(second) == "UNREACHABLE"


# --- nodes ---


def test_the_bootstrap_list_is_tried_in_order_until_one_answers() -> None:
    known = cluster()
    known.bootstrap = (endpoint(1), endpoint(2), endpoint(3))
    feeder = Feeder({METADATA: metadata({})}, down={endpoint(1)})
    feeder.run(known.metadata([]))
    assert [call.endpoint for call in feeder.calls(METADATA)] == [endpoint(2)]


def test_an_unreachable_cluster_is_reported_with_every_address() -> None:
    known = cluster()
    known.bootstrap = (endpoint(1), endpoint(2))
    with pytest.raises(Unreachable, match=r"n1:9092: connection refused; n2:9092: connection refused"):
        Feeder(down={endpoint(1), endpoint(2)}).run(known.metadata())


def test_metadata_never_creates_a_topic() -> None:
    feeder = Feeder({METADATA: metadata({})})
    feeder.run(cluster().metadata(["typo"]))
    assert [call.request.allow_auto_topic_creation for call in feeder.calls(METADATA)] == [False]  # type: ignore[attr-defined]


# --- leaders ---


def test_leaders_of_all_topics_are_looked_up_with_one_request_and_cached() -> None:
    feeder, known = Feeder({METADATA: metadata({"a": {0: 1, 1: 2}, "b": {0: 2}}, nodes=(1, 2))}), cluster()
    for _ in range(2):
        found = feeder.run(known.leaders([TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)]))
    assert {key: node.node_id for key, node in found.items() if isinstance(node, Node)} == {
        TopicPartition("a", 0): 1,
        TopicPartition("a", 1): 2,
        TopicPartition("b", 0): 2,
    }
    assert len(feeder.calls(METADATA)) == 1


def test_a_missing_partition_is_an_error_without_a_retry() -> None:
    feeder = Feeder({METADATA: metadata({"a": {0: 1}}), LIST_OFFSETS: ends({TopicPartition("a", 0): 7})})
    found = feeder.run(
        list_offsets(
            cluster(),
            {TopicPartition("a", 0): LATEST, TopicPartition("a", 1): LATEST, TopicPartition("nope", 0): LATEST},
        )
    )
    assert found["a", 0] == OffsetAt(7)
    assert error_of(found["a", 1]) == error_of(found["nope", 0]) == "UNKNOWN_TOPIC_OR_PARTITION"
    assert feeder.pauses == []


def test_a_partition_without_a_leader_is_retried_and_then_an_error_of_its_own() -> None:
    feeder = Feeder({METADATA: metadata({"a": {0: 1, 1: -1}}), LIST_OFFSETS: ends({TopicPartition("a", 0): 7})})
    found = feeder.run(list_offsets(cluster(), {TopicPartition("a", 0): LATEST, TopicPartition("a", 1): LATEST}))
    assert found["a", 0] == OffsetAt(7)
    assert error_of(found["a", 1]) == "LEADER_NOT_AVAILABLE"
    assert tuple(pause.seconds for pause in feeder.pauses) == RETRY_WAITS


def test_a_leader_that_has_moved_is_found_again() -> None:
    places = iter([1, 2])
    feeder = Feeder(
        {
            METADATA: lambda call: metadata({"a": {0: next(places)}}, nodes=(1, 2))(call),
            LIST_OFFSETS: lambda call: ends(
                {TopicPartition("a", 0): 7} if call.endpoint == endpoint(2) else {}, otherwise=6
            )(call),
        }
    )
    assert feeder.run(list_offsets(cluster(), {TopicPartition("a", 0): LATEST})) == {
        TopicPartition("a", 0): OffsetAt(7)
    }
    assert [call.endpoint for call in feeder.calls(LIST_OFFSETS)] == [endpoint(1), endpoint(2)]


def test_a_leader_that_does_not_know_a_new_topic_yet_is_retried() -> None:
    answers = iter([ends({}), ends({}), ends({TopicPartition("a", 0): 7})])
    feeder = Feeder({METADATA: metadata({"a": {0: 1}}), LIST_OFFSETS: lambda call: next(answers)(call)})
    assert feeder.run(list_offsets(cluster(), {TopicPartition("a", 0): LATEST})) == {
        TopicPartition("a", 0): OffsetAt(7)
    }


def test_all_leaders_are_asked_at_once_with_one_request_each() -> None:
    topics = {"a": {n: 1 + n % 2 for n in range(10)}}
    feeder = Feeder(
        {METADATA: metadata(topics, nodes=(1, 2)), LIST_OFFSETS: ends({TopicPartition("a", n): n for n in range(10)})}
    )
    found = feeder.run(list_offsets(cluster(), {TopicPartition("a", n): LATEST for n in range(10)}))
    assert found == {TopicPartition("a", n): OffsetAt(n) for n in range(10)}
    assert [
        sorted(call.endpoint for call in calls) for calls in feeder.rounds if calls[0].request.API_KEY == LIST_OFFSETS
    ] == [[endpoint(1), endpoint(2)]]


# --- coordinators ---


def test_coordinators_of_many_groups_are_found_in_one_request() -> None:
    feeder = Feeder({FIND_COORDINATOR: coordinators(lambda group: int(group[-1]))})
    found = feeder.run(cluster().coordinators([f"g{n}" for n in range(1, 6)]))
    assert [node.node_id for node in found.values() if isinstance(node, Node)] == [1, 2, 3, 4, 5]
    assert len(feeder.calls(FIND_COORDINATOR)) == 1


def test_an_older_broker_is_asked_for_one_coordinator_at_a_time() -> None:
    feeder = Feeder({FIND_COORDINATOR: coordinators(lambda group: int(group[-1]))})
    feeder.offered[FIND_COORDINATOR] = (0, 3)
    found = feeder.run(cluster().coordinators(["g1", "g2"]))
    assert [node.node_id for node in found.values() if isinstance(node, Node)] == [1, 2]
    assert [call.request.key for call in feeder.calls(FIND_COORDINATOR)] == ["g1", "g2"]  # type: ignore[attr-defined]


def echo(node: Node, groups: list[str]) -> list[Batch[str]]:
    ask = list_groups(node.endpoint)
    return [
        Batch(
            ask,
            groups,
            lambda answer: dict.fromkeys(groups, answer.error_code and BrokerError(answer.error_code, "it")),
        )
    ]


@pytest.mark.parametrize("passing", [14, 15, 16])
def test_a_coordinator_that_loads_or_moves_is_retried_after_a_new_lookup(passing: int) -> None:
    codes = iter([passing, passing, 0])
    feeder = Feeder(
        {
            FIND_COORDINATOR: coordinators(lambda _: 1),
            LIST_GROUPS: lambda _: ListGroupsResponse(error_code=next(codes), groups=[]),
        }
    )
    assert feeder.run(cluster().at_coordinators(["g"], echo)) == {"g": 0}
    assert len(feeder.calls(FIND_COORDINATOR)) == 3
    assert len(feeder.pauses) == 2


def test_a_permanent_error_is_not_retried() -> None:
    feeder = Feeder(
        {
            FIND_COORDINATOR: coordinators(lambda _: 1),
            LIST_GROUPS: lambda _: ListGroupsResponse(error_code=30, groups=[]),
        }
    )
    found = feeder.run(cluster().at_coordinators(["g"], echo))
    assert error_of(found["g"]) == "GROUP_AUTHORIZATION_FAILED"
    assert feeder.pauses == []


def test_a_timeout_between_retries_keeps_the_results_of_the_others() -> None:
    feeder = Feeder(
        {FIND_COORDINATOR: coordinators(lambda group: 1 if group == "good" else -15), LIST_GROUPS: no_groups},
        pauses_allowed=1,
    )
    found = feeder.run(cluster().at_coordinators(["bad", "good"], echo))
    assert found["good"] == 0
    assert error_of(found["bad"]) == "COORDINATOR_NOT_AVAILABLE"
    assert len(feeder.pauses) == 2


def test_a_coordinator_that_is_down_affects_only_its_own_groups() -> None:
    feeder = Feeder(
        {FIND_COORDINATOR: coordinators(lambda group: int(group[-1])), LIST_GROUPS: no_groups}, down={endpoint(2)}
    )
    found = feeder.run(cluster().at_coordinators(["g1", "g2"], echo))
    assert found["g1"] == 0
    assert error_of(found["g2"]) == "UNREACHABLE"


def test_a_key_missing_from_the_response_is_an_error_of_that_key() -> None:
    def deaf(node: Node, groups: list[str]) -> list[Batch[str]]:
        return [Batch(list_groups(node.endpoint), groups, lambda answer: {"a": 1})]

    feeder = Feeder({FIND_COORDINATOR: coordinators(lambda _: 1), LIST_GROUPS: no_groups})
    found = feeder.run(cluster().at_coordinators(["a", "b"], deaf))
    assert found["a"] == 1
    assert isinstance(found["b"], KgctlError)


def test_a_first_request_without_an_answer_is_an_unreachable_cluster_and_not_a_timeout() -> None:
    feeder = Feeder({API_VERSIONS: lambda call: TimedOut("seed:9092: no answer in time")})
    with pytest.raises(Unreachable) as caught:
        feeder.run(cluster().metadata())
    assert exit_code_of(caught.value) == 7
