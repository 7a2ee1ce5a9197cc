"""`kgctl topics alter` and `kgctl topics delete-records` on a running cluster."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.harness.clusters import fresh
from tests.harness.commandline import Kgctl, fill, opened
from tests.harness.running import until


@pytest.fixture
def topic(kgctl: Kgctl) -> str:
    name = fresh("t")
    assert kgctl("topics", "create", name, "--partitions", 2).exit_code == 0
    return name


def starts(kgctl: Kgctl, topic: str) -> list[int]:
    return [row["log_start_offset"] for row in kgctl.rows("topics", "describe", topic)]


def test_a_topic_gets_partitions_and_configs_after_a_plan(kgctl: Kgctl, topic: str) -> None:
    arguments = ["topics", "alter", topic, "--partitions", 3, "--config", "retention.ms=5000"]
    planned = kgctl(*arguments)
    assert planned.exit_code == 0
    assert [line.split() for line in planned.stdout.splitlines()[1:]] == [
        [topic, "partitions", "2", "3", "planned"],
        [topic, "retention.ms", "604800000", "5000", "planned"],
    ]
    assert "records with the same key go to other partitions" in planned.stderr
    assert len(starts(kgctl, topic)) == 2
    assert [row["status"] for row in kgctl.rows(*arguments, "--execute")] == ["done", "done"]
    assert len(starts(kgctl, topic)) == 3
    until(lambda: [row["status"] for row in kgctl.rows(*arguments)] == ["same", "same"])
    (unset,) = kgctl.rows("topics", "alter", topic, "--delete-config", "retention.ms", "--execute")
    assert (unset["old_value"], unset["new_value"], unset["status"]) == ("5000", None, "done")


def test_a_plan_that_the_cluster_would_refuse_says_so_and_changes_nothing(kgctl: Kgctl, topic: str) -> None:
    fewer = kgctl("topics", "alter", topic, "--partitions", 1)
    assert fewer.exit_code == 6
    assert "Kafka cannot take partitions away" in fewer.stderr
    for more in ([], ["--execute"]):
        refused = kgctl("topics", "alter", topic, "--partitions", 4, "--config", "retention.ms=soon", *more)
        assert (refused.exit_code, "INVALID_CONFIG" in refused.stdout) == (4, True)
    # Partitions cannot be taken away, so they are not added while a config is refused.
    assert "skipped" in refused.stdout
    assert len(starts(kgctl, topic)) == 2
    absent = kgctl("topics", "alter", fresh("absent"), "--partitions", 4, "--execute")
    assert absent.exit_code == 5


def test_records_go_up_to_an_offset_or_all_of_them(kgctl: Kgctl, topic: str) -> None:
    fill(kgctl, topic, [5, 4])
    group = fresh("g")
    kgctl.commit(group, topic, p0=1, p1=4)
    planned = kgctl("topics", "delete-records", f"{topic}:0:3", f"{topic}:1")
    assert planned.exit_code == 0
    assert f"Warning: group '{group}' would skip 2 offsets that it has not read." in planned.stderr
    assert starts(kgctl, topic) == [0, 0]
    first, second = kgctl.rows("topics", "delete-records", f"{topic}:0:3", f"{topic}:1", "--execute")
    assert first["groups"] == [{"group": group, "offset": 1, "skipped": 2}]
    assert (first["records"], first["new_start_offset"], first["status"]) == (3, 3, "done")
    assert (second["records"], second["new_start_offset"], second["groups"]) == (4, 4, [])
    assert first["estimated_bytes"] > 0
    assert starts(kgctl, topic) == [3, 4]
    (again,) = kgctl.rows("topics", "delete-records", f"{topic}:0:3", "--execute")
    assert (again["records"], again["status"]) == (0, "same")


def test_many_groups_that_would_skip_records_are_a_few_words(kgctl: Kgctl, topic: str) -> None:
    fill(kgctl, topic, [9])
    stem = fresh("g")
    for number in range(8):
        kgctl.commit(f"{stem}-{number}", topic, p0=number)
    planned = kgctl("topics", "delete-records", f"{topic}:0:8")
    assert f"{stem}-0,{stem}-1,{stem}-2,+5 " in planned.stdout
    assert planned.stderr.splitlines()[:6] == [
        *(f"Warning: group '{stem}-{n}' would skip {8 - n} offsets that it has not read." for n in range(5)),
        "Warning: 3 other groups would skip offsets, too.",
    ]


def test_a_group_below_the_start_of_the_log_skips_more(kgctl: Kgctl, topic: str) -> None:
    fill(kgctl, topic, [9])
    group = fresh("g")
    kgctl.commit(group, topic, p0=1)
    assert kgctl("topics", "delete-records", f"{topic}:0:3", "--execute").exit_code == 0
    (row,) = kgctl.rows("topics", "delete-records", f"{topic}:0:7")
    assert row["groups"] == [{"group": group, "offset": 1, "skipped": 4}]


def test_records_go_by_time(kgctl: Kgctl, topic: str) -> None:
    fill(kgctl, topic, [3], timestamp_ms=1_700_000_000_000)
    fill(kgctl, topic, [2, 1])
    rows = kgctl.rows("topics", "delete-records", topic, "--before", "now-1d", "--execute")
    assert [(row["new_start_offset"], row["status"]) for row in rows] == [(3, "done"), (0, "same")]
    rows = kgctl.rows("topics", "delete-records", f"{topic}:0", "--before", "now+1d")
    assert [row["new_start_offset"] for row in rows] == [5]


def test_records_go_as_a_file_for_kafkas_tool_says(kgctl: Kgctl, topic: str, tmp_path: Path) -> None:
    fill(kgctl, topic, [5, 5])
    partitions = [{"topic": topic, "partition": 0, "offset": 2}, {"topic": topic, "partition": 1, "offset": -1}]
    file = tmp_path / "offsets.json"
    file.write_text(json.dumps({"partitions": partitions, "version": 1}))
    done = kgctl("topics", "delete-records", "--from-file", file, "--execute", "--explain")
    assert done.exit_code == 0, done.output
    assert f"--offset-json-file {file}" in done.stderr
    assert starts(kgctl, topic) == [2, 5]


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        '{"partitions": []}',
        '{"partitions": [{"topic": "t", "partition": 0}]}',
        '{"version": 2, "partitions": []}',
    ],
)
def test_a_file_that_says_nothing_clear_is_a_usage_error(tmp_path: Path, content: str) -> None:
    file = tmp_path / "offsets.json"
    file.write_text(content)
    refused = Kgctl()("topics", "delete-records", "--from-file", file)
    assert refused.exit_code == 2
    assert "offsets.json: " in " ".join(refused.stderr.split())


@pytest.mark.parametrize(
    ("target", "sentence"),
    [
        ("t", "'t' names no partition, as in t:0 or t:0:1500."),
        ("t:x", "'t:x' is not TOPIC"),
        ("t:0:-2", "'t:0:-2' is not TOPIC"),
        ("t:0:9999999999999999999", "9999999999999999999 is more than any offset"),
    ],
)
def test_a_target_that_cannot_be_meant_is_a_usage_error(target: str, sentence: str) -> None:
    refused = Kgctl()("topics", "delete-records", target)
    assert refused.exit_code == 2
    assert sentence in " ".join(refused.stderr.split())


def test_records_that_may_not_go_stay(kgctl: Kgctl, topic: str) -> None:
    fill(kgctl, topic, [3])
    past = kgctl("topics", "delete-records", f"{topic}:0:4", "--execute")
    assert past.exit_code == 1
    assert f"{topic}-0: offset 4 is past the end of the log, 3" in past.stderr
    internal = kgctl("topics", "delete-records", "__consumer_offsets:0", "--execute")
    assert internal.exit_code == 6
    assert "INTERNAL_TOPIC" in internal.stdout
    assert kgctl("topics", "alter", topic, "--config", "cleanup.policy=compact", "--execute").exit_code == 0
    compacted = kgctl("topics", "delete-records", f"{topic}:0")
    assert compacted.exit_code == 1
    assert "cleanup.policy=compact forbids it" in compacted.stderr
    assert starts(kgctl, topic) == [0, 0]
    assert kgctl("topics", "delete-records", f"{topic}:5", "--execute").exit_code == 5


def test_records_of_an_open_transaction_can_go_too(kgctl: Kgctl, topic: str) -> None:
    with opened(kgctl, topic, 3):
        (row,) = kgctl.rows("topics", "delete-records", f"{topic}:0", "--execute")
    assert (row["new_start_offset"], row["status"]) == (3, "done")
