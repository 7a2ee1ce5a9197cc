"""A replay that is killed at any step: the next run continues it, and nothing is lost or there twice."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from broker.local import broker_environment
from kgctl.model.topic_partition import TopicPartition
from kgctl.pipelines.replay.log import read_log
from kgctl.pipelines.replay.settings import PREFIX
from tests.harness import ROOT
from tests.harness.clusters import Cluster, fresh
from tests.harness.commandline import Kgctl
from tests.harness.running import until
from tests.kgctl.pipelines.archive.making import NOON_MS, Row, add, facts
from tests.kgctl.pipelines.replay.reading_back import contents, of_rows, records

PARTITIONS, RECORDS = 2, 1300
STEPS = [
    ("Target.send", "after", 4),
    ("ReplayLog.append", "after", 1),
    ("ReplayLog.append", "after", 4),
    ("Producer.send_offsets_to_transaction", "after", 2),
    ("CountingProducer.commit_transaction", "after", 1),
    ("ReplayLog.finish", "before", 1),
]
SEVERAL = [
    ("Producer.init_transactions", "after", 1),
    ("ReplayLog.append", "after", 2),
    ("CountingProducer.commit_transaction", "after", 2),
    ("ReplayLog.append", "before", 1),
]


def rows(partition: int) -> list[Row]:
    """With gaps between the offsets."""
    return [Row(n + n // 7, b"k", b"%d-%d" % (partition, n), NOON_MS + n) for n in range(RECORDS)]


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("archive")
    some = {TopicPartition("orders", number): rows(number) for number in range(PARTITIONS)}
    ends = {key: (0, own[-1].offset + 5) for key, own in some.items()}
    add(folder, some, ends, topics=[facts("orders", PARTITIONS, configs={"retention.ms": "-1"})])
    return folder


@pytest.fixture
def kill(archive: Path, tmp_path: Path) -> Callable[..., None]:
    def killed(kgctl: Kgctl, topic: str, step: tuple[str, str, int], *options: str) -> None:
        arguments = ["pipeline", "replay", archive, "--to", topic, "--execute", "--state", tmp_path, *options]
        done = subprocess.run(
            [sys.executable, "-m", "tests.kgctl.pipelines.replay.dying", *map(str, step), *map(str, arguments),
             "--bootstrap", str(kgctl.bootstrap)],
            cwd=ROOT, env=broker_environment(), capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == -signal.SIGKILL, done.stderr

    return killed


def finish(kgctl: Kgctl, archive: Path, topic: str, state: Path, *options: str) -> None:
    done = kgctl("pipeline", "replay", archive, "--to", topic, "--execute", "--state", state, *options)
    assert done.exit_code == 0, done.output


def made(cluster: Cluster) -> tuple[Kgctl, str]:
    kgctl, topic = Kgctl(cluster.bootstrap_servers), fresh("killed")
    created = kgctl("topics", "create", topic, "--partitions", PARTITIONS, "--config", "retention.ms=-1")
    assert created.exit_code == 0, created.output
    return kgctl, topic


@pytest.mark.parametrize("step", STEPS, ids=str)
def test_after_a_kill_at_any_step_each_record_is_there_once(
    our_cluster: Cluster, archive: Path, tmp_path: Path, kill: Callable[..., None], step: tuple[str, str, int]
) -> None:
    kgctl, topic = made(our_cluster)
    kill(kgctl, topic, step)
    finish(kgctl, archive, topic, tmp_path)
    expected = {number: of_rows(rows(number)) for number in range(PARTITIONS)}
    assert contents(our_cluster.bootstrap_servers, topic, PARTITIONS) == expected
    # The offsets that the replay has kept are those that the records have.
    (folder,) = tmp_path.iterdir()
    log = read_log(folder)
    for number, some in records(our_cluster.bootstrap_servers, topic, PARTITIONS).items():
        found = log.offset_map(TopicPartition(topic, number))
        assert found
        assert [found.target_of(row.offset) for row in rows(number)] == [one.offset for one in some]


def test_kills_one_after_another_change_nothing(
    cluster: Cluster, archive: Path, tmp_path: Path, kill: Callable[..., None]
) -> None:
    kgctl, topic = made(cluster)
    for step in SEVERAL:
        kill(kgctl, topic, step)
    finish(kgctl, archive, topic, tmp_path)
    expected = {number: of_rows(rows(number)) for number in range(PARTITIONS)}
    assert contents(cluster.bootstrap_servers, topic, PARTITIONS) == expected


def test_positions_that_are_gone_after_one_transaction_are_missed(
    our_cluster: Cluster, archive: Path, tmp_path: Path, kill: Callable[..., None]
) -> None:
    kgctl, topic = made(our_cluster)
    # Each run of records is a transaction of its own: the first is committed, the second is not.
    kill(kgctl, topic, ("Target.send", "after", 2))
    (folder,) = tmp_path.iterdir()
    deleted = kgctl("groups", "delete", folder.name, "--execute", "--no-journal")
    assert deleted.exit_code == 0, deleted.output
    done = kgctl("pipeline", "replay", archive, "--to", topic, "--execute", "--state", tmp_path)
    assert (done.exit_code, "--restart begins again" in done.stderr) == (6, True), done.output


def test_an_interrupted_replay_commits_nothing_more_and_can_continue(
    our_cluster: Cluster, archive: Path, tmp_path: Path
) -> None:
    kgctl, topic = made(our_cluster)
    arguments = ["pipeline", "replay", archive, "--to", topic, "--execute", "--state", tmp_path]
    words = map(str, [*arguments, "--rate", "200", "--bootstrap", kgctl.bootstrap])
    running = subprocess.Popen(
        [sys.executable, "-m", "kgctl", *words], cwd=ROOT, env=broker_environment(), stderr=subprocess.PIPE, text=True
    )
    with running:
        assert running.stderr
        until(lambda: any(contents(our_cluster.bootstrap_servers, topic, PARTITIONS).values()), 60)
        running.send_signal(signal.SIGINT)
        errors = running.stderr.read()
    assert running.returncode == 130
    assert errors == "Interrupted. What was committed stays; the same command continues from there.\n"
    # The open transaction was aborted: readers do not wait until it is over its time.
    states = {row["state"] for row in kgctl.rows("transactions", "list") if row["transactional_id"].startswith(PREFIX)}
    assert not states & {"Ongoing", "PrepareAbort"}
    finish(kgctl, archive, topic, tmp_path)
    expected = {number: of_rows(rows(number)) for number in range(PARTITIONS)}
    assert contents(our_cluster.bootstrap_servers, topic, PARTITIONS) == expected


def test_an_interrupted_restart_continues_without_the_option(
    our_cluster: Cluster, archive: Path, tmp_path: Path
) -> None:
    kgctl, topic = made(our_cluster)
    finish(kgctl, archive, topic, tmp_path)
    arguments = ["pipeline", "replay", archive, "--to", topic, "--execute", "--state", tmp_path]
    words = map(str, [*arguments, "--restart", "--rate", "200", "--bootstrap", kgctl.bootstrap])
    running = subprocess.Popen(
        [sys.executable, "-m", "kgctl", *words], cwd=ROOT, env=broker_environment(), stderr=subprocess.PIPE, text=True
    )
    with running:
        assert running.stderr
        until(lambda: len(contents(our_cluster.bootstrap_servers, topic, PARTITIONS)[0]) > RECORDS, 60)
        running.send_signal(signal.SIGINT)
        errors = running.stderr.read()
    assert running.returncode == 130
    assert errors == "Interrupted. What was committed stays; the command without --restart continues from there.\n"
    finish(kgctl, archive, topic, tmp_path)
    expected = {number: 2 * of_rows(rows(number)) for number in range(PARTITIONS)}
    assert contents(our_cluster.bootstrap_servers, topic, PARTITIONS) == expected


def test_without_transactions_nothing_is_lost_and_only_the_last_records_are_there_again(
    our_cluster: Cluster, archive: Path, tmp_path: Path, kill: Callable[..., None]
) -> None:
    kgctl, topic = made(our_cluster)
    kill(kgctl, topic, ("ReplayLog.append", "after", 2), "--no-transactions")
    finish(kgctl, archive, topic, tmp_path, "--no-transactions")
    found = contents(our_cluster.bootstrap_servers, topic, PARTITIONS)
    assert {number: list(dict.fromkeys(some)) for number, some in found.items()} == {
        number: of_rows(rows(number)) for number in range(PARTITIONS)
    }
    assert PARTITIONS * RECORDS < sum(map(len, found.values())) <= PARTITIONS * RECORDS + 500
