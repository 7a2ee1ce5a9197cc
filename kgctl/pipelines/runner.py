"""Starts the process with Spark and listens to it; knows nothing of Spark itself."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from kgctl.client.net.errors import KgctlError
from kgctl.pipelines.settings import Progress, RunSettings, progress_from_json

COMMAND = [sys.executable, "-P", "-m", "kgctl.pipelines"]
INTERRUPTED = 130
TAIL_LINES = 15
PATIENCE_S = 25.0


class PipelinesMissing(KgctlError):
    """The extra is not installed."""


class RunFailed(KgctlError):
    """A run ended before its time; `log` is the end of what Spark said."""

    def __init__(self, message: str, exit_code: int, log: str) -> None:
        super().__init__(message)
        self.exit_code, self.log = exit_code, log


def check_installed() -> None:
    """PipelinesMissing says what to install."""
    missing = [
        name for name in ("pyspark", "pyarrow", "pandas", "matplotlib") if importlib.util.find_spec(name) is None
    ]
    if missing:
        raise PipelinesMissing(f"the pipelines need {', '.join(missing)}: pip install 'kgctl[pipelines]'")


def run(settings: RunSettings, tell: Callable[[Progress], None]) -> int:
    """Exit code 0, or 130 where a person ended it; RunFailed otherwise. Nothing that it started outlives it."""
    check_installed()
    log = Path(settings.log_file)
    log.parent.mkdir(parents=True, exist_ok=True)
    failed: Progress | None = None
    with log.open("ab") as noise:
        begin = noise.tell()
        # A session of its own: Ctrl-C comes to us, and what it means is told to the child once.
        process = subprocess.Popen(
            COMMAND,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=noise,
            start_new_session=True,
            env=_environment(),
        )
        assert process.stdin is not None
        assert process.stdout is not None
        with process, _signals_to(process) as came:
            try:
                process.stdin.write(settings.to_json().encode() + b"\n")
                process.stdin.flush()
                for line in process.stdout:
                    progress = progress_from_json(line.decode())
                    if progress.kind == "failed":
                        failed = progress
                    else:
                        tell(progress)
                code = process.wait()
            except BaseException:
                _end(process)
                raise
    if code == 0:
        return 0
    if failed is None and (code == INTERRUPTED or len(came) > 1):
        return INTERRUPTED
    said = _tail(log, begin)
    if failed is not None:
        raise RunFailed(failed.text, failed.exit_code or 1, said)
    how = f"signal {signal.Signals(-code).name}" if code < 0 else f"code {code}"
    raise RunFailed(f"the process with Spark ended with {how}, without a word", 1, said)


def _environment() -> dict[str, str]:
    # Not what the person's shell set for other programs' sake: it changes what Spark starts.
    return {name: value for name, value in os.environ.items() if name not in ("PYSPARK_SUBMIT_ARGS", "SPARK_REMOTE")}


@contextlib.contextmanager
def _signals_to(process: subprocess.Popen[bytes]) -> Iterator[list[int]]:
    """The signals that came: the first one asks the child to end in order, the second one ends it."""
    came: list[int] = []

    def on_signal(number: int, _frame: object) -> None:
        came.append(number)
        if len(came) > 1:
            process.kill()
        else:
            process.send_signal(number)

    before = {}
    for number in (signal.SIGINT, signal.SIGTERM):
        with contextlib.suppress(ValueError):
            before[number] = signal.signal(number, on_signal)
    try:
        yield came
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(PATIENCE_S)
    except subprocess.TimeoutExpired:
        process.kill()


def _tail(log: Path, begin: int) -> str:
    with contextlib.suppress(OSError), log.open("rb") as file:
        file.seek(max(begin, log.stat().st_size - 64 * 1024))
        lines = file.read().decode("utf-8", "replace").splitlines()
        return "\n".join(lines[-TAIL_LINES:])
    return ""
