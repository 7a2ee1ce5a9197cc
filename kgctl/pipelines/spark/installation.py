"""Where pyspark is installed and which versions it brings. Does not import pyspark."""

from __future__ import annotations

from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from kgctl.client.net.errors import KgctlError


class SparkMissing(KgctlError):
    name = "SPARK_MISSING"


def pyspark_dir() -> Path:
    """The folder of the package. Raises SparkMissing."""
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise SparkMissing("the pipelines need Spark, which is not installed: `pip install 'kgctl[pipelines]'`")
    return Path(spec.origin).parent


def pyspark_version() -> str:
    return version("pyspark")


def scala_version() -> str:
    """The Scala version of pyspark's jars, such as 2.13. Raises SparkMissing."""
    for jar in (pyspark_dir() / "jars").glob("spark-core_*.jar"):
        return jar.name.removeprefix("spark-core_").split("-")[0]
    raise SparkMissing("pyspark is installed without its jars: `pip install --force-reinstall pyspark`")
