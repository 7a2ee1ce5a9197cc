"""The class-data archive: Spark's classes as one Java loaded them once, which halves the time of a start.

The cache holds one file per Java and Spark, for the class path without additions. The name of the file carries its
size and checksum, so that a JVM never gets a torn or damaged archive.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import subprocess
import sys
from pathlib import Path

import google_crc32c

from kgctl.pipelines.spark.cache import cache_dir
from kgctl.pipelines.spark.fast_start import attempts
from kgctl.pipelines.spark.fast_start.cache import writable_cache_dir
from kgctl.pipelines.spark.installation import pyspark_dir, pyspark_version
from kgctl.pipelines.spark.java import Java

# "off" in this environment variable: neither use nor make an archive.
SWITCH = "KGCTL_CLASS_ARCHIVE"
_FIRST_AOT_VERSION = 25
_MAX_ARCHIVES = 3
_READ_BYTES = 4 * 2**20
_FORMAT = "1"


def find(java: Java) -> Path | None:
    """The undamaged archive for this Java, if there is one."""
    if _is_off():
        return None
    with contextlib.suppress(OSError):
        for archive in _archives(cache_dir(), java):
            if archive.name.endswith(_name_suffix(archive)):
                return archive
            drop(archive)
    return None


def using_flags(java: Java, archive: Path | None) -> tuple[str, ...]:
    """JVM flags. A JVM that rejects the archive starts without it."""
    if archive is None:
        return ()
    return (f"-XX:{'AOTCache' if java.version >= _FIRST_AOT_VERSION else 'SharedArchiveFile'}={archive}",)


def drop(archive: Path) -> None:
    """Delete an archive that is damaged or with which a JVM did not start."""
    with contextlib.suppress(OSError):
        archive.unlink()


def make_in_background(java: Java) -> bool:
    """Start a low-priority process that makes the archive in half a minute; False if none is needed or possible."""
    cache = writable_cache_dir()
    if cache is None or _is_off():
        return False
    # Also if an archive exists: an attempt may have been killed shortly before another one succeeded.
    attempts.remove_leftovers(cache)
    if find(java) is not None:
        return False
    lock = attempts.begin(_claim_file(cache, java))
    if lock is None:
        return False
    try:
        _BACKGROUND.append(
            subprocess.Popen(
                [sys.executable, "-P", "-m", "kgctl.pipelines.spark.fast_start.training"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd=cache,
                start_new_session=True,
                pass_fds=(lock,),
            )
        )
    finally:
        os.close(lock)
    return True


# References that keep Popen from warning about unfinished processes: they may outlive this interpreter.
_BACKGROUND: list[subprocess.Popen[bytes]] = []


def making_flag(java: Java, raw: Path) -> str:
    """The JVM flag that writes the archive to `raw` when the JVM ends."""
    return f"-XX:{'AOTCacheOutput' if java.version >= _FIRST_AOT_VERSION else 'ArchiveClassesAtExit'}={raw}"


def keep(raw: Path, cache: Path, java: Java) -> Path | None:
    """Move a written archive to its final name. None if the JVM wrote none; then no process tries for a day."""
    claim = _claim_file(cache, java)
    if not raw.exists() or not raw.stat().st_size:
        attempts.give_up(claim)
        return None
    archive = cache / f"classes-{_key(java)}-{_name_suffix(raw)}"
    os.replace(raw, archive)
    attempts.succeed(claim)
    for other in set(_archives(cache, java)) - {archive}:
        drop(other)
    every = sorted(cache.glob("classes-*.archive"), key=lambda path: path.stat().st_mtime_ns, reverse=True)
    for old in every[_MAX_ARCHIVES:]:
        drop(old)
    return archive


def _claim_file(cache: Path, java: Java) -> Path:
    return attempts.claim_file(cache, _key(java))


def _archives(cache: Path, java: Java) -> list[Path]:
    return sorted(cache.glob(f"classes-{_key(java)}-*-*.archive"))


def _key(java: Java) -> str:
    """A JVM accepts only an archive of the same build and class path, whose jars have not been modified since."""
    jars = [
        entry for jar in sorted((pyspark_dir() / "jars").glob("spark-*.jar")) for entry in (jar, jar.stat().st_mtime_ns)
    ]
    identity = (_FORMAT, java.build, java.home, pyspark_version(), *jars)
    return hashlib.sha256("\n".join(map(str, identity)).encode()).hexdigest()[:16]


def _name_suffix(archive: Path) -> str:
    """The end of the name of an undamaged archive. Reading 200 MB takes 50 ms, and Java is about to read them anyway."""
    checksum = size = 0
    with archive.open("rb", buffering=0) as file:
        while block := file.read(_READ_BYTES):
            checksum = google_crc32c.extend(checksum, block)
            size += len(block)
    return f"{size}-{checksum:08x}.archive"


def _is_off() -> bool:
    return os.environ.get(SWITCH, "") == "off"
