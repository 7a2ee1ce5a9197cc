"""Connections, streams and commands over SASL_SSL, beside the same over PLAINTEXT on the same broker."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bench.wire import Refused
from broker.config.properties import parse_properties
from broker.security import jaas
from kgctl.client.net.bootstrap import parse
from kgctl.client.net.client_properties import security_from
from kgctl.client.net.opening import Locks, Opening
from kgctl.client.net.security import Security

AT_A_TIME = 4
LONGEST_S = 30.0
LONGEST_COMMAND_S = 60.0


@dataclass(frozen=True)
class Secured:
    """A SASL_SSL listener, as a client.properties describes it."""

    file: Path
    properties: Mapping[str, str]

    @classmethod
    def read(cls, file: Path) -> Secured:
        return cls(file, parse_properties(file.read_text()))

    @property
    def bootstrap(self) -> str:
        return self.properties["bootstrap.servers"]

    def librdkafka(self) -> dict[str, str]:
        """The same for librdkafka."""
        login = jaas.parse(self.properties["sasl.jaas.config"])
        return {
            "security.protocol": self.properties["security.protocol"],
            "sasl.mechanisms": self.properties["sasl.mechanism"],
            "sasl.username": login.option("username") or "",
            "sasl.password": login.options["password"].reveal(),
            "ssl.ca.location": self.properties["ssl.truststore.location"],
        }

    def security(self) -> Security:
        return security_from({name: value for name, value in self.properties.items() if name != "bootstrap.servers"})


@dataclass(frozen=True)
class Opened:
    per_s: float
    seconds: list[float]


def open_connections(secured: Secured, count: int, *, at_a_time: int = AT_A_TIME, authenticate: bool) -> Opened:
    """Open and close this many connections: with TLS alone, or until the first request could be sent."""
    (endpoint,) = parse(secured.bootstrap)
    locks, took, failures = Locks(secured.security()), list[float](), list[BaseException]()
    numbers = iter(range(count))

    def work() -> None:
        try:
            for _ in numbers:
                began = time.perf_counter()
                with Opening(endpoint, locks, "bench", time.monotonic() + LONGEST_S) as opening:
                    opening.resolve()
                    opening.connect()
                    opening.secure()
                    if authenticate:
                        opening.authenticate()
                took.append(time.perf_counter() - began)
        except BaseException as error:  # noqa: BLE001  raised below
            failures.append(error)

    locks.tls.context  # noqa: B018  made before the clock starts
    threads = [threading.Thread(target=work) for _ in range(at_a_time)]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise Refused(f"connections over SASL_SSL: {failures[0]}")
    return Opened(count / (time.perf_counter() - began), took)


def command_s(*words: str) -> float:
    """The time of a command as a user runs it."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE" and not k.startswith("KGCTL")}
    environment["PYTHONPATH"] = str(Path(__file__).resolve().parents[1])
    with tempfile.TemporaryFile() as out:
        began = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-P", "-m", "kgctl", *words],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.PIPE,
            env=environment,
            timeout=LONGEST_COMMAND_S,
            check=False,
        )
        took = time.perf_counter() - began
    if done.returncode:
        raise Refused(f"kgctl {' '.join(words)} ended with {done.returncode}: {done.stderr[:300]!r}")
    return took
