"""Each kind of file of a checkpoint that Spark wrote, damaged in each way: one line, exit code 6, nothing is lost or repeated."""

from __future__ import annotations

import json
import shutil
import threading
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from broker.local import LocalBroker
from kgctl.exit_codes import exit_code_of
from kgctl.pipelines.jobs.checkpoints import OWNER, READ_UNTIL
from kgctl.pipelines.jobs.context import RunContext
from kgctl.pipelines.jobs.loop import run_jobs
from kgctl.pipelines.schemas.sources import EVENTS_TOPIC, OFFSETS_TOPIC
from kgctl.pipelines.settings import RunSettings
from kgctl.pipelines.spark.failures import JobFailed
from kgctl.pipelines.tables.manifest import TableFolder
from tests.harness.commandline import Kgctl, fill, member_of
from tests.kgctl.pipelines.cluster.pipeline_runs import comparable
from tests.kgctl.pipelines.jobs.checkpoint import DAMAGES, write
from tests.kgctl.pipelines.runs import rows, run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]

TABLES = ("commits", "f_rebalance")
REPEATS, PLANNED = "remove it: the next run repeats batch", "remove it: nothing was written from it"


@dataclass(frozen=True, slots=True)
class Made:
    """A broker, what runs in several batches made from a part of its records, and the tables of all its records."""

    kgctl: Kgctl
    cluster_id: str
    spark: SparkSession
    out: Path
    complete: dict[str, list[str]]

    def copied(self, tmp_path: Path) -> Path:
        return Path(shutil.copytree(self.out, tmp_path / "out"))

    def run(self, out: Path, *jobs: str) -> None:
        work(self.spark, self.kgctl, self.cluster_id, out, *jobs)


@pytest.fixture(scope="module")
def made(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Made]:
    folder = tmp_path_factory.mktemp("checkpoints")
    with LocalBroker({"group.initial.rebalance.delay.ms": 0}) as broker:
        kgctl = Kgctl(broker.bootstrap_servers)
        assert kgctl("topics", "create", "orders").exit_code == 0
        fill(kgctl, "orders", [100])
        with kgctl.admin() as admin:
            cluster_id = admin.run(admin.cluster.metadata(None)).cluster_id or ""
        for number in range(6):
            traffic(kgctl, number)
        work(spark, kgctl, cluster_id, folder / "out", "decode", "rebalances")
        for number in range(6, 8):
            traffic(kgctl, number)
        work(spark, kgctl, cluster_id, folder / "all", "decode", "rebalances")
        yield Made(kgctl, cluster_id, spark, folder / "out", tables(folder / "all"))


def traffic(kgctl: Kgctl, number: int) -> None:
    with member_of(kgctl, f"group-{number % 2}", {"orders": [0]}):
        pass
    kgctl.commit(f"group-{number % 2}", "orders", p0=number)


def work(spark: SparkSession, kgctl: Kgctl, cluster_id: str, out: Path, *jobs: str) -> None:
    """Run jobs up to the end of their topics, in batches of ten records, and publish no positions."""
    settings = RunSettings(jobs, str(kgctl.bootstrap), str(out), max_offsets_per_trigger=10, read_only=True)
    topics = frozenset({OFFSETS_TOPIC, EVENTS_TOPIC})
    run_jobs(RunContext(spark, settings, topics, cluster_id, lambda _: None, threading.Event()))


def tables(out: Path) -> dict[str, list[str]]:
    return {
        table: comparable([row for row in rows(out, table) if row["group"].startswith("group-")]) for table in TABLES
    }


def newest(folder: Path, pattern: str = "[0-9]*") -> Path:
    """The file with the highest number."""
    return max(folder.glob(pattern), key=lambda path: int(path.stem.split("-")[0]))


def state_files(out: Path) -> dict[str, Path]:
    """Of the state that the next batch needs: the snapshot, a file that it names, and what describes the operator."""
    operator = out / "_checkpoints" / "rebalances" / "state" / "0"
    snapshot = newest(operator / "0", "*.zip")
    with zipfile.ZipFile(snapshot) as content:
        first = json.loads(content.read("metadata").partition(b"\n")[2])["sstFiles"][0]["dfsSstFileName"]
    described = newest(operator / "_metadata" / "v2")
    (store,) = json.loads(described.read_bytes().splitlines()[1])["stateStoreInfo"]
    return {
        "snapshot": snapshot,
        "SST": operator / "0" / "SSTs" / first,
        "operator": described,
        # Where the first run wrote it, also in a copy.
        "schema": Path(store["stateSchemaFilePaths"][0].removeprefix("file:")),
    }


def files_of(out: Path) -> list[Path]:
    return sorted(path for table in TABLES for path in TableFolder(out / table).files())


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("file", ["metadata", "offsets, newest", "offsets, second", "commits", OWNER, READ_UNTIL])
def test_a_run_names_the_damaged_file_before_spark_starts(made: Made, tmp_path: Path, file: str, damage: str) -> None:
    out = made.copied(tmp_path)
    checkpoint = out / "_checkpoints" / "decode"
    last = newest(checkpoint / "offsets")
    paths = {
        "offsets, newest": last,
        "offsets, second": last.with_name(str(int(last.name) - 1)),
        "commits": newest(checkpoint / "commits"),
    }
    path = paths.get(file, checkpoint / file)
    DAMAGES[damage](path)
    if (file, damage) == ("commits", "missing"):
        # As after a kill right before Spark's own commit: the batch is in the tables, and its repetition adds nothing.
        made.run(out, "decode")
        assert tables(out)["commits"] == made.complete["commits"]
        return
    before = files_of(out)
    # lag needs to know how far decode has read.
    failed = run(made.kgctl, out, "lag" if file == READ_UNTIL else "decode")
    assert failed.returncode == 6, failed.stderr
    (line,) = failed.stderr.splitlines()
    assert line.startswith("Error: ")
    assert str(path) in line
    assert files_of(out) == before
    if file == "commits":
        assert REPEATS in line
        path.unlink()
        made.run(out, "decode")
        assert tables(out)["commits"] == made.complete["commits"]


@pytest.mark.parametrize("damage", ["truncated", "empty", "garbage"])
def test_a_plan_that_was_cut_off_can_be_removed(made: Made, tmp_path: Path, damage: str) -> None:
    out = made.copied(tmp_path)
    last = newest(out / "_checkpoints" / "decode" / "offsets")
    plan = last.with_name(str(int(last.name) + 1))
    write(plan, last.read_bytes())
    DAMAGES[damage](plan)
    failed = run(made.kgctl, out, "decode")
    assert failed.returncode == 6, failed.stderr
    (line,) = failed.stderr.splitlines()
    assert str(plan) in line
    assert PLANNED in line
    plan.unlink()
    made.run(out, "decode")
    assert tables(out)["commits"] == made.complete["commits"]


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("kind", ["snapshot", "SST", "operator", "schema"])
def test_damage_of_the_state_is_named_and_a_run_continues_after_a_restore(
    made: Made, tmp_path: Path, kind: str, damage: str
) -> None:
    out = made.copied(tmp_path)
    path = state_files(out)[kind]
    content, before = path.read_bytes(), files_of(out)
    DAMAGES[damage](path)
    try:
        with pytest.raises(JobFailed) as raised:
            made.run(out, "rebalances")
    finally:
        path.write_bytes(content)
    assert exit_code_of(raised.value) == 6
    assert str(path) in str(raised.value)
    assert "\n" not in str(raised.value)
    assert files_of(out) == before
    made.run(out, "rebalances")
    assert tables(out)["f_rebalance"] == made.complete["f_rebalance"]


def test_damage_of_the_state_is_one_line_for_users(made: Made, tmp_path: Path) -> None:
    out = made.copied(tmp_path)
    path = state_files(out)["snapshot"]
    DAMAGES["truncated"](path)
    failed = run(made.kgctl, out, "rebalances")
    assert failed.returncode == 6, failed.stderr
    (line,) = [line for line in failed.stderr.splitlines() if line.startswith("Error: ")]
    assert failed.stderr.splitlines()[-1] == line
    assert f"job rebalances failed: the checkpoint is damaged: {path} " in line
