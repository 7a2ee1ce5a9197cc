"""The jars of Spark's Kafka connector for tests: the user's, or else fetched once with mvn into the cache."""

from __future__ import annotations

import fcntl
import importlib.metadata
import os
import shutil
import subprocess
import tempfile
import xml.etree.ElementTree as xml
from pathlib import Path

from kgctl.pipelines.spark.connector_jars import find_jars
from tests.harness.reference_kafka import Unavailable

SCALA = "2.13"
# Versions that also work with newer versions of Spark; repositories do not have all of them.
CONNECTORS, TOKENS = ("4.2.0", "4.0.0"), ("4.0.0",)
_NAMESPACE = "{http://maven.apache.org/POM/4.0.0}"


def connector_jars() -> tuple[str, ...]:
    """Raises Unavailable with the reason."""
    own = find_jars()
    if own is not None and own.usable:
        return own.paths
    if shutil.which("mvn") is None:
        raise Unavailable("no mvn on PATH")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kgctl-reference"
    home = cache / f"spark-connector-{importlib.metadata.version('pyspark')}"
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "spark-connector.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not home.is_dir():
            with tempfile.TemporaryDirectory(dir=cache) as folder:
                into = Path(folder) / "jars"
                into.mkdir()
                _fetch(into, repository=cache / "m2")
                into.rename(home)
    return tuple(str(jar) for jar in sorted(home.glob("*.jar")))


def _fetch(into: Path, repository: Path) -> None:
    spark = importlib.metadata.version("pyspark")
    connector, tokens = f"spark-sql-kafka-0-10_{SCALA}", f"spark-token-provider-kafka-0-10_{SCALA}"

    def first(group: str, name: str, versions: tuple[str, ...], kind: str = "jar") -> str:
        output = ""
        for version in versions:
            goal = ["dependency:copy", f"-Dartifact={group}:{name}:{version}:{kind}", f"-DoutputDirectory={into}"]
            # Not the user's repository: leaving it half filled would make Spark's own downloads fail.
            command = ["mvn", "-q", "-B", f"-Dmaven.repo.local={repository}", *goal]
            done = subprocess.run(command, cwd=into, capture_output=True, text=True, check=False)
            if done.returncode == 0:
                return version
            output = done.stdout.strip()[-300:]
        raise Unavailable(f"mvn could not fetch {name}: {output}")

    version = first("org.apache.spark", connector, (spark, *CONNECTORS))
    first("org.apache.spark", tokens, (version, *TOKENS))
    first("org.apache.spark", connector, (version,), "pom")
    pom = into / f"{connector}-{version}.pom"
    for one in xml.parse(pom).getroot().iterfind(f"{_NAMESPACE}dependencies/{_NAMESPACE}dependency"):
        group, name, wanted = (one.findtext(_NAMESPACE + tag) or "" for tag in ("groupId", "artifactId", "version"))
        if name in ("kafka-clients", "commons-pool2"):
            first(group, name, (wanted,))
    pom.unlink()
