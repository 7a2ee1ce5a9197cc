"""A Spark session with the connector's jars in another process: a process has only one session, and ours has no jars."""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from typing import TYPE_CHECKING, Any

from kgctl.client.admin.admin import Admin
from kgctl.pipelines.archive.reading import reader
from kgctl.pipelines.archive.run import run_archive
from kgctl.pipelines.jobs.context import RunContext
from kgctl.pipelines.jobs.loop import run_jobs
from kgctl.pipelines.progress import Progress
from kgctl.pipelines.schemas.sources import EVENTS_TOPIC, OFFSETS_TOPIC
from kgctl.pipelines.settings import RunSettings
from kgctl.pipelines.source.lag_metrics import behind_latest
from kgctl.pipelines.spark.session import open_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_WITHIN_SECONDS = 240
_stack = contextlib.ExitStack()
_session: SparkSession | None = None

Rows = list[tuple[Any, ...]]


class SecondSession:
    """Each method runs in the other process and returns plain values."""

    def __init__(self, pool: ProcessPoolExecutor) -> None:
        self._pool = pool

    def read(self, source: str, options: Mapping[str, str], conf: Mapping[str, str] | None = None) -> Rows:
        """Rows of a batch in order of topic, partition and offset."""
        return self._pool.submit(_read, source, dict(options), dict(conf or {})).result(_WITHIN_SECONDS)

    def stream(
        self, source: str, options: Mapping[str, str], checkpoint: str, conf: Mapping[str, str] | None = None
    ) -> tuple[Rows, list[int]]:
        """The rows of a stream up to the end of the logs, and the sizes of its batches."""
        return self._pool.submit(_stream, source, dict(options), checkpoint, dict(conf or {})).result(_WITHIN_SECONDS)

    def read_fails(self, source: str, options: Mapping[str, str]) -> bool:
        return self._pool.submit(_fails, _read, source, dict(options), {}).result(_WITHIN_SECONDS)

    def stream_fails(self, source: str, options: Mapping[str, str], checkpoint: str) -> bool:
        return self._pool.submit(_fails, _stream, source, dict(options), checkpoint, {}).result(_WITHIN_SECONDS)

    def write_fails(self, source: str, options: Mapping[str, str], query: str) -> bool:
        return self._pool.submit(_fails, _write, source, dict(options), query).result(_WITHIN_SECONDS)

    def behind(self, source: str, options: Mapping[str, str], checkpoint: str) -> list[dict[str, str]]:
        """How far a stream is behind after each batch, as Spark reports it or, for our source, as we compute it."""
        return self._pool.submit(_behind, source, dict(options), checkpoint).result(_WITHIN_SECONDS)

    def write(self, source: str, options: Mapping[str, str], query: str) -> None:
        self._pool.submit(_write, source, dict(options), query).result(_WITHIN_SECONDS)

    def run_jobs(self, settings: RunSettings) -> None:
        """What `kgctl pipeline run` does in a session of its own."""
        self._pool.submit(_run_jobs, settings).result(_WITHIN_SECONDS)

    def archive(self, settings: RunSettings) -> list[Progress]:
        """What `kgctl pipeline archive` does in a session of its own."""
        return self._pool.submit(_archive, settings).result(_WITHIN_SECONDS)


@contextlib.contextmanager
def second_session(jars: tuple[str, ...]) -> Iterator[SecondSession]:
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        pool.submit(_open, jars).result(_WITHIN_SECONDS)
        try:
            yield SecondSession(pool)
        finally:
            pool.submit(_close).result(_WITHIN_SECONDS)


def _open(jars: tuple[str, ...]) -> None:
    global _session
    folder = _stack.enter_context(tempfile.TemporaryDirectory())
    conf = (("spark.sql.shuffle.partitions", "1"), ("spark.sql.adaptive.enabled", "false"))
    settings = RunSettings(
        (), "127.0.0.1:1", folder, master="local[2]", conf=conf, quick=True, log_file=f"{folder}/spark.log"
    )
    _session = _stack.enter_context(open_session(settings, app_name="second", jars=jars))


def _close() -> None:
    _stack.close()


@contextlib.contextmanager
def _conf(conf: dict[str, str]) -> Iterator[SparkSession]:
    assert _session is not None
    for key, value in conf.items():
        _session.conf.set(key, value)
    try:
        yield _session
    finally:
        for key in conf:
            _session.conf.unset(key)


def _read(source: str, options: dict[str, str], conf: dict[str, str]) -> Rows:
    with _conf(conf) as spark:
        return _rows(spark.read.format(source).options(**options).load())


def _stream(source: str, options: dict[str, str], checkpoint: str, conf: dict[str, str]) -> tuple[Rows, list[int]]:
    rows: Rows = []
    sizes: list[int] = []

    def collect(frame: DataFrame, _: int) -> None:
        came = _rows(frame)
        rows.extend(came)
        sizes.append(len(came))

    with _conf(conf) as spark:
        frame = spark.readStream.format(source).options(**options).load()
        writer = frame.writeStream.foreachBatch(collect).option("checkpointLocation", checkpoint)
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
        query.stop()
    return sorted(rows, key=lambda row: row[2:5]), sizes


def _fails(work: Callable[..., object], *arguments: object) -> bool:
    try:
        work(*arguments)
    except Exception:  # noqa: BLE001  (Java's exceptions, and errors that cannot be pickled)
        return True
    return False


def _behind(source: str, options: dict[str, str], checkpoint: str) -> list[dict[str, str]]:
    with _conf({}) as spark:
        frame = spark.readStream.format(source).options(**options).load()
        writer = frame.writeStream.format("noop").option("checkpointLocation", checkpoint)
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
        events = [json.loads(event.json)["sources"][0] for event in query.recentProgress if event.numInputRows]
    if source == "kafka":
        return [event["metrics"] for event in events]
    return [found.metrics() for found in map(behind_latest, events) if found is not None]


def _write(source: str, options: dict[str, str], query: str) -> None:
    assert _session is not None
    _session.sql(query).write.format(source).mode("append").options(**options).save()


def _run_jobs(settings: RunSettings) -> None:
    assert _session is not None
    with Admin(settings.connection("second")) as admin:
        answer = admin.run(admin.cluster.metadata(None))
    topics = {topic.name for topic in answer.topics if topic.name} & {OFFSETS_TOPIC, EVENTS_TOPIC}
    cluster_id = answer.cluster_id or ""
    run_jobs(RunContext(_session, settings, frozenset(topics), cluster_id, lambda _: None, threading.Event()))


def _archive(settings: RunSettings) -> list[Progress]:
    assert _session is not None
    progress: list[Progress] = []
    stop = threading.Event()
    read = reader(_session, settings, {}, progress.append, stop)
    run_archive(settings, progress.append, stop, contextlib.nullcontext(lambda: read))
    return progress


def _rows(frame: DataFrame) -> Rows:
    return [
        tuple(value if not isinstance(value, list) else [tuple(one) for one in value] for value in row)
        for row in frame.orderBy("topic", "partition", "offset").collect()
    ]
