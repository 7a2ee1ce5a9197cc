"""`kgctl pipeline verify` as a user runs it: what it prints, and its exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from kgctl.model.topic_partition import TopicPartition
from tests.harness.commandline import Kgctl
from tests.kgctl.pipelines.archive.making import Row, add, facts

ZERO = TopicPartition("orders", 0)


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    add(tmp_path / "archive", {ZERO: [Row(0), Row(2)]}, {ZERO: (0, 3)}, topics=[facts("orders")])
    return tmp_path / "archive"


def test_a_good_archive_has_a_summary(archive: Path) -> None:
    done = Kgctl()("pipeline", "verify", str(archive))
    assert (done.exit_code, done.stdout) == (0, "")
    assert "2 records of 1 partition in 1 file, 1 offset without a record. No fault found." in done.stderr


def test_a_fault_has_a_row_and_exit_code_1(archive: Path) -> None:
    next(archive.rglob("*.parquet")).unlink()
    done = Kgctl()("pipeline", "verify", str(archive))
    assert done.exit_code == 1
    assert "missing file" in done.stdout
    assert "1 fault." in done.stderr
    answer = json.loads(Kgctl()("pipeline", "verify", str(archive), "-o", "json").stdout)
    Draft202012Validator(json.loads(Kgctl()("schema", "pipeline-verify").stdout)).validate(answer)
    assert [(row["finding"], row["topic"], row["partition"]) for row in answer["rows"]] == [
        ("missing file", "orders", 0)
    ]


def test_a_folder_without_an_archive(tmp_path: Path) -> None:
    done = Kgctl()("pipeline", "verify", str(tmp_path))
    assert done.exit_code == 5
    assert "holds no archive" in done.stderr


def test_an_unknown_context_and_an_unreachable_cluster(archive: Path) -> None:
    assert Kgctl()("pipeline", "verify", str(archive), "--against", "nowhere").exit_code == 2
    done = Kgctl()("pipeline", "verify", str(archive), "--against", "127.0.0.1:1", "--timeout", "2")
    assert (done.exit_code, done.stdout) == (7, "")
    assert "connection refused" in done.stderr


def test_faults_are_shown_although_the_cluster_does_not_answer(archive: Path) -> None:
    next(archive.rglob("*.parquet")).unlink()
    done = Kgctl()("pipeline", "verify", str(archive), "--against", "127.0.0.1:1", "--timeout", "2")
    assert done.exit_code == 7
    assert "missing file" in done.stdout
