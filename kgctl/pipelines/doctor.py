"""Looks at what the pipelines need on this machine, and says what to do. Starts `java -version` and nothing else."""

from __future__ import annotations

import importlib.metadata
import shutil
import tempfile
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from kgctl.pipelines.spark import class_archive
from kgctl.pipelines.spark.caches import cache_dir, writable_cache_dir
from kgctl.pipelines.spark.connector_jars import JarsMissing, find_jars, wanted_jars
from kgctl.pipelines.spark.java import Java, JavaMissing, find_java

# Least versions, and the first that is known not to do.
_PACKAGES = {
    "pyspark": ("4.2", "5"),
    "pyarrow": ("18", None),
    "pandas": ("2.2", "3"),
    "protobuf": ("5", None),
    "matplotlib": ("3.9", None),
}
_LOW_DISK_BYTES = 2 * 2**30
_INSTALL = "pip install 'kgctl[pipelines]'"


@dataclass(frozen=True, slots=True)
class Finding:
    """`ok` is None where it is neither good nor bad; `advice` is empty where there is nothing to do."""

    what: str
    found: str
    ok: bool | None
    advice: str = ""


def examine() -> list[Finding]:
    """All that was looked at, the needed things first."""
    java, of_java = _java()
    packages = [_package(name, *bounds) for name, bounds in _PACKAGES.items()]
    return [*of_java, *packages, _connector(), *_cache(java), _disk()]


def _java() -> tuple[Java | None, list[Finding]]:
    try:
        java = find_java()
    except JavaMissing as missing:
        return None, [Finding("java", "none", False, str(missing))]
    passed_over = [Finding("java", note, None) for note in java.notes]
    return java, [Finding("java", f"{java.version} by {java.origin}, {java.home}", True), *passed_over]


def _package(name: str, least: str, below: str | None) -> Finding:
    try:
        found = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return Finding(name, "not installed", False, _INSTALL)
    if _numbers(found) < _numbers(least):
        return Finding(name, found, False, f"at least {least} is needed: {_INSTALL}")
    if below is not None and _numbers(found) >= _numbers(below):
        return Finding(name, found, False, f"it must be below {below}: {_INSTALL}")
    return Finding(name, found, True)


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
        return Finding(what, "not looked at: pyspark is missing", None)
    try:
        jars = find_jars()
    except JarsMissing as missing:
        return Finding(what, "not found", False, str(missing))
    if jars is None:
        return Finding(what, "no jars; only --source kafka needs them", None, wanted_jars())
    versions = ", ".join(f"{name} {version}" for name, version in jars.versions.items()) or "no jar of it"
    if jars.matched:
        return Finding(what, f"matched: {versions}", True)
    if jars.usable:
        return Finding(what, f"mixed: {versions}", None, f"runs, but not tried with SASL and TLS: {jars.wanted}")
    return Finding(what, versions, False, jars.wanted)


def _cache(java: Java | None) -> list[Finding]:
    folder = cache_dir()
    if writable_cache_dir() is None:
        return [
            Finding("cache", f"{folder} cannot be written to", None, "starts are slower; KGCTL_CACHE names another")
        ]
    findings = [Finding("cache", str(folder), True)]
    if java is not None and find_spec("pyspark") is not None:
        archive = class_archive.find(java)
        told = f"{archive.stat().st_size / 2**20:.0f} MB" if archive else "none yet; made after the first quick run"
        findings.append(Finding("class archive", told, True if archive else None))
    return findings


def _disk() -> Finding:
    folder = Path(tempfile.gettempdir())
    free = shutil.disk_usage(folder).free
    found = f"{free / 2**30:.1f} GiB free in {folder}"
    if free < _LOW_DISK_BYTES:
        return Finding("disk", found, False, "Spark spills there: make room, or set TMPDIR to another folder")
    return Finding("disk", found, True)
