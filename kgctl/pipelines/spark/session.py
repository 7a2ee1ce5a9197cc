"""Opens a Spark session configured for the pipelines, on this machine or on a cluster, and cleans up after it."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import kgctl
from kgctl.client.net.errors import KgctlError
from kgctl.pipelines.settings import RunSettings
from kgctl.pipelines.spark import fast_start, launcher
from kgctl.pipelines.spark.failures import reason_of
from kgctl.pipelines.spark.installation import pyspark_dir
from kgctl.pipelines.spark.java import find_java
from kgctl.pipelines.spark.launcher import Launch, SparkDidNotStart
from kgctl.pipelines.spark.scratch import scratch_folder
from kgctl.pipelines.timings import UNTIMED, Timings

if TYPE_CHECKING:
    from py4j.java_gateway import JavaGateway
    from pyspark.sql import SparkSession

_MAX_LOCAL_SHUFFLE_PARTITIONS = 8
_MAX_LOCAL_MEMORY_MB = 4096
# How often a task may fail; Spark's default on clusters.
_TASK_MAX_FAILURES = "4"
_LOCAL_MASTER = re.compile(r"local(?:\[\s*(?P<cores>\d+|\*)\s*(?:,\s*(?P<max_failures>\d+)\s*)?\])?")
_STATE_STORE = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"

# Spark walks query plans, and the code that it generates from them, by deep recursion.
_STACK_FLAG = "-Xss8m"
# Without it Arrow checks the bounds of each value that Spark reads: a sixth of the time in which rows are made.
_ARROW_FLAG = "-Darrow.enable_unsafe_memory_access=true"
# C1 alone and the serial collector: a short run ends before better code would pay off. C1 alone would have 48 MB for
# compiled code, which four jobs fill; after that, Java interprets.
_QUICK_FLAGS = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC"

# What the jobs rely on wherever Spark runs. Timestamps in Parquet: microseconds, which every reader understands.
_SQL_CONF = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.streaming.stateStore.providerClass": _STATE_STORE,
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
}

# For machines that are too busy: how long Python may take to fetch a result, and how long a part of Spark may be silent.
_PATIENT_CONF = {
    "spark.python.authenticate.socketTimeout": "300s",
    "spark.network.timeout": "300s",
    "spark.sql.broadcastTimeout": "900",
}


class ConnectFailed(KgctlError):
    name = "SPARK_CONNECT_FAILED"


@contextlib.contextmanager
def open_session(
    settings: RunSettings,
    *,
    app_name: str = "kgctl",
    jars: Sequence[str] = (),
    end_timeout_s: float = 20.0,
    timings: Timings = UNTIMED,
) -> Iterator[SparkSession]:
    """One session at a time in a process. Raises JavaMissing, SparkMissing, SparkDidNotStart or ConnectFailed."""
    with _interpreter_set_up():
        if settings.remote:
            opened = _remote(settings, app_name)
        else:
            opened = _classic(settings, app_name, jars, end_timeout_s, timings)
        with opened as spark:
            yield spark


@contextlib.contextmanager
def _classic(
    settings: RunSettings,
    app_name: str,
    jars: Sequence[str],
    end_timeout_s: float,
    timings: Timings,
) -> Iterator[SparkSession]:
    with timings.phase("java"):
        java = find_java()
    for note in java.notes:
        sys.stderr.write(f"{note}\n")
    with scratch_folder() as scratch:
        log = Path(settings.log_file) if settings.log_file else scratch / "spark.log"
        launch = Launch(
            java=java,
            conf=spark_conf(settings, app_name=app_name, jars=jars, scratch=scratch),
            environ=_environ(settings.master),
            scratch=scratch,
            log=log,
            log_begin=log.stat().st_size if log.exists() else 0,
        )
        launched = fast_start.launched if fast_start.is_enabled(settings.master) else launcher.launched
        began = time.monotonic()
        with launched(launch, end_timeout_s) as gateway:
            timings.took("jvm", time.monotonic() - began)
            with _session_of(gateway, timings) as spark:
                yield spark


@contextlib.contextmanager
def _session_of(gateway: JavaGateway, timings: Timings) -> Iterator[SparkSession]:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    began = time.monotonic()
    try:
        with _with_texts(), _own_interrupt_handler():
            SparkContext(gateway=gateway)
            spark = SparkSession.builder.getOrCreate()
        try:
            with _with_texts():
                register_source(spark)
            timings.took("session", time.monotonic() - began)
            yield spark
        finally:
            _stop(spark)
    finally:
        gateway.shutdown()
        # pyspark keeps the gateway for the life of the interpreter; the next session here needs a new JVM.
        SparkContext._gateway = SparkContext._jvm = None


@contextlib.contextmanager
def _with_texts() -> Iterator[None]:
    """Converts Java's errors while the JVM, which holds their texts, still runs. Raises SparkDidNotStart or a more specific error."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (Py4JError, PySparkException) as error:
        reason = reason_of(error)
        raise SparkDidNotStart(str(reason)) if reason.name == KgctlError.name else reason from error


@contextlib.contextmanager
def _own_interrupt_handler() -> Iterator[None]:
    """Keep the caller's handler of Ctrl-C. Spark installs one that raises KeyboardInterrupt wherever the program is."""
    before = signal.getsignal(signal.SIGINT)
    yield
    if before is not signal.default_int_handler and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, before)


def _stop(spark: SparkSession) -> None:
    """Stop queries and session. Errors of a lost JVM or a broken session must not hide the one that explains them."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    with contextlib.suppress(Py4JError, PySparkException, OSError):
        for query in spark.streams.active:
            query.stop()
    with contextlib.suppress(Py4JError, PySparkException, OSError):
        spark.stop()


@contextlib.contextmanager
def _remote(settings: RunSettings, app_name: str) -> Iterator[SparkSession]:
    """Over Spark Connect: JVM and settings are the server's; only SQL settings can be chosen here."""
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.remote(settings.remote).appName(app_name)
    for key, value in (*_SQL_CONF.items(), *settings.conf):
        builder = builder.config(key, value)
    try:
        spark = builder.getOrCreate()
    except ImportError as failure:
        raise ConnectFailed(
            f"Spark Connect needs more of pyspark: pip install 'pyspark[connect]' ({failure})"
        ) from failure
    except PySparkException as failure:
        raise ConnectFailed(f"cannot open a Spark Connect session at {settings.remote}: {failure}") from failure
    try:
        register_source(spark)
        yield spark
    finally:
        spark.stop()


def register_source(spark: SparkSession) -> None:
    """Make format("kgctl") known to the session."""
    from kgctl.pipelines.source.datasource import KgctlDataSource

    spark.dataSource.register(KgctlDataSource)


def spark_conf(settings: RunSettings, *, app_name: str, jars: Sequence[str], scratch: Path) -> dict[str, str]:
    """The complete configuration; the user's settings override ours."""
    own = dict(settings.conf)
    conf = {
        "spark.master": _with_retries(settings.master, own.get("spark.task.maxFailures", _TASK_MAX_FAILURES)),
        "spark.app.name": app_name,
        "spark.driver.defaultJavaOptions": f"{_STACK_FLAG} {_QUICK_FLAGS}" if settings.quick else _STACK_FLAG,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        # For messages of Spark, each function of columns would ask the JVM twice where it was called: a second per query.
        "spark.python.sql.dataFrameDebugging.enabled": "false",
        **_PATIENT_CONF,
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.warehouse.dir": (scratch / "warehouse").as_uri(),
        **_SQL_CONF,
    }
    if jars:
        conf["spark.jars"] = ",".join(jars)
    if settings.master.startswith("local"):
        conf["spark.driver.defaultJavaOptions"] += f" {_ARROW_FLAG}"
        conf |= {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.local.dir": str(scratch / "local"),
            "spark.driver.memory": f"{_local_memory_mb(settings.quick)}m",
        }
    if _LOCAL_MASTER.fullmatch(settings.master):
        conf["spark.sql.shuffle.partitions"] = str(min(_local_cores(settings.master), _MAX_LOCAL_SHUFFLE_PARTITIONS))
    else:
        conf["spark.executorEnv.PYTHONPATH"] = _python_path(os.environ)
    return conf | own


def _with_retries(master: str, max_failures: str) -> str:
    """local[N] as local[N,F]: otherwise a local task that fails once fails its job, whatever spark.task.maxFailures is."""
    local = _LOCAL_MASTER.fullmatch(master)
    if local is None or local["max_failures"] is not None:
        return master
    return f"local[{local['cores'] or 1},{max_failures}]"


def _local_cores(master: str) -> int:
    local = _LOCAL_MASTER.fullmatch(master)
    cores = local["cores"] if local else None
    return (os.cpu_count() or 1) if cores == "*" else int(cores or 1)


def _local_memory_mb(quick: bool) -> int:
    """The JVM's upper limit: half of the machine's memory, within bounds."""
    if quick:
        return 1024
    total_mb = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20 if hasattr(os, "sysconf") else 2048
    return max(1024, min(total_mb // 2, _MAX_LOCAL_MEMORY_MB))


def _environ(master: str) -> dict[str, str]:
    """The environment of the JVM and, through it, of the Python workers on this machine."""
    environ = {**os.environ, "TZ": "UTC", "PYTHONPATH": _python_path(os.environ)}
    environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if master.startswith("local"):
        # The Spark that pyspark brings, whatever other Spark the user has.
        environ["SPARK_HOME"] = str(pyspark_dir())
    return environ


def _python_path(environ: Mapping[str, str]) -> str:
    """With this kgctl, which may run from a checkout without being installed."""
    root = str(Path(kgctl.__file__).parent.parent)
    paths = [path for path in environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    return os.pathsep.join([*paths, *([] if root in paths else [root])])


@contextlib.contextmanager
def _interpreter_set_up() -> Iterator[None]:
    """pyspark converts timestamps in the interpreter's time zone, and starts workers with PYSPARK_PYTHON."""
    before = {name: os.environ.get(name) for name in ("TZ", "PYSPARK_PYTHON")}
    os.environ["TZ"] = "UTC"
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    _reread_time_zone()
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        _reread_time_zone()


def _reread_time_zone() -> None:
    if hasattr(time, "tzset"):
        time.tzset()
