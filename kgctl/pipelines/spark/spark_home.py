"""A SPARK_HOME without pyspark.zip: Python workers then import pyspark from site-packages, where it is compiled."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import tempfile
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from kgctl.client.net.errors import KgctlError
from kgctl.pipelines.spark.caches import writable_cache_dir

# Not `python`: it holds the archive.
_LINKED = ("jars", "bin", "sbin")


class SparkMissing(KgctlError):
    name = "SPARK_MISSING"


def pyspark_dir() -> Path:
    """Where pyspark is installed; it is not imported for that."""
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise SparkMissing("the pipelines need Spark, which is not installed: `pip install 'kgctl[pipelines]'`")
    return Path(spec.origin).parent


def pyspark_version() -> str:
    return version("pyspark")


def scala_version() -> str:
    """That of pyspark's own jars, such as 2.13."""
    for jar in (pyspark_dir() / "jars").glob("spark-core_*.jar"):
        return jar.name.removeprefix("spark-core_").split("-")[0]
    raise SparkMissing("pyspark is installed without its jars: `pip install --force-reinstall pyspark`")


def spark_class_path() -> str:
    return str(pyspark_dir() / "jars" / "*")


def light_spark_home(folder: Path | None = None) -> Path:
    """A folder of links, in that folder or in the cache; pyspark's own where there is no cache."""
    pyspark = pyspark_dir()
    cache = folder or writable_cache_dir()
    if cache is None:
        return pyspark
    name = hashlib.sha256(str(pyspark).encode()).hexdigest()[:12]
    home = cache / f"spark-{pyspark_version()}-{name}"
    if not _links_are_right(home, pyspark) and not _make(home, pyspark):
        return pyspark
    return home


def _links_are_right(home: Path, pyspark: Path) -> bool:
    return all((home / name).resolve() == (pyspark / name).resolve() for name in _LINKED)


def _make(home: Path, pyspark: Path) -> bool:
    """Made beside and renamed, so that nobody ever sees half of it; False: it could not be made."""
    made = None
    try:
        made = Path(tempfile.mkdtemp(prefix=".spark-", dir=home.parent))
        for name in _LINKED:
            (made / name).symlink_to(pyspark / name, target_is_directory=True)
        if home.exists():
            shutil.rmtree(home, ignore_errors=True)
        os.rename(made, home)
    except OSError:
        if made is not None:
            shutil.rmtree(made, ignore_errors=True)
    with contextlib.suppress(OSError):
        return _links_are_right(home, pyspark)
    return False
