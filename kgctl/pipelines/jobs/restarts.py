"""Which failures of a job pass by themselves, so that the run starts the job again instead of ending."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Protocol

from kgctl.client.net.errors import KgctlError
from kgctl.pipelines.jobs.checkpoint_files import OTHER_OUT, DamagedCheckpoint, verify_state
from kgctl.pipelines.progress import Progress
from kgctl.pipelines.settings import RunSettings
from kgctl.pipelines.spark.failures import Interrupted, JobFailed, StateUnreadable, WorkerDidNotStart, reason_of

# From the first failure in a row: how long the machine may be too busy. `--max-outage` says it of the cluster.
WORKER_PATIENCE_S = 900.0
_PAUSE_S = 2.0
_NOTE_EVERY_S = 60.0
_UNREACHABLE = ("UNREACHABLE", "TIMED_OUT", "REQUEST_TIMED_OUT", "LEADER_NOT_AVAILABLE", "NOT_LEADER_OR_FOLLOWER")


class Clock(Protocol):
    def __call__(self) -> float: ...


class Run(Protocol):
    """Of the jobs, or of an archive."""

    @property
    def settings(self) -> RunSettings: ...
    @property
    def emit(self) -> Callable[[Progress], None]: ...
    @property
    def stop(self) -> threading.Event: ...


class Restarts:
    """For one job of a run. A job may be started again: Spark's checkpoint and the manifests repeat nothing.

    A worker that does not start is no reason to end a run; a cluster that does not answer is none for a run that follows.
    """

    def __init__(self, run: Run, job: str, now: Clock = time.monotonic) -> None:
        self._run, self._job, self._now = run, job, now
        self._failed_since: float | None = None
        self._noted: tuple[str, float] | None = None

    def succeeded(self) -> None:
        """The job made progress, so the next failure is the first again."""
        self._failed_since = self._noted = None

    def pause_after(self, error: Exception) -> None:
        """Return when the job should be started again. Raises JobFailed if it should not, Interrupted if the user ended it."""
        if self._run.stop.is_set():
            raise Interrupted from error
        reason = reason_of(error)
        if self._failed_since is None:
            self._failed_since = self._now()
        if self._now() - self._failed_since > self._patience_s(reason):
            raise JobFailed(self._job, self._explained(reason)) from error
        self._note(f"job {self._job} starts again: {reason}")
        if self._run.stop.wait(_PAUSE_S):
            raise Interrupted from error

    def _note(self, text: str) -> None:
        """Emit a note, the same one at most once a minute: an outage may last a quarter of an hour."""
        now = self._now()
        if self._noted is None or self._noted[0] != text or now - self._noted[1] >= _NOTE_EVERY_S:
            self._noted = text, now
            self._run.emit(Progress("note", text, job=self._job))

    def _explained(self, reason: KgctlError) -> KgctlError:
        """Spark names the file of its state that it cannot read in the log at most, and gives no advice."""
        if reason.name not in (KgctlError.name, StateUnreadable.name):
            return reason
        checkpoint = self._run.settings.checkpoint_dir / self._job
        try:
            verify_state(checkpoint)
        except DamagedCheckpoint as found:
            return found
        except OSError:
            pass
        if isinstance(reason, StateUnreadable):
            return DamagedCheckpoint(checkpoint / "state", f"cannot be loaded ({reason})", OTHER_OUT)
        return reason

    def _patience_s(self, reason: KgctlError) -> float:
        if isinstance(reason, WorkerDidNotStart):
            return WORKER_PATIENCE_S
        is_outage = reason.name in _UNREACHABLE and not reason.is_final
        settings = self._run.settings
        return settings.max_outage_s if is_outage and settings.follow else -1.0


def until_it_ends(restarts: Restarts, work: Callable[[], int]) -> int:
    """What a batch job returns, after as many starts as it takes."""
    while True:
        try:
            return work()
        except Exception as error:  # noqa: BLE001  (raised again unless it passes by itself)
            restarts.pause_after(error)
