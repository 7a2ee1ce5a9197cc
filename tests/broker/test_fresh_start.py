"""A fresh start loads only what it needs: most of its time is spent on loading modules."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from broker.local import broker_environment
from broker.ready_file import read_ready
from tests.harness.broker_program import eventually

NOT_NEEDED = [
    "_ssl",
    "hashlib",
    "_hashlib",
    "hmac",
    "secrets",
    "random",
    "uuid",
    "tempfile",
    "shutil",
    "zlib",
    "sqlite3",
    "ctypes",
    "multiprocessing",
    "getpass",
    "platform",
    "encodings.idna",
    "stringprep",
    "datetime",
    "decimal",
    "csv",
    "yaml",
    "cramjam",
    "cryptography",
    "broker.local",
    "broker.rescue",
    "broker.inspection",
    "broker.pytest_plugin",
    "broker.fork",
    "broker.security.sasl",
    "broker.security.jaas",
    "broker.security.jks",
    "broker.security.pem",
    "broker.security.keystores",
    "broker.security.credentials",
    "broker.security.quotas",
    "broker.security.certificates",
    "broker.storage.rescue",
    "broker.storage.inspection",
    "broker.storage.segments.compaction",
    "broker.cores.transactions",
    "broker.server.transaction_runner",
    "broker.server.transaction_ends",
    "broker.server.authentication",
    "broker.server.listener_tls",
    "broker.server.tls_transport",
    "broker.server.local_security",
    "broker.server.handshake_turns",
    "broker.server.stored_acls",
    "broker.server.metrics",
    "broker.server.error_counts",
    "broker.server.telemetry",
    "broker.cores.telemetry",
    "broker.cores.fetch_sessions",
    "prometheus_client",
]
# Those of the broker itself.
MODULES = 191


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The modules that a broker without data and without options loads until it serves, in their order."""
    home: Path = tmp_path_factory.mktemp("fresh")
    data_dir = home / "data"
    with (home / "stderr").open("w") as stderr:
        broker = subprocess.Popen(
            [
                sys.executable,
                "-P",
                "-X",
                "importtime",
                "-m",
                "broker",
                "--data-dir",
                data_dir,
                "--listen",
                "127.0.0.1:0",
            ],
            env=broker_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=stderr,
        )
    try:
        eventually(lambda: read_ready(data_dir / "ready.json"), "the broker to serve")
        broker.terminate()
        assert broker.wait() == 0
    finally:
        broker.kill()
        broker.wait()
    start = (home / "stderr").read_text().partition(" serving at ")[0]
    return re.findall(r"^import time: +\d+ \| +\d+ \| +(\S+)$", start, re.MULTILINE)


def test_a_fresh_start_loads_no_module_that_only_other_starts_need(loaded: list[str]) -> None:
    assert "broker.storage.log" in loaded
    first = set(
        subprocess.run(
            [sys.executable, "-c", "import sys; print(*sys.modules)"], capture_output=True, text=True
        ).stdout.split()
    )
    assert [name for name in NOT_NEEDED if name in loaded and name not in first] == []


def test_a_fresh_start_loads_few_modules_of_the_broker(loaded: list[str]) -> None:
    own = [name for name in loaded if name.split(".")[0] == "broker"]
    assert len(own) <= MODULES, own


def test_a_fresh_start_loads_no_handler_before_its_first_request(loaded: list[str]) -> None:
    assert [name for name in loaded if name.startswith("broker.server.handlers.")] == []
