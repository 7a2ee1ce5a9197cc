"""Runs code in a Spark session of a new interpreter."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

# {body} runs inside the session.
SCRIPT = """
import os, sys
from kgctl.pipelines.spark.session import open_session
from kgctl.pipelines.settings import RunSettings

settings = RunSettings(jobs=(), bootstrap="", out="out", master="local[1]", quick=True, log_file={log!r})
with open_session(settings) as spark:
    {body}
"""


def script(body: str, folder: Path) -> str:
    return SCRIPT.format(log=str(folder / "spark.log"), body=body)


def run(body: str, folder: Path, **environ: str) -> str:
    """The output of the code, run in `folder`; no class archive is made or used unless the caller sets it."""
    answer = subprocess.run(
        [sys.executable, "-c", script(body, folder)],
        cwd=folder,
        env={**os.environ, "KGCTL_CLASS_ARCHIVE": "off", **environ},
        capture_output=True,
        text=True,
    )
    log = folder / "spark.log"
    assert answer.returncode == 0, answer.stderr + (log.read_text() if log.exists() else "")
    return answer.stdout


FAILING = """
from kgctl.pipelines.spark.launcher import SparkDidNotStart
from kgctl.pipelines.spark.session import open_session
from kgctl.pipelines.settings import RunSettings

try:
    with open_session(RunSettings((), "", "out", master={master!r}, conf={conf!r}, log_file={log!r})):
        pass
except SparkDidNotStart as failure:
    print(failure)
"""


def failure_of(folder: Path, master: str, *conf: tuple[str, str], **environ: str) -> str:
    """The message of a session that does not start. In a new interpreter, since pyspark leaves a pipe open."""
    code = FAILING.format(master=master, conf=conf, log=str(folder / "spark.log"))
    environment = {
        name: value for name, value in os.environ.items() if name not in ("HADOOP_CONF_DIR", "YARN_CONF_DIR")
    }
    answer = subprocess.run(
        [sys.executable, "-c", code], env={**environment, **environ}, capture_output=True, text=True, check=True
    )
    return answer.stdout
