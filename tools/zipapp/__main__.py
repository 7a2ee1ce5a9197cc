"""`python -m tools.zipapp [--python 3.11 --python 3.12 ...] [FILE]`: build kgctl.pyz for this platform.

Versions and hashes are those of requirements.lock. The wheels of all named Pythons lie in one tree: native modules carry the version in
their names. The payload is one entry of the file, as Python reads the list of all entries at each start.
"""

from __future__ import annotations

import argparse
import compileall
import hashlib
import io
import os
import py_compile
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.tags import platform_tags

ROOT = Path(__file__).parents[2]
PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
# What `broker start --secure` needs.
EXTRAS = ("security",)
TIME = (1980, 1, 1, 0, 0, 0)
# sqlite-utils names pip as a requirement for one of its commands.
LEFT_OUT = re.compile(
    r"^pip/|/(tests?|_tests)/|\.dist-info/(RECORD|INSTALLER|REQUESTED|direct_url\.json)$|^bin/|\.pyi$|\.[ch]$"
)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.zipapp", description="Build kgctl.pyz for this platform.")
    parser.add_argument("--python", action="append", help=f"a version of Python that it runs on [default: {PYTHON}]")
    parser.add_argument("file", nargs="?", type=Path, default=ROOT / "dist" / "kgctl.pyz")
    given = parser.parse_args()
    pythons = sorted({PYTHON, *(given.python or ())}, key=lambda version: int(version.split(".")[1]))
    with tempfile.TemporaryDirectory() as work:
        site = Path(work, "site")
        site.mkdir()
        collect(site, Path(work), pythons)
        content = archive(site, pythons)
    given.file.parent.mkdir(parents=True, exist_ok=True)
    draft = given.file.with_name(given.file.name + ".draft")
    draft.write_bytes(content)
    draft.chmod(0o755)
    os.replace(draft, given.file)
    print(f"{given.file}: {len(content) / 1e6:.1f} MB, for CPython {', '.join(pythons)} on {machine()}")


def machine() -> str:
    return f"{sys.platform}-{os.uname().machine}"


def collect(site: Path, work: Path, pythons: list[str]) -> None:
    """Install the requirements for each Python, and kgctl itself."""
    lock = work / "runtime.lock"
    lock.write_text("".join(locked(requirements())))
    for python in pythons:
        target = work / python
        platforms = [option for tag in platform_tags() for option in ("--platform", tag)] if python != PYTHON else []
        other = ["--python-version", python, "--implementation", "cp", *platforms] if python != PYTHON else []
        pip("install", "--only-binary=:all:", *other, "--require-hashes", "--no-deps", "--target", target, "-r", lock)
        shutil.copytree(target, site, dirs_exist_ok=True)
    wheels = work / "wheels"
    pip("wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", wheels, ROOT)
    pip("install", "--no-deps", "--no-index", "--target", work / "kgctl", *wheels.iterdir())
    shutil.copytree(work / "kgctl", site, dirs_exist_ok=True)


def pip(*arguments: object) -> None:
    command = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", *map(str, arguments)]
    subprocess.run(command, check=True, cwd=ROOT)


def requirements() -> set[str]:
    """The names of all distributions that kgctl needs, from those that are installed here."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    found: set[str] = set()
    missing = list(project["dependencies"])
    for extra in EXTRAS:
        missing += project["optional-dependencies"][extra]
    while missing:
        requirement = Requirement(missing.pop())
        name = normal(requirement.name)
        if name in found:
            continue
        found.add(name)
        try:
            below = distribution(name).requires or []
        except PackageNotFoundError:
            sys.exit(f"{name} is not installed: make setup")
        missing += [text for text in below if applies(Requirement(text), requirement.extras)]
    return found


def applies(requirement: Requirement, extras: set[str]) -> bool:
    marker = requirement.marker
    return marker is None or any(marker.evaluate({"extra": extra}) for extra in extras | {""})


def locked(names: set[str]) -> Iterator[str]:
    """The entries of the lock file for these distributions."""
    entries = re.split(r"^(?=[a-z0-9])", (ROOT / "requirements.lock").read_text(), flags=re.MULTILINE)
    by_name = {normal(re.match(r"[\w.-]+", entry)[0]): entry for entry in entries if "==" in entry}  # type: ignore[index]
    for name in sorted(names):
        if name not in by_name:
            sys.exit(f"requirements.lock does not have {name}: make lock")
        yield by_name[name]


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def archive(site: Path, pythons: list[str]) -> bytes:
    """The file: a shell script, the bootstrap, and the packages as one entry."""
    for path in list(site.rglob("*")):
        if path.is_file() and LEFT_OUT.search(path.relative_to(site).as_posix()):
            path.unlink()
    for cache in list(site.rglob("__pycache__")):
        shutil.rmtree(cache)
    compileall.compile_dir(
        site, quiet=2, workers=0, stripdir=str(site), invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH
    )
    payload = zipped(
        {path.relative_to(site).as_posix(): path.read_bytes() for path in site.rglob("*") if path.is_file()}
    )
    digest = hashlib.blake2b(payload, digest_size=8).hexdigest()
    values = {"DIGEST": digest, "PYTHONS": " ".join(pythons), "MACHINE": machine()}
    files = {"__main__.py": _filled("bootstrap.py", values), "unpacking.py": _filled("unpacking.py", values)}
    files["start.py"] = _filled("start.py", values)
    outer = zipped({**files, "site.zip": payload}, zipfile.ZIP_STORED)
    return _filled("start.sh", values) + outer


def _filled(name: str, values: dict[str, str]) -> bytes:
    text = Path(__file__).with_name(name).read_text()
    for mark, value in values.items():
        text = text.replace(f"@{mark}@", value)
    return text.encode()


def zipped(files: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """The same bytes for the same files."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method, compresslevel=9) as content:
        for name in sorted(files):
            entry = zipfile.ZipInfo(name, TIME)
            entry.compress_type = method
            entry.create_system = 3
            entry.external_attr = (0o100755 if name.endswith(".so") else 0o100644) << 16
            content.writestr(entry, files[name])
    return out.getvalue()


if __name__ == "__main__":
    main()
