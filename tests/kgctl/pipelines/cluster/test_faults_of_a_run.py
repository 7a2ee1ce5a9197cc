"""A run ends well on a machine that is too busy, after an outage of the broker, and on a disk that was full."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.local import LocalBroker
from kgctl.client.admin.offsets import commit
from tests.harness.commandline import Kgctl, fill
from tests.harness.ports import kept_address
from tests.kgctl.pipelines.cluster.programs import Program, running
from tests.kgctl.pipelines.runs import rows, run

pytestmark = [pytest.mark.cluster, pytest.mark.spark, pytest.mark.timeout(900)]
COMMITS = 30
# The first Python worker of a stream starts later than Spark allows.
SLOW_PYTHON = """#!/bin/sh
case "$*" in *streaming_source_runner*) if mkdir "{folder}/slept" 2>/dev/null; then sleep 12; fi ;; esac
exec "{python}" "$@"
"""


@pytest.fixture
def broker() -> Iterator[LocalBroker]:
    with LocalBroker(listen=kept_address()) as broker:
        kgctl = Kgctl(broker.bootstrap_servers)
        assert kgctl("topics", "create", "orders").exit_code == 0
        fill(kgctl, "orders", [100])
        commit_offsets(kgctl, 1, COMMITS)
        yield broker


def commit_offsets(kgctl: Kgctl, first: int, last: int) -> None:
    with kgctl.admin() as admin:
        for offset in range(first, last + 1):
            assert admin.run(commit(admin.cluster, "readers", {("orders", 0): offset})) == {("orders", 0): None}


def committed(out: Path) -> list[int]:
    return sorted(row["committed"] for row in rows(out, "commits") if row["group"] == "readers")


def test_a_worker_that_starts_too_late_does_not_end_a_run(broker: LocalBroker, tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text(SLOW_PYTHON.format(folder=tmp_path, python=sys.executable))
    python.chmod(0o755)
    env = {**os.environ, "PYSPARK_PYTHON": str(python)}
    done = run(Kgctl(broker.bootstrap_servers), tmp_path / "out", "decode", env=env)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "slept").exists()
    assert "job decode starts again: a Python worker did not start" in done.stderr
    assert committed(tmp_path / "out") == list(range(1, COMMITS + 1))


def test_a_following_run_continues_after_an_outage(broker: LocalBroker, tmp_path: Path) -> None:
    kgctl, out = Kgctl(broker.bootstrap_servers), tmp_path / "out"
    out.mkdir()
    command = ["kgctl", "pipeline", "run", "decode", "lag", "--follow", "--trigger", "0.5", "--step", "1", "--quick"]
    place = ["--json", "--out", str(out), "--bootstrap", broker.bootstrap_servers]
    with running([*command, *place], tmp_path / "stderr", tmp_path) as program:
        await_rows(program, out, COMMITS)
        broker.kill()
        program.await_line(lambda line: "cannot commit the position" in line.get("text", "") or "again" in str(line))
        broker.start()
        commit_offsets(kgctl, COMMITS + 1, 2 * COMMITS)
        await_rows(program, out, 2 * COMMITS)
        assert program.process.poll() is None
    assert committed(out) == list(range(1, 2 * COMMITS + 1))


def await_rows(program: Program, out: Path, count: int) -> None:
    program.await_that(lambda: len(committed(out)) >= count, f"{count} commits")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own with 400 kB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=400k", "tmpfs", folder], capture_output=True, check=False
    ).returncode:
        pytest.skip("mounting a small file system needs root")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


@pytest.mark.parametrize("free_kb", [4, 16])
def test_a_full_disk_is_one_line_and_the_next_run_continues(
    broker: LocalBroker, small_disk: Path, free_kb: int
) -> None:
    kgctl, out, filler = Kgctl(broker.bootstrap_servers), small_disk / "out", small_disk / "filler"
    out.mkdir()
    (out / "spark.log").touch()
    free = os.statvfs(small_disk).f_bavail * os.statvfs(small_disk).f_bsize
    filler.write_bytes(b"x" * (free - free_kb * 1024))
    failed = run(kgctl, out, "decode")
    assert failed.returncode == 1
    assert "Traceback" not in failed.stderr
    assert "no space is left on a disk" in failed.stderr.splitlines()[-1]
    assert f"{out} has 0 MB free" in failed.stderr.splitlines()[-1]
    assert len(committed(out)) in (0, COMMITS)
    filler.unlink()
    done = run(kgctl, out, "decode")
    assert done.returncode == 0, done.stderr
    assert committed(out) == list(range(1, COMMITS + 1))
