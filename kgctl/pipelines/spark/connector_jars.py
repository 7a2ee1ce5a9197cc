"""Finds the four jars of Spark's own Kafka connector, which no Python package contains, and checks their versions."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from kgctl.client.net.errors import KgctlError
from kgctl.pipelines.settings import RunSettings
from kgctl.pipelines.spark.cache import cache_dir
from kgctl.pipelines.spark.installation import pyspark_dir, pyspark_version, scala_version

VARIABLE = "KGCTL_SPARK_KAFKA_JARS"
CONNECTOR, TOKENS = "spark-sql-kafka-0-10", "spark-token-provider-kafka-0-10"
ARTIFACTS = (CONNECTOR, TOKENS, "kafka-clients", "commons-pool2")

# The Scala version, if the name has one, and the version. Jars with a suffix such as -sources do not match.
_NAME = re.compile(
    r"(?P<artifact>.+?)(?:_(?P<scala>\d+\.\d+))?-(?P<version>\d[\w.]*(?:-(?:SNAPSHOT|preview\d*|ccs))?)\.jar"
)


class JarsMissing(KgctlError):
    name = "CONNECTOR_JARS_MISSING"
    says_all = True


@dataclass(frozen=True, slots=True)
class ConnectorJars:
    """`paths` are in the order of ARTIFACTS. `matched`: none is missing, and Spark's jars have pyspark's version.

    `wanted` is a sentence that says what would match; empty if `matched`.
    """

    paths: tuple[str, ...]
    versions: dict[str, str]
    matched: bool
    missing: tuple[str, ...] = ()
    wanted: str = ""

    @property
    def usable(self) -> bool:
        """Mixed minor versions work; jars for another Scala or another major version of Spark do not."""
        return not self.missing and not self.unfit

    @property
    def unfit(self) -> tuple[str, ...]:
        """Spark's jars with another major version than pyspark."""
        major = _spark_version().split(".")[0]
        spark_own = (name for name in (CONNECTOR, TOKENS) if name in self.versions)
        return tuple(
            f"{name} {self.versions[name]}" for name in spark_own if not self.versions[name].startswith(major + ".")
        )


def needed_jars(settings: RunSettings) -> tuple[str, ...]:
    """The jars for `--source kafka`; none if the user configures Spark's jars. Raises JarsMissing."""
    own = {key for key, _ in settings.conf}
    if own & {"spark.jars", "spark.jars.packages"} or settings.remote:
        return ()
    found = find_jars()
    if found is None:
        raise JarsMissing(f"--source kafka needs the jars of Spark's Kafka connector. {wanted_jars()}")
    if not found.usable:
        raise JarsMissing(f"the jars of Spark's Kafka connector do not match: {found.wanted}")
    return found.paths


def find_jars(environ: Mapping[str, str] | None = None) -> ConnectorJars | None:
    """The jars that KGCTL_SPARK_KAFKA_JARS names (a folder, or a comma-separated list), else those in jars/ in the cache."""
    environ = os.environ if environ is None else environ
    named = environ.get(VARIABLE, "")
    every = _jars_in(named) if named else sorted((cache_dir(environ) / "jars").glob("*.jar"))
    chosen: dict[str, tuple[str, Path]] = {}
    for path in every:
        parsed = _NAME.fullmatch(path.name)
        if parsed is None or parsed["artifact"] not in ARTIFACTS:
            continue
        artifact, version = parsed["artifact"], parsed["version"]
        if (scala := parsed["scala"]) is not None and scala != scala_version():
            continue
        if artifact not in chosen or _preference(artifact, version) > _preference(artifact, chosen[artifact][0]):
            chosen[artifact] = (version, path)
    if not chosen and not named:
        return None
    return _checked(chosen)


def _checked(chosen: Mapping[str, tuple[str, Path]]) -> ConnectorJars:
    present = [artifact for artifact in ARTIFACTS if artifact in chosen]
    missing = tuple(artifact for artifact in ARTIFACTS if artifact not in chosen)
    versions = {artifact: chosen[artifact][0] for artifact in present}
    spark = _spark_version()
    others = [f"{name} is {versions[name]}" for name in (CONNECTOR, TOKENS) if versions.get(name, spark) != spark]
    faults = [*(f"{name} is missing" for name in missing), *others]
    return ConnectorJars(
        paths=tuple(str(chosen[artifact][1]) for artifact in present),
        versions=versions,
        matched=not faults,
        missing=missing,
        wanted=f"{', '.join(faults)}. {wanted_jars()}" if faults else "",
    )


def wanted_jars() -> str:
    """A sentence with the artifacts by name and version, and where to put them."""
    spark, scala = _spark_version(), scala_version()
    return (
        f"Wanted: {CONNECTOR}_{scala} {spark}, {TOKENS}_{scala} {spark}, and the kafka-clients and commons-pool2 that "
        f"the connector's POM names (older ones of Spark {spark.split('.')[0]} work too), in the folder that {VARIABLE} names or in {cache_dir() / 'jars'}; "
        f"or let Spark fetch them: {fetching()}"
    )


def fetching() -> str:
    """The option with which Spark downloads the jars."""
    return f"--conf spark.jars.packages=org.apache.spark:{CONNECTOR}_{scala_version()}:{_spark_version()}"


def _jars_in(named: str) -> list[Path]:
    if Path(named).is_dir():
        return sorted(Path(named).glob("*.jar"))
    paths = [Path(part.strip()) for part in named.split(",") if part.strip()]
    absent = [str(path) for path in paths if not path.is_file()]
    if absent:
        raise JarsMissing(f"{VARIABLE} names files that do not exist: {', '.join(absent)}")
    return paths


def _preference(artifact: str, version: str) -> tuple[bool, list[int]]:
    """The version of the installed Spark first, then the newest."""
    matches = artifact in (CONNECTOR, TOKENS) and version == _spark_version()
    return matches, [int(number) for number in re.findall(r"\d+", version)]


def _spark_version() -> str:
    pyspark_dir()
    return pyspark_version()
