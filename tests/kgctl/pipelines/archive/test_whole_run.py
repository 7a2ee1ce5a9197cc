"""`kgctl pipeline archive` as a user starts it: killed at any time, interrupted, refused, and with nothing to read."""

from __future__ import annotations

import random
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.local import LocalBroker
from kgctl.pipelines.archive.groups import read_groups
from kgctl.pipelines.archive.manifest import read_archive
from kgctl.pipelines.archive.verifying import verify
from tests.kgctl.pipelines.archive.clusters import against, archived, consumed
from tests.kgctl.pipelines.cluster.families import kill_family
from tests.kgctl.pipelines.runs import KGCTL
from tests.kgctl.pipelines.source.topics import Topics

PATIENCE_S = 240
KILLS = 3


@pytest.fixture(scope="module")
def topics() -> Iterator[Topics]:
    with LocalBroker() as broker:
        yield Topics(broker.bootstrap_servers)


def command(topics: Topics, out: Path, *arguments: str) -> list[str]:
    return [
        *KGCTL,
        "pipeline",
        "archive",
        *arguments,
        "--quick",
        "--out",
        str(out),
        "--bootstrap",
        topics.bootstrap_servers,
    ]


def run(topics: Topics, out: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(topics, out, *arguments), capture_output=True, text=True, check=False, timeout=PATIENCE_S
    )


def test_topics_without_records_need_no_spark(topics: Topics, tmp_path: Path) -> None:
    name = topics.make(2)
    done = run(topics, tmp_path, name)
    assert done.returncode == 0, done.stderr
    assert "Spark" not in done.stderr
    archive = read_archive(tmp_path)
    assert {partition.topic: ends for partition, ends in archive.spans.items()} == {name: (0, 0)}
    assert archive.topics[name].partitions == 2


def test_options_without_effect_are_named(topics: Topics, tmp_path: Path) -> None:
    name = topics.make(1)
    first = run(topics, tmp_path, name, "--from", "now-1d")
    assert "--from" not in first.stderr
    second = run(topics, tmp_path, name, "--from", "now-1d")
    assert second.returncode == 0, second.stderr
    text = f"--from is only for topics that are new to the archive; topic {name} continues where the archive ends"
    assert text in second.stderr
    assert read_groups(tmp_path) is not None
    again = run(topics, tmp_path, name)
    assert (again.returncode, len(read_archive(tmp_path).commits)) == (0, 1)


def test_a_topic_that_does_not_exist(topics: Topics, tmp_path: Path) -> None:
    done = run(topics, tmp_path, "nothing")
    assert done.returncode == 5
    assert "topic 'nothing' does not exist" in done.stderr


@pytest.mark.spark
@pytest.mark.cluster
@pytest.mark.timeout(600)
def test_runs_that_are_killed_lose_and_repeat_nothing(topics: Topics, tmp_path: Path) -> None:
    name = topics.make(3)
    topics.count(name, 6000, 3)
    randomness = random.Random(5)
    for number in range(KILLS):
        arguments = (name, "--follow", "--trigger", "0.1", "--max-offsets-per-trigger", "200")
        with subprocess.Popen(command(topics, tmp_path, *arguments), stderr=subprocess.DEVNULL) as child:
            # Each run gets further than the one before, and dies in the middle of its work.
            wanted, deadline = commits(tmp_path) + 2 + number, time.monotonic() + PATIENCE_S
            while commits(tmp_path) < wanted and time.monotonic() < deadline:
                assert child.poll() is None
                time.sleep(randomness.uniform(0.01, 0.1))
            # The command, the driver, its JVM and the workers.
            kill_family(child.pid)
        topics.count(name, 300, 3)
    done = run(topics, tmp_path, name)
    assert done.returncode == 0, done.stderr
    assert archived(tmp_path, name) == consumed(topics, name)
    assert verify(tmp_path).findings == ()
    assert against(topics, read_archive(tmp_path)) == []


@pytest.mark.spark
@pytest.mark.cluster
@pytest.mark.timeout(600)
def test_ctrl_c_ends_a_following_run(topics: Topics, tmp_path: Path) -> None:
    name = topics.make(1)
    topics.count(name, 10)
    arguments = (name, "--follow", "--trigger", "0.1")
    with subprocess.Popen(command(topics, tmp_path, *arguments), stderr=subprocess.PIPE, text=True) as child:
        while commits(tmp_path) < 1:
            assert child.poll() is None
            time.sleep(0.1)
        child.send_signal(signal.SIGINT)
        _, stderr = child.communicate(timeout=PATIENCE_S)
    assert child.returncode == 130
    assert "Interrupted. What was committed stays" in stderr
    assert verify(tmp_path).findings == ()


def commits(out: Path) -> int:
    return len(list((out / "records" / "_manifest").glob("batch-*.json")))
