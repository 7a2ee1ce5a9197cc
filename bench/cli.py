"""Commands as multiples of `python -c pass`, which runs in turn with them in the same interpreter and environment."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from bench.targets import Running
from bench.wire import Refused

TURNS = 15
LONGEST_S = 60.0
PASS = "python -c pass"


def times_s(running: Running) -> dict[str, float]:
    """The median time of each command in seconds, from its start to its end; a broker's ends when it is ready."""
    cases: dict[str, Callable[[], float]] = {
        PASS: lambda: _command_s("-c", "pass"),
        "kgctl --help": lambda: _kgctl_s("--help"),
        "kgctl groups list --help": lambda: _kgctl_s("groups", "list", "--help"),
        "kgctl topics list": lambda: _kgctl_s("topics", "list", "--bootstrap", running.bootstrap),
        "kgctl groups list": lambda: _kgctl_s("groups", "list", "--bootstrap", running.bootstrap),
        "python -m broker, until ready": lambda: _ready_s(running),
        "kgctl broker start": _start_s,
    }
    times: dict[str, list[float]] = {name: [] for name in cases}
    for turn in range(TURNS + 1):
        # The broker that the turn before has stopped leaves cold caches.
        _command_s("-c", "pass")
        for name, take in cases.items():
            took_s = take()
            # The first turn compiles modules and fills the page cache.
            if turn:
                times[name].append(took_s)
    return {name: statistics.median(every) for name, every in times.items()}


def _kgctl_s(*words: str) -> float:
    return _command_s("-P", "-m", "kgctl", *words)


def _command_s(*arguments: str) -> float:
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=_environment(),
        timeout=LONGEST_S,
        check=False,
    )
    took_s = time.perf_counter() - began
    if done.returncode:
        raise Refused(f"python {' '.join(arguments)} ended with {done.returncode}: {done.stderr[:300]!r}")
    return took_s


def _ready_s(running: Running) -> float:
    with Running(running.target) as other:
        return time.perf_counter() - other.began


def _start_s() -> float:
    with tempfile.TemporaryDirectory(prefix="kgctl-bench-") as folder:
        where = ["--data-dir", str(Path(folder, "broker"))]
        try:
            return _kgctl_s("broker", "start", *where, "--listen", "127.0.0.1:0")
        finally:
            _kgctl_s("broker", "stop", *where)


def _environment() -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE" and not k.startswith("KGCTL")}
    return kept | {"PYTHONPATH": str(Path(__file__).resolve().parents[1])}
