"""Starts the Spark process and relays its progress. Does not import Spark."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO

from kgctl.client.net.errors import KgctlError
from kgctl.exit_codes import INTERRUPTED
from kgctl.pipelines.progress import Progress, from_json
from kgctl.pipelines.settings import RunSettings
from kgctl.pipelines.timings import Timings

COMMAND = [sys.executable, "-P", "-m", "kgctl.pipelines"]
_PACKAGES = ("pyspark", "pyarrow", "pandas", "jinja2")
_TAIL_LINES = 15
_TAIL_BYTES = 64 * 1024
_END_TIMEOUT_S = 25.0


class PipelinesMissing(KgctlError):
    """The extra `pipelines` is not installed."""


class RunFailed(KgctlError):
    """A run failed; `log` is the end of Spark's log, empty if the message says all."""

    def __init__(self, message: str, exit_code: int, log: str) -> None:
        super().__init__(message)
        self.exit_code, self.log = exit_code, log


def check_installed(packages: Sequence[str] = _PACKAGES) -> None:
    """Raises PipelinesMissing, which says what to install."""
    missing = [name for name in packages if importlib.util.find_spec(name) is None]
    if missing:
        raise PipelinesMissing(f"the pipelines need {', '.join(missing)}: pip install 'kgctl[pipelines]'")


def run(settings: RunSettings, on_progress: Callable[[Progress], None]) -> bool:
    """Return False if the user interrupted the run. Raises RunFailed. No process that it starts outlives it."""
    check_installed()
    log = Path(settings.log_file)
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        opened = log.open("ab")
    except OSError as error:
        raise KgctlError(f"cannot write to the folder {log.parent}: {error.strerror}") from None
    failure: Progress | None = None
    timings = Timings(on_progress)
    with opened as log_file:
        begin = log_file.tell()
        heard = time.monotonic()
        # In a new session: Ctrl-C reaches only this process, which passes it on once.
        process = subprocess.Popen(
            COMMAND,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log_file,
            start_new_session=True,
            env=_environment(),
        )
        assert process.stdin is not None
        assert process.stdout is not None
        with process, _signals_to(process) as received:
            try:
                _send(settings, process.stdin)
                for line in process.stdout:
                    progress = from_json(line.decode())
                    if progress.kind == "ready":
                        timings.took("process", time.monotonic() - heard)
                    elif progress.kind == "failed":
                        failure = progress
                    else:
                        on_progress(progress)
                    heard = time.monotonic()
                code = process.wait()
                timings.took("end", time.monotonic() - heard)
            except BaseException:
                _end(process)
                raise
    if code == 0:
        return True
    if failure is None and (code == INTERRUPTED or received):
        # A process that a signal ends before its handlers are set has another exit code.
        return False
    tail = _tail(log, begin)
    if failure is not None:
        raise RunFailed(failure.text, failure.exit_code or 1, "" if failure.says_all else tail)
    how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
    raise RunFailed(f"the Spark process ended with {how} and gave no reason", 1, tail)


def _send(settings: RunSettings, stdin: IO[bytes]) -> None:
    try:
        stdin.write(settings.to_json().encode() + b"\n")
        stdin.flush()
    except BrokenPipeError:
        # The process has ended; its exit code says how. Closing would flush again, and fail again.
        with contextlib.suppress(BrokenPipeError):
            stdin.close()


def _environment() -> dict[str, str]:
    # Variables that users set for other Spark programs and that change what Spark starts.
    return {name: value for name, value in os.environ.items() if name not in ("PYSPARK_SUBMIT_ARGS", "SPARK_REMOTE")}


@contextlib.contextmanager
def _signals_to(process: subprocess.Popen[bytes]) -> Iterator[list[int]]:
    """Pass the first signal on, which ends the run in order, and kill the process on the second. Yields the signals."""
    received: list[int] = []

    def on_signal(number: int, _frame: object) -> None:
        received.append(number)
        if len(received) > 1:
            process.kill()
        else:
            process.send_signal(number)

    before = {}
    for number in (signal.SIGINT, signal.SIGTERM):
        with contextlib.suppress(ValueError):
            before[number] = signal.signal(number, on_signal)
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(_END_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()


def _tail(log: Path, begin: int) -> str:
    """The last lines that this run wrote to the log."""
    with contextlib.suppress(OSError), log.open("rb") as file:
        file.seek(max(begin, log.stat().st_size - _TAIL_BYTES))
        lines = file.read().decode("utf-8", "replace").splitlines()
        return "\n".join(lines[-_TAIL_LINES:])
    return ""
