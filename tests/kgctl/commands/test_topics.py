"""`kgctl topics` on a running cluster."""

from __future__ import annotations

import pytest

from tests.harness.clusters import fresh
from tests.harness.commandline import Kgctl, fill


def test_a_topic_is_created_listed_described_and_deleted(kgctl: Kgctl) -> None:
    topic = fresh("t")
    created = kgctl(
        "topics",
        "create",
        topic,
        "--partitions",
        2,
        "--config",
        "retention.ms=60000",
        "--config",
        "cleanup.policy=compact",
    )
    assert created.exit_code == 0
    (row,) = [row for row in kgctl.rows("topics", "list") if row["topic"] == topic]
    assert row == {"topic": topic, "partitions": 2, "replicas": 1, "internal": False, "error": None}
    fill(kgctl, topic, [0, 7])
    rows = kgctl.rows("topics", "describe", topic)
    assert [(row["partition"], row["leader"], row["isr"], row["log_end_offset"], row["records"]) for row in rows] == [
        (0, 1, [1], 0, 0),
        (1, 1, [1], 7, 7),
    ]
    configs = {row["config"]: row["value"] for row in kgctl.rows("topics", "describe", topic, "--configs")}
    assert (configs["retention.ms"], configs["cleanup.policy"]) == ("60000", "compact")
    planned = kgctl("topics", "delete", topic)
    assert planned.exit_code == 0
    assert "Dry run" in planned.stderr
    assert kgctl("topics", "describe", topic).exit_code == 0
    assert kgctl("topics", "delete", topic, "--execute").exit_code == 0
    assert topic not in [row["topic"] for row in kgctl.rows("topics", "list")]


def test_the_broker_chooses_the_number_of_partitions_by_default(kgctl: Kgctl) -> None:
    (row,) = kgctl.rows("topics", "create", fresh("t"))
    assert (row["partitions"], row["replicas"], row["status"]) == (1, 1, "done")


def test_an_existing_topic_exits_with_6_unless_the_option_accepts_it(kgctl: Kgctl) -> None:
    topic = fresh("t")
    assert kgctl("topics", "create", topic).exit_code == 0
    again = kgctl("topics", "create", topic)
    assert again.exit_code == 6
    assert "TOPIC_ALREADY_EXISTS" in again.stdout
    tolerated = kgctl("topics", "create", topic, "--if-not-exists")
    assert (tolerated.exit_code, tolerated.stderr) == (0, "")
    assert tolerated.stdout.splitlines()[1].split() == [topic, "1", "1", "exists"]
    other = kgctl("topics", "create", topic, "--if-not-exists", "--partitions", 3)
    assert (other.exit_code, other.stdout) == (0, tolerated.stdout)
    assert other.stderr == f"Warning: topic '{topic}' exists already with 1 partition, not with 3.\n"


@pytest.mark.parametrize(
    "arguments", [["--config", "retention.ms=soon"], ["--config", "no.such.config=1"], ["--replication-factor", 3]]
)
def test_a_request_that_the_broker_refuses_exits_with_1_and_the_reason(kgctl: Kgctl, arguments: list[object]) -> None:
    topic = fresh("t")
    result = kgctl("topics", "create", topic, *arguments)
    assert result.exit_code == 1
    assert result.stderr.startswith(f"Error: topic '{topic}': ")
    assert kgctl("topics", "describe", topic).exit_code == 5


def test_missing_topics_exit_with_5_and_beside_others_with_4(kgctl: Kgctl) -> None:
    topic, absent = fresh("t"), fresh("absent")
    assert kgctl("topics", "create", topic).exit_code == 0
    for arguments in (["describe"], ["delete"], ["delete", "--execute"], ["describe", "--configs"]):
        assert kgctl("topics", *arguments, absent).exit_code == 5, arguments
    assert kgctl("topics", "describe", topic, absent).exit_code == 4
    assert kgctl("topics", "delete", topic, absent, "--execute").exit_code == 4
    assert kgctl("topics", "describe", topic).exit_code == 5


@pytest.mark.parametrize("arguments", [[], ["--execute"]])
def test_an_internal_topic_is_neither_planned_for_deletion_nor_deleted(kgctl: Kgctl, arguments: list[str]) -> None:
    result = kgctl("topics", "delete", "__consumer_offsets", *arguments)
    assert result.exit_code == 6
    assert "INTERNAL_TOPIC" in result.stdout
    assert "Add --execute" not in result.stderr
    assert "__consumer_offsets" in [row["topic"] for row in kgctl.rows("topics", "list")]


def test_internal_topics_can_be_excluded(kgctl: Kgctl) -> None:
    assert "__consumer_offsets" in [row["topic"] for row in kgctl.rows("topics", "list")]
    assert "__consumer_offsets" not in [row["topic"] for row in kgctl.rows("topics", "list", "--exclude-internal")]
