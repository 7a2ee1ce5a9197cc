"""The broker that is killed: a child process with one data directory and one port."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

from broker.data_directory import READY_NAME
from broker.local import broker_command, broker_environment
from broker.ready_file import read_ready
from tests.harness.wire_client import WireClient

READY_WITHIN_S = 30.0
POLL_INTERVAL_S = 0.002
CONFIG = {
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "500",
    # A new segment every few cycles, so that kills hit segment rolls too.
    "log.roll.ms": "5000",
}


class BrokerEnded(AssertionError):
    """The broker exited by itself or did not start."""


class Victim:
    def __init__(
        self,
        directory: Path,
        *,
        durability: str,
        module: str = "broker",
        arguments: tuple[str, ...] = (),
        config: Mapping[str, str] | None = None,
    ) -> None:
        self.data_dir = directory / "data"
        self.durability = durability
        self.address = ("127.0.0.1", 0)
        self._errors = directory / "stderr.txt"
        # `module` takes arguments of its own before those of the broker.
        self._command = [*broker_command()[:-1], module, *arguments]
        self._command += ["--data-dir", str(self.data_dir), "--durability", durability, "--parent", str(os.getpid())]
        for name, value in {**CONFIG, **(config or {})}.items():
            self._command += ["--override", f"{name}={value}"]
        self._child: subprocess.Popen[bytes] | None = None
        self._spawned_at = 0.0

    @property
    def bootstrap(self) -> str:
        host, port = self.address
        return f"{host}:{port}"

    def spawn(self) -> None:
        """Start it without waiting."""
        environment = {k: v for k, v in broker_environment().items() if k != "PYTHONDONTWRITEBYTECODE"}
        self._spawned_at = time.monotonic()
        with self._errors.open("ab") as errors:
            self._child = subprocess.Popen(
                [*self._command, "--listen", self.bootstrap],
                stdin=subprocess.PIPE,
                stdout=errors,
                stderr=errors,
                env=environment,
                start_new_session=True,
            )

    def wait_until_ready(self) -> float:
        """Wait until it serves. Returns the seconds since its start."""
        assert self._child is not None
        deadline = time.monotonic() + READY_WITHIN_S
        while time.monotonic() < deadline:
            ready = read_ready(self.data_dir / READY_NAME)
            if ready is not None and ready.pid == self._child.pid:
                host, _, port = ready.address.rpartition(":")
                self.address = (host, int(port))
                return time.monotonic() - self._spawned_at
            self.check()
            time.sleep(POLL_INTERVAL_S)
        raise BrokerEnded(f"not ready within {READY_WITHIN_S:g} s")

    def check(self) -> None:
        """Raise BrokerEnded if it exited without being killed."""
        if self._child is not None and (code := self._child.poll()) is not None:
            raise BrokerEnded(f"the broker exited by itself with {code}: {self._errors.read_text()[-2000:]}")

    def client(self) -> WireClient:
        return WireClient(self.address)

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        self._end(signal.SIGTERM)

    def _end(self, number: signal.Signals) -> None:
        child, self._child = self._child, None
        if child is not None:
            child.send_signal(number)
            child.wait(30)
            if child.stdin is not None:
                child.stdin.close()
