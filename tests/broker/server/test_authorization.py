"""The authorization matrix on this broker, against the recorded answers of a real Kafka with StandardAuthorizer."""

from __future__ import annotations

import pytest

from broker.protocol.api_keys import APIS
from broker.server.handlers import SERVED_KEYS, find_declaration
from tests.harness.authorization import recording
from tests.harness.authorization.cases import CASES, OPEN_KEYS
from tests.harness.authorization.clusters import on_this_broker
from tests.harness.authorization.matrix import Answers


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Answers:
    return on_this_broker(tmp_path_factory.mktemp("matrix") / "data")


def test_every_request_is_in_the_matrix_in_every_version() -> None:
    covered = {key: set(APIS[key].versions) for key in OPEN_KEYS}
    for case in CASES:
        covered.setdefault(case.key, set()).update(case.all_versions())
    missing = [APIS[key].name for key in SERVED_KEYS if covered.get(key) != set(APIS[key].versions)]
    assert not missing, f"add cases to tests/harness/authorization/cases.py, and record them: {missing}"


def test_every_operation_that_a_request_declares_is_in_the_matrix() -> None:
    for key in SERVED_KEYS:
        declared = find_declaration(key)
        assert declared is not None, key
        needed = {(need.operation, need.kind) for case in CASES if case.key == key for need in case.needs}
        assert {(acl.operation, acl.kind) for acl in declared.guard.acls} <= needed, key


def test_every_answer_is_that_of_a_kafka(answers: Answers) -> None:
    recorded = recording.load()
    unrecorded = [str(case) for case in CASES if not case.is_native and str(case) not in recorded]
    assert not unrecorded, "record them: python -m tests.harness.authorization"
    differences = recording.differences(recorded, {case: answers[case] for case in recorded if case in answers})
    assert not differences, "\n".join([f"{len(differences)} answers differ", *differences[:20]])


@pytest.mark.parametrize("case", [str(case) for case in CASES if case.is_native and case.key < 10002])
def test_requests_that_kafka_does_not_have_are_refused_by_group(answers: Answers, case: str) -> None:
    refused = {
        sender: [row["group_id"] for row in rows[0]["groups"] if row.get("error_code") == 30]
        for sender, rows in answers[case].items()
    }
    can_describe = case.startswith("DescribeGroupDetails")
    needed = f"all but {'DESCRIBE' if can_describe else 'READ'} GROUP mine"
    assert refused == {
        "anonymous": ["mine", "theirs"],
        "unknown": ["mine", "theirs"],
        "describer": [] if can_describe else ["mine", "theirs"],
        needed: ["mine"],
        "only what it needs": ["theirs"],
        "admin": [],
    } | ({"all but DESCRIBE TOPIC mine": []} if can_describe else {})


@pytest.mark.parametrize("case", ["DescribeBroker", "DescribeClients", "DescribeTelemetry"])
def test_what_the_broker_counts_is_shown_to_those_who_may_describe_the_cluster(answers: Answers, case: str) -> None:
    shown = {sender for sender, rows in answers[case].items() if not rows[0].get("error_code")}
    assert shown == {"admin", "describer", "only what it needs"}


def test_times_of_commits_are_shown_to_those_who_may_describe_the_topic(answers: Answers) -> None:
    shown = {
        sender: {(group["group_id"], row["topic"]) for group in rows[-1]["groups"] for row in group.get("commits", [])}
        for sender, rows in answers["DescribeGroupDetails"].items()
    }
    assert shown["admin"] == {(group, topic) for group in ("mine", "theirs") for topic in ("mine", "theirs")}
    assert shown["all but DESCRIBE TOPIC mine"] == {("mine", "theirs"), ("theirs", "theirs")}
    assert shown["all but DESCRIBE GROUP mine"] == {("theirs", "mine"), ("theirs", "theirs")}
    assert shown["only what it needs"] == {("mine", "mine")}
    assert shown["anonymous"] == set()
