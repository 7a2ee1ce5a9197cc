"""The recipes of docs/connect.md work: each of them reaches a broker that is secured as the recipe says."""

from __future__ import annotations

import json
import os
import re
import shutil
import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kgctl.client.net.client_properties import security_from
from kgctl.client.net.security import MskIam
from tests.harness import ROOT
from tests.harness.certificates import Authority
from tests.harness.commandline import Kgctl
from tests.harness.running import RunningBroker
from tests.harness.sasl_conversations import add_scram_users, options_of
from tests.harness.secured_kafka import unsecured_token
from tests.harness.token_endpoint import TokenEndpoint

PAGE = (ROOT / "docs" / "connect.md").read_text()
RECIPES = re.findall(r"```properties\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """What the names of the recipes stand for."""
    files, data = tmp_path_factory.mktemp("files"), tmp_path_factory.mktemp("data")
    authority = Authority(tmp_path_factory.mktemp("certificates"))
    alice, locked = authority.client("alice"), authority.client("locked", password="key-secret")
    for source, name in (
        (authority.ca_file, "ca.pem"),
        (alice.pkcs12, "alice.p12"),
        (locked.certificate, "alice.pem"),
        (locked.key, "alice.key"),
    ):
        shutil.copy(source, files / name)
    (files / "token").write_text(unsecured_token("alice"))
    listeners = "PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:0,SASL_SSL://127.0.0.1:0"
    options = options_of("sasl_ssl") | {"listener.name.ssl.ssl.client.auth": "requested"}
    answer = (200, f'{{"access_token": "{unsecured_token("kgctl")}", "expires_in": 60}}'.encode())
    with (
        RunningBroker(data, authority=authority, listeners=listeners, **options) as broker,
        TokenEndpoint(server_context(authority), answer).serving() as endpoint,
    ):
        with broker.client("PLAINTEXT") as client:
            add_scram_users(client)
        yield {
            "kafka-1:9093": ":".join(map(str, broker.addresses["SSL"])),
            "kafka-1:9094": ":".join(map(str, broker.addresses["SASL_SSL"])),
            "pkc-abc12.eu-west-1.aws.confluent.cloud:9092": ":".join(map(str, broker.addresses["SASL_SSL"])),
            "/etc/kafka/": f"{files}/",
            "/run/token": f"{files}/token",
            "https://login.example/token": endpoint.url,
        }


def server_context(authority: Authority) -> ssl.SSLContext:
    issued = authority.server("login")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(issued.certificate, issued.key)
    return context


@pytest.mark.parametrize("recipe", [text for text in RECIPES if "amazonaws" not in text])
def test_a_recipe_works(places: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recipe: str) -> None:
    # What the system trusts.
    monkeypatch.setenv("SSL_CERT_FILE", places["/etc/kafka/"] + "ca.pem")
    for name, place in places.items():
        recipe = recipe.replace(name, place)
    path = tmp_path / "client.properties"
    path.touch(mode=0o600)
    path.write_text(recipe)
    listed = Kgctl()("topics", "list", "--command-config", path)
    assert listed.exit_code == 0, listed.output


def test_the_recipe_for_amazon_is_understood() -> None:
    (recipe,) = [text for text in RECIPES if "amazonaws" in text]
    lines = (line.partition("=") for line in recipe.splitlines())
    security = security_from({name: value for name, _, value in lines})
    assert security.sasl is not None
    assert security.sasl.token == MskIam(profile="ops")


def test_a_secured_broker_of_your_own_works_as_shown(tmp_path: Path) -> None:
    (script,) = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
    start, _, rest = script.partition("\n")
    (tmp_path / "alice.txt").write_text("alice-secret\n")

    def shell(text: str) -> str:
        environ = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "HOME": str(tmp_path)}
        done = subprocess.run(
            ["sh", "-ec", text], cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    started = json.loads(shell(f"{start} --listen 127.0.0.1:0 -o json"))["rows"][0]
    try:
        shown = shell(rest.replace("localhost:9092", started["address"]))
        assert "SCRAM-SHA-512 as alice" in shown
        assert shown.splitlines()[-1] == "one order"
        assert 'password="alice-secret"' in (tmp_path / "alice.properties").read_text()
    finally:
        shell("kgctl broker stop")


def test_a_secured_broker_in_a_test_works_as_shown() -> None:
    (block,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    exec(block, {})
