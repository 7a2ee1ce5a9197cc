"""The wheel that users install."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.harness import ROOT

SOURCES = ("LICENSE", "MANIFEST.in", "README.md", "broker", "kgctl", "pyproject.toml", "tools")
BUILD = (
    "import sys; sys.path.insert(0, 'tools/wheel'); import build_backend; print(build_backend.build_wheel(sys.argv[1]))"
)


def build(tree: Path, *, umask: int) -> Path:
    tree.mkdir()
    for name in SOURCES:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, tree)
    stale = tree / "build" / "lib" / "broker" / "removed.py"
    stale.parent.mkdir(parents=True)
    stale.touch()
    for path in tree.rglob("*"):
        os.utime(path, (umask, umask))
        path.chmod((0o777 if path.is_dir() else 0o666) & ~umask)
    subprocess.run(
        [sys.executable, "-c", BUILD, str(tree / "dist")],
        cwd=tree,
        check=True,
        capture_output=True,
        umask=umask,
        env={name: value for name, value in os.environ.items() if name != "SOURCE_DATE_EPOCH"},
    )
    (wheel,) = (tree / "dist").iterdir()
    return wheel


@pytest.mark.slow
def test_two_builds_of_the_same_sources_are_identical(tmp_path: Path):
    one, other = build(tmp_path / "one", umask=0o022), build(tmp_path / "other", umask=0o007)
    assert one.name == other.name
    assert one.read_bytes() == other.read_bytes()
    with zipfile.ZipFile(one) as wheel:
        names = wheel.namelist()
        assert wheel.testzip() is None
    assert "broker/removed.py" not in names
    assert {"broker/py.typed", "broker/storage/store/schema.sql", "kgctl/__main__.py"} <= set(names)
    assert names[-1].endswith(".dist-info/RECORD")
