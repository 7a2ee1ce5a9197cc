"""A SPARK_HOME without pyspark.zip, so that Python workers import the compiled pyspark of site-packages."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import tempfile
from pathlib import Path

from kgctl.pipelines.spark.fast_start.cache import writable_cache_dir
from kgctl.pipelines.spark.installation import pyspark_dir, pyspark_version

# Not `python`, which holds the archive.
_LINKED = ("jars", "bin", "sbin")


def light_spark_home(folder: Path | None = None) -> Path:
    """A folder of links, in `folder` or in the cache; pyspark's own folder if there is no cache."""
    pyspark = pyspark_dir()
    cache = folder or writable_cache_dir()
    if cache is None:
        return pyspark
    name = hashlib.sha256(str(pyspark).encode()).hexdigest()[:12]
    home = cache / f"spark-{pyspark_version()}-{name}"
    if not _is_complete(home, pyspark) and not _make(home, pyspark):
        return pyspark
    return home


def _is_complete(home: Path, pyspark: Path) -> bool:
    return all((home / name).resolve() == (pyspark / name).resolve() for name in _LINKED)


def _make(home: Path, pyspark: Path) -> bool:
    """Create it under another name and rename it, so that no process sees it half done. Return whether it worked."""
    draft = None
    try:
        draft = Path(tempfile.mkdtemp(prefix=".spark-", dir=home.parent))
        for name in _LINKED:
            (draft / name).symlink_to(pyspark / name, target_is_directory=True)
        if home.exists():
            shutil.rmtree(home, ignore_errors=True)
        os.rename(draft, home)
    except OSError:
        if draft is not None:
            shutil.rmtree(draft, ignore_errors=True)
    with contextlib.suppress(OSError):
        return _is_complete(home, pyspark)
    return False
