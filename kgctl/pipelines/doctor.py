"""Checks whether this machine has what the pipelines need, and says what to do. Starts nothing but `java -version`."""

from __future__ import annotations

import importlib.metadata
import shutil
import tempfile
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from kgctl.pipelines.spark.connector_jars import JarsMissing, fetching, find_jars
from kgctl.pipelines.spark.installation import SparkMissing
from kgctl.pipelines.spark.java import JavaMissing, find_java

# The lowest version that works, and the lowest that is known not to.
_PACKAGES = {
    "pyspark": ("4.2", "5"),
    "pyarrow": ("18", None),
    "pandas": ("2.2", "3"),
    "protobuf": ("5", None),
    "jinja2": ("3.1", None),
}
# The packages of the extras that add something to the pipelines.
_EXTRAS = {
    "sql": ("duckdb", "`kgctl pipeline sql`"),
    "delta": ("deltalake", "--format delta"),
    "iceberg": ("pyiceberg", "--format iceberg"),
}
_LOW_DISK_BYTES = 2 * 2**30
_INSTALL = "pip install 'kgctl[pipelines]'"


@dataclass(frozen=True, slots=True)
class Finding:
    """`ok` is None for information that is neither good nor bad; `advice` is empty if there is nothing to do."""

    what: str
    found: str
    ok: bool | None
    advice: str = ""


def examine() -> list[Finding]:
    """Every finding; the requirements come first."""
    packages = [_package(name, *bounds) for name, bounds in _PACKAGES.items()]
    return [*_java(), *packages, _disk(), *(_extra(*one) for one in _EXTRAS.items()), _connector()]


def _java() -> list[Finding]:
    try:
        java = find_java()
    except JavaMissing as missing:
        return [Finding("java", "none", False, str(missing))]
    passed_over = [Finding("java", note, None) for note in java.notes]
    return [Finding("java", f"{java.version} from {java.origin}, {java.home}", True), *passed_over]


def _package(name: str, least: str, below: str | None) -> Finding:
    try:
        found = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return Finding(name, "not installed", False, _INSTALL)
    if _numbers(found) < _numbers(least):
        return Finding(name, found, False, f"version {least} or newer is needed: {_INSTALL}")
    if below is not None and _numbers(found) >= _numbers(below):
        return Finding(name, found, False, f"a version below {below} is needed: {_INSTALL}")
    return Finding(name, found, True)


def _extra(extra: str, what: tuple[str, str]) -> Finding:
    package, purpose = what
    try:
        return Finding(f"extra {extra}", f"{package} {importlib.metadata.version(package)}", True)
    except importlib.metadata.PackageNotFoundError:
        return Finding(
            f"extra {extra}", f"not installed; only {purpose} needs it", None, f"pip install 'kgctl[{extra}]'"
        )


def _numbers(version: str) -> list[int]:
    numbers: list[int] = []
    for part in version.split("."):
        if not part.isdigit():
            break
        numbers.append(int(part))
    return numbers


def _connector() -> Finding:
    what = "kafka connector"
    if find_spec("pyspark") is None:
        return Finding(what, "not checked: pyspark is missing", None)
    try:
        jars = find_jars()
        fetch = fetching()
    except JarsMissing as missing:
        return Finding(what, "not found", False, str(missing))
    except SparkMissing as missing:
        return Finding(what, "not checked: pyspark has no jars", False, str(missing))
    except importlib.metadata.PackageNotFoundError:
        # pyspark-client has the same modules under another name.
        return Finding(what, "not checked: pyspark comes from another package", False, _INSTALL)
    if jars is None:
        return Finding(what, "no jars; only --source kafka needs them", None, f"let Spark fetch them: {fetch}")
    versions = ", ".join(f"{name} {version}" for name, version in jars.versions.items()) or "none of its jars"
    if jars.matched:
        return Finding(what, f"matched: {versions}", True)
    if jars.usable:
        return Finding(what, f"mixed: {versions}", None, f"works, but is not tested with SASL and TLS: {jars.wanted}")
    return Finding(what, versions, False, jars.wanted)


def _disk() -> Finding:
    folder = Path(tempfile.gettempdir())
    free = shutil.disk_usage(folder).free
    found = f"{free / 2**30:.1f} GiB free in {folder}"
    if free < _LOW_DISK_BYTES:
        return Finding("disk", found, False, "Spark spills to this folder: free some space, or point TMPDIR elsewhere")
    return Finding("disk", found, True)
