"""A signal that comes while a run starts ends it as interrupted, without a traceback."""

from __future__ import annotations

import signal
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from kgctl.pipelines import runner
from kgctl.pipelines.settings import RunSettings
from tests.kgctl.pipelines.spark.scripts import script

pytestmark = pytest.mark.skipif(find_spec("pyspark") is None, reason="Spark is not installed")

SIGNALS = pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["ctrl-c", "sigterm"])
# Sends its parent a signal, which the parent passes on, and waits for it.
ASK_PARENT = "import os, signal, sys, time; os.kill(os.getppid(), {number}); {then}"
FAILED = r'print("""{{"kind": "failed", "text": "the disk is full", "exit_code": 5}}""", flush=True)'


def run_of(folder: Path, monkeypatch: pytest.MonkeyPatch, code: str) -> bool:
    monkeypatch.setattr(runner, "COMMAND", [sys.executable, "-c", code])
    settings = RunSettings(jobs=("decode",), bootstrap="", out=str(folder), log_file=str(folder / "spark.log"))
    return runner.run(settings, lambda _: None)


@SIGNALS
def test_a_process_that_a_signal_ends_before_it_is_ready_was_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    assert not run_of(tmp_path, monkeypatch, ASK_PARENT.format(number=number.value, then="time.sleep(60)"))


def test_a_failure_is_reported_although_a_signal_came(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    then = f"signal.signal(2, lambda *_: ({FAILED.format()}, sys.exit(5))); os.kill(os.getppid(), 2); time.sleep(60)"
    with pytest.raises(runner.RunFailed, match="the disk is full"):
        run_of(tmp_path, monkeypatch, f"import os, signal, sys, time; {then}")


def test_a_process_that_ends_before_it_reads_its_settings_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # More than a pipe holds: the runner is still writing when the process ends.
    monkeypatch.setattr(RunSettings, "to_json", lambda _: "x" * 2**20)
    with pytest.raises(runner.RunFailed, match="ended with signal SIGTERM"):
        run_of(tmp_path, monkeypatch, "import os; os.kill(os.getpid(), 15)")


@SIGNALS
def test_a_signal_during_the_imports_ends_the_process_quietly(number: signal.Signals) -> None:
    command = [*runner.COMMAND[:-2], "-X", "importtime", *runner.COMMAND[-2:]]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as child:
        assert child.stderr is not None
        assert any("kgctl.client.net.errors" in line for line in child.stderr)
        child.send_signal(number)
        printed = child.stderr.read()
    assert child.returncode == 130, printed
    assert "Traceback" not in printed


def test_an_interrupt_that_spark_raises_is_no_failure() -> None:
    code = (
        "import sys; from kgctl.pipelines import __main__ as process\n"
        "def work(*_): raise KeyboardInterrupt\n"
        "process._work = work; sys.exit(process.main())"
    )
    settings = RunSettings(jobs=(), bootstrap="", out="out").to_json()
    done = subprocess.run(
        [sys.executable, "-c", code], input=f"{settings}\n", capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (130, "")


@pytest.mark.spark
def test_a_session_keeps_the_handler_of_the_program(tmp_path: Path) -> None:
    handler = "import signal\nhandler = lambda *_: None\nsignal.signal(signal.SIGINT, handler)\n"
    code = handler + script("print(signal.getsignal(signal.SIGINT) is handler)", tmp_path)
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout == "True\n", done.stderr
