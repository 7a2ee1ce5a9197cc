"""The job in docs/ci.md, run as it stands there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import yaml

from broker.local import holder_pid
from kgctl.conditions.variables import VARIABLES
from tests.harness import ROOT

PAGE = (ROOT / "docs" / "ci.md").read_text()


def steps() -> list[dict[str, Any]]:
    (example,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    (job,) = yaml.safe_load(example)["jobs"].values()
    found: list[dict[str, Any]] = job["steps"]
    return found


def run(script: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """As GitHub's runner does for `shell: bash`."""
    environment = {name: text for name, text in os.environ.items() if not name.startswith("KGCTL_")}
    environment |= {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "XDG_DATA_HOME": str(folder / "data"),
        "XDG_CONFIG_HOME": str(folder / "config"),
        "GITHUB_ACTIONS": "true",
    }
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=110
    )


def test_the_job_of_the_page_succeeds(tmp_path: Path) -> None:
    shown, stop = [step["run"] for step in steps() if "kgctl" in step.get("run", "") and "pip" not in step["run"]]
    try:
        done = run(shown, tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "::error" not in done.stderr
        for report in ("wait.xml", "assert.xml"):
            (suite,) = ET.parse(tmp_path / report).getroot()
            assert (suite.attrib["tests"], suite.attrib["failures"], suite.attrib["errors"]) == ("1", "0", "0")
    finally:
        ended = run(stop, tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert holder_pid(tmp_path / "data" / "kgctl" / "broker") is None


def test_a_consumer_that_does_not_read_fails_the_job(tmp_path: Path) -> None:
    shown, stop = [step["run"] for step in steps() if "kgctl" in step.get("run", "") and "pip" not in step["run"]]
    idle = re.sub(r"kgctl consume .*? &$", "true &", shown, flags=re.MULTILINE).replace("2m", "1500ms")
    assert idle.count("true &") == 1
    try:
        done = run(idle + "\n", tmp_path)
    finally:
        run(stop, tmp_path)
    assert done.returncode == 5
    assert "::error title=kgctl groups wait::Consumer group 'billing' does not exist" in done.stderr


def test_the_page_lists_all_variables() -> None:
    table = PAGE.partition("| variable | value |")[2].partition("\n\n")[0]
    listed = {
        name
        for line in table.splitlines()
        for name in re.findall(r"`(\w+)`", line.split("|")[1] if "|" in line else "")
    }
    assert listed == VARIABLES.keys()
