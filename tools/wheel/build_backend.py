"""The build backend of kgctl: setuptools, with wheels that depend only on the sources.

Names are sorted, every file has the same mode and the same time: SOURCE_DATE_EPOCH, or 1980-01-01, the first that a zip
file can store. What earlier builds left in `build/` is not used.
"""

from __future__ import annotations

import os
import time
import zipfile
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from setuptools import build_meta
from setuptools.build_meta import *  # noqa: F403  all other hooks are those of setuptools

FIRST_ZIP_TIME = 315_532_800
REGULAR_FILE = 0o100644


def build_wheel(
    wheel_directory: str, config_settings: dict[str, Any] | None = None, metadata_directory: str | None = None
) -> str:
    with TemporaryDirectory() as directory:
        config = Path(directory, "setup.cfg")
        config.write_text(f"[build]\nbuild_base = {directory}/build\n")
        previous = os.environ.get("DIST_EXTRA_CONFIG")
        os.environ["DIST_EXTRA_CONFIG"] = str(config)
        try:
            name = build_meta.build_wheel(wheel_directory, config_settings, metadata_directory)
        finally:
            del os.environ["DIST_EXTRA_CONFIG"]
            if previous is not None:
                os.environ["DIST_EXTRA_CONFIG"] = previous
    _normalize(Path(wheel_directory, name))
    return name


def _normalize(wheel: Path) -> None:
    """Write the same files again, with nothing of the machine or the moment of the build."""
    with zipfile.ZipFile(wheel) as built:
        contents = {name: built.read(name) for name in built.namelist()}
    seconds = max(int(os.environ.get("SOURCE_DATE_EPOCH", FIRST_ZIP_TIME)), FIRST_ZIP_TIME)
    with zipfile.ZipFile(wheel, "w") as normal:
        # The metadata comes last, as the format of wheels recommends.
        for name in sorted(contents, key=lambda name: (".dist-info/" in name, name.endswith("/RECORD"), name)):
            entry = zipfile.ZipInfo(name, time.gmtime(seconds)[:6])
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.create_system = 3  # Unix, on every system
            entry.external_attr = REGULAR_FILE << 16
            normal.writestr(entry, contents[name])
