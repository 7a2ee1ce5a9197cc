"""The Spark process: reads its settings as one JSON line from stdin, and writes progress as JSON lines to stdout."""

from __future__ import annotations

import os
import signal

from kgctl.exit_codes import INTERRUPTED, exit_code_of

if __name__ == "__main__":
    # Before the other imports, which take most of a second: until main() there is nothing to stop in order.
    for _number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(_number, lambda *_: os._exit(INTERRUPTED))

import contextlib
import sys
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from kgctl.client.admin.admin import Admin
from kgctl.client.net.connector import DEFAULT_CLIENT_ID
from kgctl.client.net.errors import KgctlError, NotFound
from kgctl.pipelines.catalog import in_order, upstream
from kgctl.pipelines.jobs.checkpoints import check, check_inputs
from kgctl.pipelines.progress import Progress
from kgctl.pipelines.run_size import is_small
from kgctl.pipelines.schemas import TABLES
from kgctl.pipelines.schemas.sources import EVENTS_TOPIC, OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from kgctl.pipelines.settings import RunSettings, from_json
from kgctl.pipelines.source.secured import check_secured, secured_options
from kgctl.pipelines.spark.disk_space import advice
from kgctl.pipelines.spark.failures import DiskFull, Interrupted, reason_of
from kgctl.pipelines.tables.formats import check_format, set_format
from kgctl.pipelines.tables.manifest import held_by_one_run
from kgctl.pipelines.timings import Timings
from kgctl.pipelines.topic_names import matching

if TYPE_CHECKING:
    from kgctl.pipelines.results.delivery import Delivery

# When the command that started it was killed, this process ends after this time at the latest: a kill loses nothing.
_STOP_TIMEOUT_S = 5.0

Emit = Callable[[Progress], None]


def main() -> int:
    """Return the exit code. The parent holds stdin open; when it closes, this process ends too."""
    progress_lines = os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1)
    # Output of libraries must not mix with the JSON lines.
    os.dup2(2, 1)
    settings = from_json(sys.stdin.readline())
    lock, stop = threading.Lock(), threading.Event()

    def emit(progress: Progress) -> None:
        with lock:
            progress_lines.write(progress.to_json() + "\n")

    emit(Progress("ready"))
    _stop_on_signals(stop)
    threading.Thread(target=_end_with_parent, args=(stop,), daemon=True).start()
    try:
        _work(settings, emit, stop)
    except (Interrupted, KeyboardInterrupt):
        # Until Spark has started, its own handler may raise the latter.
        return INTERRUPTED
    except Exception as error:  # noqa: BLE001  the root of this process
        failure = reason_of(error)
        is_full = failure.name == DiskFull.name
        text = f"{failure}: {advice(settings)}" if is_full else str(failure)
        job, says_all = getattr(failure, "job", None), getattr(failure, "says_all", False)
        emit(Progress("failed", text, job=job, exit_code=exit_code_of(failure), says_all=says_all or None))
        # The log may be on a full disk.
        with contextlib.suppress(OSError):
            traceback.print_exc()
        return exit_code_of(failure)
    return 0


def _stop_on_signals(stop: threading.Event) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())


def _end_with_parent(stop: threading.Event) -> None:
    if sys.stdin.read() == "":
        stop.set()
        # Time to stop queries in order; the JVM ends with this process.
        time.sleep(_STOP_TIMEOUT_S)
        os._exit(INTERRUPTED)


def _work(settings: RunSettings, emit: Emit, stop: threading.Event) -> None:
    out = Path(settings.out)
    delivery: Delivery | None = None
    if settings.is_archive:
        from kgctl.pipelines.archive.run import run_archive, session_of_its_own

        with held_by_one_run(out):
            run_archive(settings, emit, stop, session_of_its_own(settings, emit, stop, lambda: _stop_on_signals(stop)))
    if settings.jobs:
        with held_by_one_run(out):
            check_format(out, settings.table_format, list(TABLES))
            set_format(out, settings.table_format)
            delivery = _run(settings, emit, stop)
    if settings.report:
        from kgctl.pipelines.report import build

        emit(Progress("job", job="report"))
        emit(Progress("done", str(build(out).html), job="report"))
    if delivery is not None:
        delivery.conclude()


def _run(settings: RunSettings, emit: Emit, stop: threading.Event) -> Delivery:
    """Run all jobs, and deliver verdicts to the sinks."""
    check_secured(settings)
    timings = Timings(emit)
    jobs = in_order(settings.jobs)
    with timings.phase("cluster"):
        topics, cluster_id = _check_cluster(settings)
        for job in jobs:
            if job.is_stream:
                check(settings.checkpoint_dir / job.name, job, cluster_id, settings)
            else:
                check_inputs(job, cluster_id, settings)
        settings = replace(settings, quick=settings.quick or is_small(settings, jobs, topics))
    emit(Progress("starting", "starting Spark, which takes a few seconds"))
    began = time.monotonic()
    from kgctl.pipelines.spark.connector_jars import needed_jars
    from kgctl.pipelines.spark.session import open_session

    jars = needed_jars(settings) if settings.source == "kafka" else ()
    with (
        secured_options(settings) as options,
        open_session(settings, app_name=" ".join(["kgctl", *settings.jobs]), jars=jars, timings=timings) as spark,
    ):
        # Spark has installed its own handler, which would end a job anywhere.
        _stop_on_signals(stop)
        emit(Progress("started", f"Spark {spark.version} started in {time.monotonic() - began:.1f} s"))
        # These import pyspark: now it is loaded, which took no longer than the start of the JVM.
        from kgctl.pipelines.jobs.context import RunContext
        from kgctl.pipelines.jobs.loop import run_jobs
        from kgctl.pipelines.results.delivery import Delivery

        delivery = Delivery(settings, cluster_id, emit, stop)
        run_jobs(RunContext(spark, settings, topics, cluster_id, emit, stop, options, after_round=delivery.after_round))
    return delivery


def _check_cluster(settings: RunSettings) -> tuple[frozenset[str], str]:
    """The internal topics that jobs can read, and the cluster id. Fails early, before Spark takes seconds to start."""
    with Admin(settings.connection(DEFAULT_CLIENT_ID)) as admin:
        answer = admin.run(admin.cluster.metadata(None))
    topics = frozenset(topic.name for topic in answer.topics if topic.name is not None and not topic.error_code)
    jobs = in_order(settings.jobs)
    needs_offsets = any(OFFSETS_TOPIC in one.topics for job in jobs for one in (job, *upstream(job)))
    if needs_offsets and OFFSETS_TOPIC not in topics:
        raise NotFound(f"topic {OFFSETS_TOPIC!r} does not exist: no group has committed on this cluster yet")
    matching(topics, settings.topics)
    return topics & {OFFSETS_TOPIC, EVENTS_TOPIC, TRANSACTIONS_TOPIC}, answer.cluster_id or ""


if __name__ == "__main__":
    try:
        code = main()
    except KgctlError as error:
        sys.stderr.write(f"Error: {error}\n")
        code = exit_code_of(error)
    with contextlib.suppress(OSError):
        sys.stderr.flush()
    # Spark's Python threads would delay the end of a process that is done.
    os._exit(code)
