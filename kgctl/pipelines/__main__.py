"""The process with Spark: told what to do in one line of JSON on stdin, it answers in lines of progress on stdout."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from kgctl.client.admin.admin import Admin
from kgctl.client.net.bootstrap import resolve
from kgctl.client.net.connector import ConnectionSettings
from kgctl.client.net.errors import KgctlError, NotFound
from kgctl.pipelines.catalog import EVENTS_TOPIC, OFFSETS_TOPIC, STREAMING
from kgctl.pipelines.jobs.marker import check, check_commits
from kgctl.pipelines.settings import Progress, RunSettings, from_json
from kgctl.pipelines.spark.failures import Interrupted, reason_of
from kgctl.pipelines.tables.manifest import held_by_one_run

INTERRUPTED = 130


def main() -> int:
    """The exit code. stdin stays open as long as whoever started this lives: when it ends, so does this process."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1)
    # Whatever a library prints must not stand between lines of JSON.
    os.dup2(2, 1)
    settings = from_json(sys.stdin.readline())
    lock, stop = threading.Lock(), threading.Event()

    def emit(progress: Progress) -> None:
        with lock:
            answers.write(progress.to_json() + "\n")

    _listen_for_signals(stop)
    threading.Thread(target=_end_with_parent, args=(stop,), daemon=True).start()
    try:
        _work(settings, emit, stop)
    except Interrupted:
        return INTERRUPTED
    except Exception as error:  # noqa: BLE001  the root of this process, as the command line's is
        traceback.print_exc()
        failure = reason_of(error)
        emit(Progress("failed", str(failure), job=getattr(failure, "job", None), exit_code=failure.exit_code))
        return failure.exit_code
    return 0


def _listen_for_signals(stop: threading.Event) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())


def _end_with_parent(stop: threading.Event) -> None:
    if sys.stdin.read() == "":
        stop.set()
        # Long enough to end queries in order; the JVM goes with this process.
        time.sleep(GRACE_S)
        os._exit(INTERRUPTED)


GRACE_S = 20.0


def _work(settings: RunSettings, emit: Callable[[Progress], None], stop: threading.Event) -> None:
    out = Path(settings.out)
    if settings.jobs:
        with held_by_one_run(out):
            _run(settings, emit, stop)
    if settings.report:
        from kgctl.pipelines.report import build

        emit(Progress("job", job="report"))
        emit(Progress("done", str(build(out).html), job="report"))


def _run(settings: RunSettings, emit: Callable[[Progress], None], stop: threading.Event) -> None:
    topics, cluster_id = _look_at_cluster(settings)
    for job in settings.jobs:
        if job in STREAMING:
            check(settings.checkpoint_dir / job, job, cluster_id, settings)
        else:
            check_commits(job, cluster_id, settings)
    emit(Progress("starting", "starting Spark, which takes a few seconds"))
    began = time.monotonic()
    from kgctl.pipelines.jobs.run import Run, run_jobs
    from kgctl.pipelines.spark.connector_jars import needed_jars
    from kgctl.pipelines.spark.session import open_session

    jars = needed_jars(settings) if settings.source == "kafka" else ()
    with open_session(settings, app_name="kgctl " + " ".join(settings.jobs), jars=jars) as spark:
        # Spark has put a handler of its own in place, which would end a job anywhere.
        _listen_for_signals(stop)
        emit(Progress("started", f"Spark {spark.version} is up after {time.monotonic() - began:.1f} s"))
        run_jobs(Run(spark, settings, topics, cluster_id, emit, stop))


def _look_at_cluster(settings: RunSettings) -> tuple[frozenset[str], str]:
    """What would else be found out only after Spark has started."""
    with Admin(ConnectionSettings(resolve(settings.bootstrap), timeout=settings.timeout_s)) as admin:
        answer = admin.run(admin.cluster.metadata(None))
    topics = frozenset(topic.name for topic in answer.topics if topic.name is not None and not topic.error_code)
    if OFFSETS_TOPIC not in topics:
        raise NotFound(f"topic {OFFSETS_TOPIC!r} does not exist: no group has committed on this cluster yet")
    return topics & {OFFSETS_TOPIC, EVENTS_TOPIC}, answer.cluster_id or ""


if __name__ == "__main__":
    try:
        code = main()
    except KgctlError as error:
        sys.stderr.write(f"Error: {error}\n")
        code = error.exit_code
    sys.stderr.flush()
    # Threads of Spark's Python side must not hold up the end of a process whose work is done.
    os._exit(code)
