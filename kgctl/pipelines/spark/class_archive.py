"""The class-data archive: classes of Spark as one Java has loaded them once, which halves the time of a start.

One file in the cache for each Java and Spark, for the class path that Spark has when nobody adds to it. Its name
carries its size and checksum: it is whole as soon as it has its name, and no JVM is given what was not written.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import subprocess
import sys
import time
from pathlib import Path

import google_crc32c

from kgctl.pipelines.spark.caches import cache_dir, writable_cache_dir
from kgctl.pipelines.spark.java import Java
from kgctl.pipelines.spark.spark_home import pyspark_dir, pyspark_version

# The environment variable that says "off" where no archive shall be used or made.
SWITCH = "KGCTL_CLASS_ARCHIVE"
_FIRST_AOT_VERSION = 25
_KEPT = 3
_READ_BYTES = 4 * 2**20
_FORMAT = "1"
_TURN_S = 86400.0


def find(java: Java) -> Path | None:
    """The whole one for this Java, if there is one."""
    if _is_off():
        return None
    with contextlib.suppress(OSError):
        for archive in _archives(cache_dir(), java):
            if archive.name.endswith(_mark_of(archive)):
                return archive
            drop(archive)
    return None


def using_flags(java: Java, archive: Path | None) -> tuple[str, ...]:
    """JVM flags. A JVM that finds that the archive is not its own starts without it."""
    if archive is None:
        return ()
    return (f"-XX:{'AOTCache' if java.version >= _FIRST_AOT_VERSION else 'SharedArchiveFile'}={archive}",)


def drop(archive: Path) -> None:
    """Away with one that is damaged or that a JVM did not start with; the next is made as the first was."""
    with contextlib.suppress(OSError):
        archive.unlink()


def make_in_background(java: Java) -> bool:
    """Starts a quiet process that makes the archive in half a minute; False: there is one, or there is no making one."""
    cache = writable_cache_dir()
    if cache is None or _is_off() or find(java) is not None or not _take_turn(_turn(cache, java)):
        return False
    _BACKGROUND.append(
        subprocess.Popen(
            [sys.executable, "-P", "-m", "kgctl.pipelines.spark.archive_training"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=cache,
            start_new_session=True,
        )
    )
    return True


# Held so that nobody waits for them: they may outlive this interpreter.
_BACKGROUND: list[subprocess.Popen[bytes]] = []


def making_flag(java: Java, raw: Path) -> str:
    """The JVM flag that writes the archive to `raw` when the JVM ends."""
    return f"-XX:{'AOTCacheOutput' if java.version >= _FIRST_AOT_VERSION else 'ArchiveClassesAtExit'}={raw}"


def keep(raw: Path, cache: Path, java: Java) -> Path | None:
    """Gives a written archive its name. None: the JVM wrote none, and nobody tries again for a day."""
    turn = _turn(cache, java)
    if not raw.exists() or not raw.stat().st_size:
        turn.touch()
        return None
    archive = cache / f"classes-{_key(java)}-{_mark_of(raw)}"
    os.replace(raw, archive)
    turn.unlink(missing_ok=True)
    for other in set(_archives(cache, java)) - {archive}:
        drop(other)
    every = sorted(cache.glob("classes-*.archive"), key=lambda path: path.stat().st_mtime_ns, reverse=True)
    for old in every[_KEPT:]:
        drop(old)
    return archive


def _take_turn(turn: Path) -> bool:
    """False: somebody is at it, or tried in vain less than a day ago."""
    try:
        with contextlib.suppress(FileNotFoundError):
            if time.time() - turn.stat().st_mtime > _TURN_S:
                turn.unlink()
        turn.touch(exist_ok=False)
    except OSError:
        return False
    return True


def _turn(cache: Path, java: Java) -> Path:
    return cache / f"classes-{_key(java)}.turn"


def _archives(cache: Path, java: Java) -> list[Path]:
    return sorted(cache.glob(f"classes-{_key(java)}-*-*.archive"))


def _key(java: Java) -> str:
    """A JVM takes an archive of the same build and class path only, with jars that have not been touched since."""
    jars = [
        entry for jar in sorted((pyspark_dir() / "jars").glob("spark-*.jar")) for entry in (jar, jar.stat().st_mtime_ns)
    ]
    told = (_FORMAT, java.build, java.home, pyspark_version(), *jars)
    return hashlib.sha256("\n".join(map(str, told)).encode()).hexdigest()[:16]


def _mark_of(archive: Path) -> str:
    """How the name of a whole archive ends. 200 MB take a twentieth of a second, and Java is about to read them anyway."""
    checksum = size = 0
    with archive.open("rb", buffering=0) as file:
        while block := file.read(_READ_BYTES):
            checksum = google_crc32c.extend(checksum, block)
            size += len(block)
    return f"{size}-{checksum:08x}.archive"


def _is_off() -> bool:
    return os.environ.get(SWITCH, "") == "off"
