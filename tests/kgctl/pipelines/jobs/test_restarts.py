"""A job starts again after a failure that passes by itself, but not forever."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any, cast

import pytest

from kgctl.client.net.errors import AuthenticationFailed, KgctlError, Unreachable
from kgctl.exit_codes import exit_code_of
from kgctl.pipelines.jobs import restarts
from kgctl.pipelines.jobs.context import RunContext
from kgctl.pipelines.jobs.restarts import WORKER_PATIENCE_S, Restarts, until_it_ends
from kgctl.pipelines.settings import RunSettings
from kgctl.pipelines.source.losses import DataLoss
from kgctl.pipelines.spark.failures import Interrupted, JobFailed, WorkerDidNotStart
from tests.kgctl.pipelines.jobs.checkpoint import make_checkpoint

# As Spark reports it in a stream, and in a task.
NO_WORKER = RuntimeError(
    "[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: Python worker failed to connect back. SQLSTATE: XXKST"
)
AWAY = RuntimeError("x\nkgctl.client.net.errors.Refused: 127.0.0.1:1: nothing listens there\n\tat y")


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(restarts, "_PAUSE_S", 0.0)


class Run:
    def __init__(self, out: Path, *, follow: bool = False) -> None:
        self.notes: list[str] = []
        self.now = 0.0
        settings = RunSettings(("decode",), "a:1", str(out), follow=follow, max_outage_s=60)
        emit = cast(Any, lambda progress: self.notes.append(progress.text))
        self.context = RunContext(cast(Any, None), settings, frozenset(), "c", emit, threading.Event())
        self.restarts = Restarts(self.context, "decode", lambda: self.now)

    def fails(self, error: Exception, at: float) -> KgctlError | None:
        """The failure of the run, or None if the job starts again."""
        self.now = at
        try:
            self.restarts.pause_after(error)
        except JobFailed as failure:
            return failure
        return None


def test_a_worker_that_does_not_start_is_tried_again_for_a_quarter_of_an_hour(tmp_path: Path) -> None:
    run = Run(tmp_path)
    assert run.fails(NO_WORKER, 0) is None
    assert run.fails(NO_WORKER, WORKER_PATIENCE_S) is None
    assert run.notes[0] == f"job decode starts again: {WorkerDidNotStart()}"
    failure = run.fails(NO_WORKER, WORKER_PATIENCE_S + 1)
    assert failure is not None
    assert "the machine is too busy" in str(failure)


def test_progress_starts_the_patience_again(tmp_path: Path) -> None:
    run = Run(tmp_path)
    assert run.fails(NO_WORKER, 0) is None
    run.restarts.succeeded()
    assert run.fails(NO_WORKER, WORKER_PATIENCE_S + 1) is None


def test_a_cluster_that_is_away_ends_a_run_unless_it_follows(tmp_path: Path) -> None:
    failure = Run(tmp_path).fails(AWAY, 0)
    assert failure is not None
    assert exit_code_of(failure) == 7
    following = Run(tmp_path, follow=True)
    assert following.fails(AWAY, 0) is None
    assert following.fails(Unreachable("b:1: away"), 60) is None
    assert following.fails(AWAY, 61) is not None


@pytest.mark.parametrize("error", [AuthenticationFailed("no"), DataLoss("gone"), RuntimeError("x"), KgctlError("y")])
def test_other_failures_end_a_run(tmp_path: Path, error: Exception) -> None:
    assert Run(tmp_path, follow=True).fails(error, 0) is not None


def test_a_run_that_the_user_ended_does_not_start_again(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.context.stop.set()
    with pytest.raises(Interrupted):
        run.restarts.pause_after(NO_WORKER)


def test_a_batch_job_runs_until_it_ends(tmp_path: Path) -> None:
    run, failures = Run(tmp_path), [NO_WORKER, NO_WORKER]

    def work() -> int:
        if failures:
            raise failures.pop()
        return 7

    assert until_it_ends(run.restarts, work) == 7
    assert len(run.notes) == 1


def test_the_same_reason_is_noted_once_a_minute(tmp_path: Path) -> None:
    run = Run(tmp_path, follow=True)
    for second in range(0, 60, 2):
        assert run.fails(AWAY, second) is None
    assert len(run.notes) == 1
    assert run.fails(NO_WORKER, 59) is None
    assert run.fails(AWAY, 60) is None
    assert len(run.notes) == 3
    run.restarts.succeeded()
    assert run.fails(AWAY, 61) is None
    assert len(run.notes) == 4
    for second in range(62, 121):
        assert run.fails(AWAY, second) is None
    assert len(run.notes) == 4
    assert run.fails(AWAY, 121) is None
    assert len(run.notes) == 5


def test_a_state_that_cannot_be_loaded_has_a_remedy(tmp_path: Path) -> None:
    text = "x\norg.apache.spark.SparkException: [CANNOT_LOAD_STATE_STORE.X] y\nCaused by: org.rocksdb.RocksDBException: bad"
    failure = Run(tmp_path).fails(RuntimeError(text), 0)
    assert failure is not None
    assert "decode/state cannot be loaded (bad); restore it from a backup, or give another --out" in str(failure)


def test_damage_of_the_state_explains_a_failure_of_spark(tmp_path: Path) -> None:
    run = Run(tmp_path)
    checkpoint = run.context.settings.checkpoint_dir / "decode"
    make_checkpoint(checkpoint, 2)
    partition = checkpoint / "state" / "0" / "0"
    partition.mkdir(parents=True)
    failure = run.fails(RuntimeError("[CANNOT_LOAD_STATE_STORE] An error occurred during loading state."), 0)
    assert failure is not None
    assert f"{partition / '2.zip'} is missing; restore it" in str(failure)
    assert exit_code_of(failure) == 6
