"""The doctor reports what is installed and what to do, without loading it."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

import pytest

from kgctl.pipelines.doctor import Finding, examine
from kgctl.pipelines.settings import RunSettings
from kgctl.pipelines.spark.connector_jars import ARTIFACTS, VARIABLE, JarsMissing, find_jars, needed_jars

INSTALLED = find_spec("pyspark") is not None
SPARK = version("pyspark") if INSTALLED else ""
pytestmark = pytest.mark.skipif(not INSTALLED, reason="Spark is not installed")
HEAVY = ("pyspark", "py4j", "pyarrow", "pandas", "numpy", "jinja2")


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv("KGCTL_CACHE", str(folder))
    monkeypatch.delenv(VARIABLE, raising=False)
    return folder


def jars(folder: Path, *, connector: str = SPARK, tokens: str = SPARK, scala: str = "2.13") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name in (
        f"spark-sql-kafka-0-10_{scala}-{connector}.jar",
        f"spark-token-provider-kafka-0-10_{scala}-{tokens}.jar",
        "kafka-clients-3.9.2.jar",
        "commons-pool2-2.13.1.jar",
    ):
        (folder / name).touch()
    return folder


def finding(what: str) -> Finding:
    return next(found for found in examine() if found.what == what)


def settings(*conf: tuple[str, str]) -> RunSettings:
    return RunSettings(jobs=("decode",), bootstrap="127.0.0.1:1", out="out", source="kafka", conf=conf)


def test_every_package_is_listed_with_its_version() -> None:
    found = {finding.what: finding for finding in examine()}
    for name in ("pyspark", "pyarrow", "pandas", "protobuf", "jinja2"):
        assert (found[name].found, found[name].ok) == (version(name), True)
    assert found["java"].ok
    assert found["disk"].ok is not None


def test_a_broken_java_home_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "gone"))
    lines = [found.found for found in examine() if found.what == "java"]
    assert any(f"JAVA_HOME ({tmp_path / 'gone'}) is passed over" in line for line in lines)


def test_extras_that_are_missing_are_no_fault() -> None:
    assert finding("extra sql").found == f"duckdb {version('duckdb')}"
    code = (
        "import sys; from kgctl.pipelines.doctor import examine; sys.path = []; "
        "print([(one.ok, one.advice) for one in examine() if one.what == 'extra sql'])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert found == "[(None, \"pip install 'kgctl[sql]'\")]\n"


@pytest.mark.parametrize("own_jars", [False, True], ids=["none", "own"])
def test_a_pyspark_without_jars_is_a_finding(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, own_jars: bool) -> None:
    if own_jars:
        monkeypatch.setenv(VARIABLE, str(jars(tmp_path / "jars")))
    monkeypatch.setattr("kgctl.pipelines.spark.installation.pyspark_dir", lambda: tmp_path)
    connector = finding("kafka connector")
    assert (connector.found, connector.ok) == ("not checked: pyspark has no jars", False)
    assert connector.advice == "pyspark is installed without its jars: `pip install --force-reinstall pyspark`"


@pytest.mark.parametrize("own_jars", [False, True], ids=["none", "own"])
def test_pyspark_client_is_a_finding(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, own_jars: bool) -> None:
    """It has the module, but neither the jars nor the name."""

    def version_of(name: str) -> str:
        if name == "pyspark":
            raise PackageNotFoundError(name)
        return version(name)

    if own_jars:
        monkeypatch.setenv(VARIABLE, str(jars(tmp_path / "jars")))
    monkeypatch.setattr("kgctl.pipelines.spark.installation.version", version_of)
    connector = finding("kafka connector")
    assert (connector.ok, connector.advice) == (False, "pip install 'kgctl[pipelines]'")


def test_nothing_heavy_is_loaded() -> None:
    code = (
        "import sys; from kgctl.pipelines.doctor import examine; examine(); "
        f"print([name for name in {HEAVY} if name in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_missing_jars_are_no_fault_but_the_kafka_source_says_what_it_needs() -> None:
    assert find_jars() is None
    assert finding("kafka connector").ok is None
    with pytest.raises(JarsMissing, match=f"spark-sql-kafka-0-10_2.13 {SPARK}"):
        needed_jars(settings())


def test_a_matched_set_of_jars_is_found_in_the_cache(own_cache: Path) -> None:
    jars(own_cache / "jars")
    found = find_jars()
    assert found is not None
    assert (found.matched, found.wanted, list(found.versions)) == (True, "", list(ARTIFACTS))
    assert needed_jars(settings()) == found.paths
    assert finding("kafka connector").ok


def test_a_mixed_set_of_jars_is_used_and_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, str(jars(tmp_path / "jars", connector="4.2.0", tokens="4.0.0")))
    found = find_jars()
    assert found is not None
    assert (found.matched, found.usable) == (False, True)
    assert "spark-sql-kafka-0-10 is 4.2.0, spark-token-provider-kafka-0-10 is 4.0.0" in found.wanted
    connector = finding("kafka connector")
    assert (connector.ok, connector.found.split(":")[0]) == (None, "mixed")
    assert len(needed_jars(settings())) == 4


@pytest.mark.parametrize("fault", ["spark-token-provider", "commons-pool2"])
def test_a_missing_jar_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    folder = jars(tmp_path / "jars")
    next(folder.glob(f"{fault}*")).unlink()
    monkeypatch.setenv(VARIABLE, str(folder))
    assert finding("kafka connector").ok is False
    with pytest.raises(JarsMissing, match=rf"{fault}[\w-]* is missing"):
        needed_jars(settings())


def test_jars_of_another_spark_or_scala_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, str(jars(tmp_path / "three", connector="3.5.1", tokens="3.5.1")))
    with pytest.raises(JarsMissing, match=r"spark-sql-kafka-0-10 is 3\.5\.1"):
        needed_jars(settings())
    monkeypatch.setenv(VARIABLE, str(jars(tmp_path / "scala", scala="2.12")))
    with pytest.raises(JarsMissing, match="spark-sql-kafka-0-10 is missing"):
        needed_jars(settings())


def test_the_jars_of_the_installed_spark_are_preferred(own_cache: Path) -> None:
    jars(own_cache / "jars")
    jars(own_cache / "jars", connector="4.9.0", tokens="4.0.0")
    found = find_jars()
    assert found is not None
    assert found.matched


def test_the_jars_may_be_listed_and_a_missing_one_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    every = sorted(str(path) for path in jars(tmp_path / "jars").iterdir())
    monkeypatch.setenv(VARIABLE, ",".join(every))
    assert sorted(needed_jars(settings())) == every
    monkeypatch.setenv(VARIABLE, f"{every[0]},{tmp_path}/gone.jar")
    with pytest.raises(JarsMissing, match=r"gone\.jar"):
        needed_jars(settings())


def test_no_jars_are_needed_if_the_user_configures_them() -> None:
    assert needed_jars(settings(("spark.jars.packages", "org.apache.spark:x:1"))) == ()
