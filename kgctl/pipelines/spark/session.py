"""Opens a Spark session as the pipelines need it, on this machine or on a cluster, and leaves nothing behind."""

from __future__ import annotations

import contextlib
import os
import re
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import kgctl
from kgctl.client.net.errors import KgctlError
from kgctl.pipelines.settings import RunSettings
from kgctl.pipelines.spark.class_archive import drop, find, make_in_background, using_flags
from kgctl.pipelines.spark.gateway import (
    QUICK_FLAGS,
    GatewayFailed,
    Jvm,
    Launch,
    connect,
    launch_by_spark,
    needs_sparks_launcher,
    start_jvm,
)
from kgctl.pipelines.spark.java import find_java
from kgctl.pipelines.spark.scratch import scratch_folder
from kgctl.pipelines.spark.spark_home import light_spark_home, scala_version, spark_class_path

if TYPE_CHECKING:
    from py4j.java_gateway import JavaGateway
    from pyspark.sql import SparkSession

_MAX_LOCAL_SHUFFLE_PARTITIONS = 8
_MAX_LOCAL_MEMORY_MB = 4096
_STATE_STORE = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"

# What the jobs rely on, wherever Spark runs. Writers of Parquet: the microseconds that every other reader knows.
_SQL_CONF = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.streaming.stateStore.providerClass": _STATE_STORE,
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
}


class ConnectFailed(KgctlError):
    name = "SPARK_CONNECT_FAILED"


@contextlib.contextmanager
def open_session(
    settings: RunSettings, *, app_name: str = "kgctl", jars: Sequence[str] = (), end_timeout_s: float = 20.0
) -> Iterator[SparkSession]:
    """One at a time in a process. JavaMissing, SparkMissing, GatewayFailed and ConnectFailed say what to do."""
    with _interpreter_set_up():
        opened = _remote(settings, app_name) if settings.remote else _classic(settings, app_name, jars, end_timeout_s)
        with opened as spark:
            yield spark


@contextlib.contextmanager
def _classic(settings: RunSettings, app_name: str, jars: Sequence[str], end_timeout_s: float) -> Iterator[SparkSession]:
    java = find_java()
    for note in java.notes:
        sys.stderr.write(f"{note}\n")
    with scratch_folder() as scratch:
        conf = spark_conf(settings, app_name=app_name, jars=jars, scratch=scratch)
        launch = Launch(
            java=java,
            conf=conf,
            flags=QUICK_FLAGS if settings.quick else (),
            environ=_environ(settings.master, scratch),
            scratch=scratch,
            log=Path(settings.log_file) if settings.log_file else scratch / "spark.log",
        )
        way = _gateway_by_spark if needs_sparks_launcher(settings.master) else _gateway
        with way(launch, end_timeout_s) as gateway, _session_of(gateway) as spark:
            yield spark
        if settings.quick:
            make_in_background(java)


@contextlib.contextmanager
def _gateway(launch: Launch, end_timeout_s: float) -> Iterator[JavaGateway]:
    archive = find(launch.java) if launch.class_path == spark_class_path() else None
    jvm = start_jvm(replace(launch, flags=(*launch.flags, *using_flags(launch.java, archive))))
    try:
        # Takes as long as the JVM does to start.
        import pyspark.sql  # noqa: F401

        try:
            gateway = connect(jvm)
        except GatewayFailed:
            if archive is None:
                raise
            # A start must not fail for what is only there to make it faster.
            drop(archive)
            jvm.end(0)
            jvm = start_jvm(launch)
            gateway = connect(jvm)
        yield gateway
    finally:
        jvm.end(end_timeout_s)


@contextlib.contextmanager
def _gateway_by_spark(launch: Launch, end_timeout_s: float) -> Iterator[JavaGateway]:
    gateway = launch_by_spark(launch)
    try:
        yield gateway
    finally:
        Jvm(gateway.proc, launch.scratch, launch.log).end(end_timeout_s)


@contextlib.contextmanager
def _session_of(gateway: JavaGateway) -> Iterator[SparkSession]:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    try:
        SparkContext(gateway=gateway)
        spark = SparkSession.builder.getOrCreate()
        try:
            register_source(spark)
            yield spark
        finally:
            _stop(spark)
    finally:
        gateway.shutdown()
        # Spark keeps the gateway for the life of the interpreter; the next session here has a JVM of its own.
        SparkContext._gateway = SparkContext._jvm = None


def _stop(spark: SparkSession) -> None:
    """Where Java is gone there is nothing left to stop, and what tells why must not be hidden by that."""
    from py4j.protocol import Py4JError

    with contextlib.suppress(Py4JError, OSError):
        for query in spark.streams.active:
            query.stop()
    with contextlib.suppress(Py4JError, OSError):
        spark.stop()


@contextlib.contextmanager
def _remote(settings: RunSettings, app_name: str) -> Iterator[SparkSession]:
    """Over Spark Connect: the server has the JVM and its settings; only those of SQL are ours to choose."""
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
        raise ConnectFailed(f"no session of Spark Connect at {settings.remote}: {failure}") from failure
    try:
        register_source(spark)
        yield spark
    finally:
        spark.stop()


def register_source(spark: SparkSession) -> None:
    """Makes format("kgctl") known to the session."""
    from kgctl.pipelines.source.datasource import KgctlDataSource

    spark.dataSource.register(KgctlDataSource)


def spark_conf(settings: RunSettings, *, app_name: str, jars: Sequence[str], scratch: Path) -> dict[str, str]:
    """Everything that is set; what a person sets stands above it."""
    conf = {
        "spark.master": settings.master,
        "spark.app.name": app_name,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.warehouse.dir": (scratch / "warehouse").as_uri(),
        **_SQL_CONF,
    }
    if jars:
        conf["spark.jars"] = ",".join(jars)
    if settings.master.startswith("local"):
        conf |= {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.local.dir": str(scratch / "local"),
            "spark.driver.memory": f"{_local_memory_mb(settings.quick)}m",
        }
    if re.fullmatch(r"local(\[.*\])?", settings.master):
        conf["spark.sql.shuffle.partitions"] = str(min(_local_cores(settings.master), _MAX_LOCAL_SHUFFLE_PARTITIONS))
    else:
        conf["spark.executorEnv.PYTHONPATH"] = _python_path(os.environ)
    return conf | dict(settings.conf)


def _local_cores(master: str) -> int:
    """Of local, local[4], local[*] and local[4,2] (the second number is about failures)."""
    inside = re.fullmatch(r"local\[\s*([0-9]+|\*).*\]", master)
    if inside is None:
        return 1
    return (os.cpu_count() or 1) if inside[1] == "*" else int(inside[1])


def _local_memory_mb(quick: bool) -> int:
    """Half of the machine, within bounds: only an upper limit for the JVM."""
    if quick:
        return 1024
    total_mb = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20 if hasattr(os, "sysconf") else 2048
    return max(1024, min(total_mb // 2, _MAX_LOCAL_MEMORY_MB))


def _environ(master: str, scratch: Path) -> dict[str, str]:
    """Of the JVM and, through it, of the Python workers on this machine."""
    environ = {**os.environ, "TZ": "UTC", "PYTHONPATH": _python_path(os.environ)}
    environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if not needs_sparks_launcher(master):
        # The workers of local-cluster start their executors by these, and leave their files in the former.
        environ["SPARK_HOME"] = str(light_spark_home(scratch if master.startswith("local-cluster") else None))
        environ["SPARK_SCALA_VERSION"] = scala_version()
    return environ


def _python_path(environ: Mapping[str, str]) -> str:
    """Workers import this very kgctl, also where it is not installed but runs from a checkout."""
    root = str(Path(kgctl.__file__).parent.parent)
    paths = [path for path in environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    return os.pathsep.join([*paths, *([] if root in paths else [root])])


@contextlib.contextmanager
def _interpreter_set_up() -> Iterator[None]:
    """Spark turns timestamps into datetimes by the interpreter's own time zone, and starts workers by PYSPARK_PYTHON."""
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
