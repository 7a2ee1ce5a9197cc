"""Which cluster kgctl connects to."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kgctl.client.net.bootstrap import FALLBACK, BadAddress, parse, resolve
from kgctl.client.net.steps import Endpoint
from kgctl.exit_codes import exit_code_of


@pytest.mark.parametrize(
    ("text", "endpoints"),
    [
        ("localhost:19092", [("localhost", 19092)]),
        ("kafka", [("kafka", 9092)]),
        ("a:1, b:65535 ,", [("a", 1), ("b", 65535)]),
        ("[::1]:9093", [("::1", 9093)]),
        ("[::1]", [("::1", 9092)]),
    ],
)
def test_addresses_are_hosts_with_ports(text: str, endpoints: list[tuple[str, int]]) -> None:
    assert parse(text) == tuple(Endpoint(*pair) for pair in endpoints)


@pytest.mark.parametrize(
    "text", ["", ",", "host:0", "host:65536", "host:x", ":9092", "::1", "host:", "[]:1", "host:\u0663"]
)
def test_an_invalid_address_is_refused(text: str) -> None:
    with pytest.raises(BadAddress) as caught:
        parse(text)
    assert exit_code_of(caught.value) == 2


def ready(home: Path, content: object) -> dict[str, str]:
    place = home / "kgctl" / "broker"
    place.mkdir(parents=True)
    (place / "ready.json").write_text(content if isinstance(content, str) else json.dumps(content))
    return {"XDG_DATA_HOME": str(home)}


def test_the_option_overrides_the_environment_and_the_environment_overrides_the_local_broker(tmp_path: Path) -> None:
    environ = ready(tmp_path, {"address": "127.0.0.1:5000", "pid": os.getpid()})
    assert resolve(None, environ) == (Endpoint("127.0.0.1", 5000),)
    environ["KGCTL_BOOTSTRAP"] = "env:1"
    assert resolve(None, environ) == (Endpoint("env", 1),)
    assert resolve("option:2", environ) == (Endpoint("option", 2),)


def test_without_a_local_broker_the_default_is_kafkas_port(tmp_path: Path) -> None:
    assert resolve(None, {"XDG_DATA_HOME": str(tmp_path), "KGCTL_BOOTSTRAP": ""}) == (FALLBACK,)


def test_a_ready_file_of_a_stopped_broker_is_ignored(tmp_path: Path) -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    assert resolve(None, ready(tmp_path, {"address": "127.0.0.1:5000", "pid": child.pid})) == (FALLBACK,)


@pytest.mark.parametrize(
    "content", ["", "{", "[]", {"pid": 1}, {"address": "x:y", "pid": os.getpid()}, {"address": 5, "pid": os.getpid()}]
)
def test_a_malformed_ready_file_is_ignored(tmp_path: Path, content: object) -> None:
    assert resolve(None, ready(tmp_path, content)) == (FALLBACK,)
