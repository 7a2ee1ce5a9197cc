"""`kgctl cluster doctor` on running clusters."""

from __future__ import annotations

import socket

import pytest

from broker.local import LocalBroker
from tests.harness.clusters import fresh
from tests.harness.commandline import Kgctl


def test_a_running_cluster_is_examined(kgctl: Kgctl) -> None:
    assert kgctl("topics", "create", fresh("t")).exit_code == 0
    rows = kgctl.rows("cluster", "doctor")
    found = {row["check"]: row for row in reversed(rows)}
    assert found["reachability"]["evidence"] == f"answers at {kgctl.bootstrap}"
    assert "the same versions on 1 broker" in found["versions"]["evidence"]
    assert found["partitions"]["severity"] == "ok"
    assert {row["severity"] for row in rows} <= {"ok", "info", "unknown"}
    result = kgctl("cluster", "doctor")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.splitlines()[0].split() == ["CHECK", "SUBJECT", "SEVERITY", "EVIDENCE"]


def test_a_broker_that_advertises_a_wrong_address_exits_with_3() -> None:
    config = {"advertised.listeners": "PLAINTEXT://127.0.0.1:1"}
    with LocalBroker(config=config) as broker:
        result = Kgctl(broker.bootstrap_servers)("cluster", "doctor", "--timeout", 5)
        assert result.exit_code == 3, result.output
        assert "127.0.0.1:1" in result.stdout
        assert "advertised.listeners" in result.stdout


@pytest.mark.parametrize("is_first", [True, False])
def test_a_bootstrap_address_that_hangs_is_named(kgctl: Kgctl, is_first: bool) -> None:
    with socket.create_server(("127.0.0.1", 0)) as hanging:
        address = f"127.0.0.1:{hanging.getsockname()[1]}"
        everyone = [address, kgctl.bootstrap or ""] if is_first else [kgctl.bootstrap or "", address]
        rows = Kgctl(",".join(everyone)).rows("cluster", "doctor", "--timeout", 3)
    (found,) = [row for row in rows if row["check"] == "bootstrap"]
    assert (found["subject"], found["severity"]) == (address, "warning")


def test_without_a_cluster_the_exit_code_is_7() -> None:
    assert Kgctl("127.0.0.1:1")("cluster", "doctor").exit_code == 7
    assert Kgctl("127.0.0.1:1")("cluster", "doctor", "--fail-on", "moon").exit_code == 2
