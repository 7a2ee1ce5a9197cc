"""The measured brokers: ours, and peers given as commands. Each is started fresh, on a port that it chooses."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

START_WITHIN_S = 90.0
STOP_WITHIN_S = 15.0
LOOK_EVERY_S = 0.001


class TargetFailed(Exception):
    """A broker did not start, or exited early."""


@dataclass(frozen=True)
class Target:
    """One broker to measure; `command` makes its command line from a fresh directory. `secured` is the same for a broker
    that also has a SASL_SSL listener, if that is another command."""

    name: str
    durability: str
    command: Callable[[Path], list[str]]
    writes_ready_file: bool = False
    secured: Callable[[Path], list[str]] | None = None


def ours(durability: str) -> Target:
    survives = {"power": "synced before each response", "process": "page cache before each response"}

    def command(home: Path) -> list[str]:
        where = [
            "--data-dir",
            str(home / "broker"),
            "--ready-file",
            str(home / "ready.json"),
            "--listen",
            "127.0.0.1:0",
        ]
        return [sys.executable, "-P", "-m", "broker", *where, "--durability", durability]

    def secured(home: Path) -> list[str]:
        plain = command(home)
        at = plain.index("--listen")
        listeners = "listeners=PLAINTEXT://127.0.0.1:0,SASL_SSL://127.0.0.1:0"
        users = "super.users=User:admin;User:ANONYMOUS"
        return [*plain[:at], *plain[at + 2 :], "--secure", "--override", listeners, "--override", users]

    return Target(f"ours-{durability}", survives[durability], command, writes_ready_file=True, secured=secured)


def peer(option: str) -> Target:
    """Parse `NAME=COMMAND` or `NAME: DURABILITY=COMMAND`. `{dir}` in the command is replaced by a fresh directory."""
    label, equals, command = option.partition("=")
    if not (label and equals and command.strip()):
        raise ValueError(f"a peer is NAME=COMMAND, not {option!r}")
    name, _, durability = (part.strip() for part in label.partition(":"))
    return Target(name, durability or "not stated", lambda home: shlex.split(command.replace("{dir}", str(home))))


class Running:
    """A running broker. Its directory and all its processes are removed at the end of the block."""

    def __init__(self, target: Target, *, secured: bool = False) -> None:
        self.target = target
        self._command = target.secured if secured and target.secured else target.command
        self.client_properties: Path | None = None  # how to connect with SASL_SSL, if the broker says it
        self.home = Path(tempfile.mkdtemp(prefix="kgctl-bench-"))
        self.began = 0.0
        self.host, self.port, self.pid = "", 0, 0
        self._child: subprocess.Popen[str] | None = None

    @property
    def address(self) -> tuple[str, int]:
        return self.host, self.port

    @property
    def bootstrap(self) -> str:
        return f"{self.host}:{self.port}"

    def __enter__(self) -> Running:
        self._spawn()
        return self

    def kill_and_start(self, between: Callable[[Path], None]) -> None:
        """Kill it, call `between`, and run the same command on the same directory. Only for our broker."""
        assert self._child is not None
        self._child.kill()
        self._child.wait()
        (self.home / "ready.json").unlink(missing_ok=True)
        between(self.home / "broker")
        self._spawn()

    def _spawn(self) -> None:
        # Use compiled modules, as an installed broker does.
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        environment["PYTHONPATH"] = str(Path(__file__).resolve().parents[1])
        log = (self.home / "output.log").open("a")
        self.began = time.perf_counter()
        with log:
            self._child = subprocess.Popen(
                self._command(self.home),
                stdin=subprocess.DEVNULL,
                stdout=log if self.target.writes_ready_file else subprocess.PIPE,
                stderr=log,
                text=True,
                env=environment,
                start_new_session=True,
            )
        try:
            address, self.pid = self._ready_file() if self.target.writes_ready_file else self._ready_line()
        except BaseException:
            self._end()
            raise
        self.host, _, port = address.rpartition(":")
        self.port = int(port)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._end()

    def rss_mb(self) -> float:
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) / 1024
        raise TargetFailed(f"{self.target.name} reports no memory")

    def cpu_s(self) -> float:
        """CPU time used so far in seconds."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def _ready_file(self) -> tuple[str, int]:
        path, deadline = self.home / "ready.json", time.perf_counter() + START_WITHIN_S
        while not path.exists():
            self._check(deadline)
            time.sleep(LOOK_EVERY_S)
        ready = json.loads(path.read_text())
        if file := ready.get("client_properties"):
            self.client_properties = Path(file)
        return ready["address"], ready["pid"]

    def _ready_line(self) -> tuple[str, int]:
        assert self._child is not None
        assert self._child.stdout is not None
        deadline = time.perf_counter() + START_WITHIN_S
        with selectors.DefaultSelector() as selector:
            selector.register(self._child.stdout, selectors.EVENT_READ)
            while True:
                self._check(deadline)
                if selector.select(0.2):
                    words = self._child.stdout.readline().split()
                    if words[:1] == ["READY"]:
                        self.client_properties = Path(words[3]) if words[3:] else None
                        return words[1], int(words[2])

    def _check(self, deadline: float) -> None:
        assert self._child is not None
        if self._child.poll() is not None:
            output = (self.home / "output.log").read_text().strip()
            raise TargetFailed(f"{self.target.name} exited with {self._child.returncode}: {output[-500:]}")
        if time.perf_counter() > deadline:
            raise TargetFailed(f"{self.target.name} was not ready within {START_WITHIN_S:.0f} s")

    def _end(self) -> None:
        child = self._child
        if child is not None:
            with contextlib.suppress(ProcessLookupError):
                child.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(STOP_WITHIN_S)
            # It has its own session, so this also kills the children of a wrapper.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()
            if child.stdout is not None:
                child.stdout.close()
        shutil.rmtree(self.home, ignore_errors=True)
