"""Topics with scripted answers: what only a cluster of several brokers can show."""

from __future__ import annotations

from typing import Any

import pytest

from broker.protocol.messages.create_topics import CreateTopicsResponse
from broker.protocol.messages.delete_topics import DeleteTopicsResponse
from kgctl.client.admin.topics import create_topics, delete_topics, describe_topics, plan_deletion
from kgctl.client.net.errors import Refused, Unreachable
from kgctl.client.net.steps import Call
from kgctl.model.changes import TopicChange
from tests.harness.feeding import METADATA, SEED, Feeder, cluster, endpoint, metadata
from tests.harness.group_answers import ends

LIST_OFFSETS, CREATE_TOPICS, DELETE_TOPICS = 2, 19, 20


def created(errors: dict[str, int]) -> Any:
    def answer(call: Call) -> CreateTopicsResponse:
        rows = [
            CreateTopicsResponse.Topic(
                name=row.name, error_code=errors.get(row.name, 0), num_partitions=1, replication_factor=1
            )
            for row in call.request.topics  # type: ignore[attr-defined]
        ]
        return CreateTopicsResponse(topics=rows)

    return answer


def test_topics_are_created_by_the_controller() -> None:
    fed = Feeder({METADATA: metadata({"t": {0: 1}}, nodes=(2, 1)), CREATE_TOPICS: created({})})
    (row,) = fed.run(create_topics(cluster(), ["t"]))
    assert (row.status, row.partitions) == ("done", 1)
    assert [call.endpoint for call in fed.calls(CREATE_TOPICS)] == [endpoint(2)]


def test_a_controller_that_has_moved_is_found_again() -> None:
    controllers, codes = iter([(1, 2), (2, 1), (2, 1), (2, 1)]), iter([41, 0])
    fed = Feeder(
        {
            METADATA: lambda call: metadata({"t": {0: 1}}, nodes=next(controllers))(call),
            CREATE_TOPICS: lambda call: created({"t": next(codes)})(call),
        }
    )
    (row,) = fed.run(create_topics(cluster(), ["t"]))
    assert (row.status, row.error) == ("done", None)
    assert [call.endpoint for call in fed.calls(CREATE_TOPICS)] == [endpoint(1), endpoint(2)]


def test_a_new_topic_is_reported_once_the_brokers_know_its_leaders() -> None:
    views = iter([{}, {}, {"t": {0: -1}}, {"t": {0: 1}}])
    fed = Feeder({METADATA: lambda call: metadata(next(views))(call), CREATE_TOPICS: created({"bad": 17})})
    bad, made = fed.run(create_topics(cluster(), ["t", "bad"]))
    assert (str(bad.error), made.status) == ("INVALID_TOPIC_EXCEPTION", "done")
    assert len(fed.pauses) == 2


def test_topics_are_reported_as_created_with_a_note_if_the_cluster_is_lost_right_after() -> None:
    fed = Feeder({METADATA: metadata({})})
    notes: list[str] = []

    def last_answer(call: Call) -> CreateTopicsResponse:
        fed.down |= {SEED, endpoint(1)}
        answer: CreateTopicsResponse = created({"bad": 17})(call)
        return answer

    fed.answers[CREATE_TOPICS] = last_answer
    bad, made = fed.run(create_topics(cluster(), ["t", "bad"], note=notes.append))
    assert (str(bad.error), made.status) == ("INVALID_TOPIC_EXCEPTION", "done")
    assert len(notes) == 1
    assert "connection refused" in notes[0]


@pytest.mark.parametrize(
    ("first", "outcome"),
    [
        (Unreachable("the connection broke"), ("done", "None")),
        (7, ("done", "None")),  # REQUEST_TIMED_OUT
        (Refused("nobody listens"), ("failed", "TOPIC_ALREADY_EXISTS")),
        (41, ("failed", "TOPIC_ALREADY_EXISTS")),  # NOT_CONTROLLER
    ],
)
def test_a_topic_that_exists_after_a_lost_answer_counts_as_created(first: Any, outcome: tuple[str, str]) -> None:
    firsts = iter([first])

    def answer(call: Call) -> Any:
        found = next(firsts, 36)
        return created({"t": found})(call) if isinstance(found, int) else found

    fed = Feeder({METADATA: metadata({"t": {0: 1}}), CREATE_TOPICS: answer})
    (row,) = fed.run(create_topics(cluster(), ["t"], partitions=1))
    assert (row.status, str(row.error)) == outcome


@pytest.mark.parametrize(
    ("first", "error"), [(Unreachable("the connection broke"), "None"), (None, "UNKNOWN_TOPIC_OR_PARTITION")]
)
def test_a_topic_that_is_gone_after_a_lost_answer_counts_as_deleted(first: Any, error: str) -> None:
    gone = DeleteTopicsResponse(responses=[DeleteTopicsResponse.Response(name="t", error_code=3)])
    firsts = iter([first] if first else [])
    fed = Feeder({METADATA: metadata({"t": {0: 1}}), DELETE_TOPICS: lambda call: next(firsts, gone)})
    (row,) = fed.run(delete_topics(cluster(), [TopicChange("t", 1, 1)]))
    assert str(row.error) == error


def test_only_planned_topics_are_deleted_and_each_has_its_own_outcome() -> None:
    def deleted(call: Call) -> DeleteTopicsResponse:
        request: Any = call.request
        names = [row.name for row in request.topics] if call.version >= 6 else request.topic_names
        return DeleteTopicsResponse(
            responses=[DeleteTopicsResponse.Response(name=name, error_code=29 if name == "b" else 0) for name in names]
        )

    for version in (5, 6):
        fed, known = Feeder({METADATA: metadata({"a": {0: 1}, "b": {0: 1}}), DELETE_TOPICS: deleted}), cluster()
        fed.offered[DELETE_TOPICS] = (1, version)
        plan = fed.run(plan_deletion(known, ["b", "a", "absent"]))
        rows = fed.run(delete_topics(known, plan))
        assert [(row.topic, row.status, str(row.error)) for row in rows] == [
            ("a", "done", "None"),
            ("absent", "failed", "UNKNOWN_TOPIC_OR_PARTITION"),
            ("b", "failed", "TOPIC_AUTHORIZATION_FAILED"),
        ]


def test_a_partition_without_leader_is_a_row_with_its_error_beside_the_others() -> None:
    fed = Feeder({METADATA: metadata({"t": {0: 1, 1: -1}}), LIST_OFFSETS: ends({("t", 0): 5})})
    rows = fed.run(describe_topics(cluster(retry_waits=()), ["t"]))
    assert [(row.partition, row.leader, row.log_end_offset, str(row.error)) for row in rows] == [
        (0, 1, 5, "None"),
        (1, None, None, "LEADER_NOT_AVAILABLE"),
    ]
