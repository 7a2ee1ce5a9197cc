"""Commands on a cluster with TLS, SASL and ACLs: they work, or fail with exit code 7 and one sentence."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from typer.testing import Result

from kgctl.exit_codes import UNREACHABLE, USAGE
from tests.harness.certificates import Authority
from tests.harness.commandline import Kgctl
from tests.harness.running import RunningBroker
from tests.harness.sasl_conversations import add_scram_users, options_of

LISTENERS = "PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0,SASL_SSL://127.0.0.1:0"
AUTHORIZER = {
    "authorizer.class.name": "StandardAuthorizer",
    "super.users": "User:admin;User:ANONYMOUS",
}
Configured = Callable[..., list[str]]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    authority = Authority(tmp_path_factory.mktemp("certificates"))
    options = AUTHORIZER | options_of("sasl_plaintext") | options_of("sasl_ssl")
    with RunningBroker(tmp_path_factory.mktemp("data"), authority=authority, listeners=LISTENERS, **options) as running:
        with running.client("PLAINTEXT") as client:
            add_scram_users(client)
        yield running


@pytest.fixture
def config(broker: RunningBroker, tmp_path: Path) -> Configured:
    """Writes a client.properties for a listener and gives the options that use it."""

    def write(listener: str, user: str = "admin", mechanism: str = "SCRAM-SHA-512", **changes: str) -> list[str]:
        assert broker.authority is not None
        host, port = broker.addresses[listener]
        properties = {
            "bootstrap.servers": f"{host}:{port}",
            "security.protocol": listener,
            "ssl.truststore.location": str(broker.authority.ca_file),
        }
        if listener.startswith("SASL"):
            properties |= {"sasl.mechanism": mechanism, "sasl.username": user, "sasl.password": f"{user}-secret"}
        properties |= {name.replace("_", "."): value for name, value in changes.items()}
        path = tmp_path / "client.properties"
        path.touch(mode=0o600)
        path.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))
        return ["--command-config", str(path)]

    return write


def failure(result: Result, code: int = UNREACHABLE) -> str:
    assert result.exit_code == code, result.output
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert "-secret" not in line
    return line


@pytest.mark.parametrize("listener", ["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"])
def test_records_go_round(config: Configured, listener: str) -> None:
    kgctl, options = Kgctl(), config(listener)
    produced = kgctl("produce", f"round-{listener}", *options, text="one\ntwo\n")
    assert produced.exit_code == 0, produced.output
    consumed = kgctl("consume", f"round-{listener}", "--from-beginning", "--until-end", *options)
    assert consumed.exit_code == 0, consumed.output
    assert consumed.stdout == "one\ntwo\n"
    assert kgctl("groups", "list", *options).exit_code == 0


def test_wrong_credentials(config: Configured) -> None:
    line = failure(Kgctl()("topics", "list", *config("SASL_SSL", sasl_password="wrong-secret")))
    assert "the broker does not accept user 'admin' with SCRAM-SHA-512: " in line


def test_a_consumer_with_revoked_credentials_ends_with_one_reason(tmp_path: Path) -> None:
    options = options_of("sasl_plaintext") | {"connections.max.reauth.ms": "1000"}
    listeners = "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0"
    with RunningBroker(tmp_path / "data", listeners=listeners, **options) as running:
        host, port = running.addresses["PLAINTEXT"]
        admin = Kgctl(f"{host}:{port}")
        assert admin("users", "set-password", "carol", text="carol-secret").exit_code == 0
        assert admin("produce", "t", text="one\n").exit_code == 0
        host, port = running.addresses["SASL_PLAINTEXT"]
        file = tmp_path / "client.properties"
        file.write_text(
            f"bootstrap.servers={host}:{port}\nsecurity.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-512\n"
            "sasl.username=carol\nsasl.password=carol-secret\n"
        )
        command = [sys.executable, "-m", "kgctl", "consume", "t", "--group", "g", "--from-beginning"]
        with subprocess.Popen(
            [*command, "--command-config", str(file)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as consumer:
            assert consumer.stdout is not None
            assert consumer.stdout.readline() == "one\n"
            assert admin("users", "delete", "carol", "--execute").exit_code == 0
            _, said = consumer.communicate(timeout=30)
    assert consumer.returncode == UNREACHABLE
    (line,) = said.splitlines()
    assert "the broker does not accept user 'carol' with SCRAM-SHA-512" in line


def test_the_dashboard_ends_with_the_reason(config: Configured) -> None:
    line = failure(Kgctl()("ui", "--once", *config("SASL_SSL", sasl_password="wrong-secret")))
    assert "the broker does not accept user 'admin' with SCRAM-SHA-512: " in line


def test_the_dashboard_shows_a_secured_cluster(config: Configured) -> None:
    result = Kgctl()("ui", "--once", *config("SASL_SSL"))
    assert result.exit_code == 0, result.output
    assert "127.0.0.1" in result.stdout


def test_an_unknown_ca(config: Configured, tmp_path: Path) -> None:
    other = Authority(tmp_path / "other", "another CA")
    line = failure(Kgctl()("topics", "list", *config("SSL", ssl_truststore_location=str(other.ca_file))))
    assert "is issued by CN=kgctl test CA,O=kgctl tests, which is not trusted" in line


@pytest.mark.parametrize(
    ("listener", "protocol", "sentence"),
    [
        ("SSL", "PLAINTEXT", "the listener requires TLS"),
        ("SASL_SSL", "SASL_PLAINTEXT", "the listener requires TLS"),
        ("PLAINTEXT", "SSL", "the listener does not speak TLS"),
        ("SASL_PLAINTEXT", "SASL_SSL", "the listener does not speak TLS"),
        ("SASL_PLAINTEXT", "PLAINTEXT", "the listener requires SASL"),
        ("SASL_SSL", "SSL", "the listener requires SASL"),
    ],
)
def test_a_protocol_that_does_not_fit(config: Configured, listener: str, protocol: str, sentence: str) -> None:
    assert sentence in failure(Kgctl()("topics", "list", *config(listener, security_protocol=protocol)))


@pytest.mark.parametrize(
    ("arguments", "permission"),
    [
        (["groups", "describe", "orders"], "DESCRIBE on group orders"),
        (["groups", "delete", "orders", "--execute"], "DELETE on group orders|DESCRIBE on group orders"),
        (["groups", "rebalance", "orders"], "DESCRIBE on group orders"),
        (["topics", "describe", "round"], "DESCRIBE on topic round"),
        (["topics", "create", "round"], "CREATE on topic round"),
        (["consume", "round", "--until-end"], "DESCRIBE on topic round"),
        (["produce", "round"], "DESCRIBE on topic round|WRITE on topic round"),
        (["transactions", "describe", "import"], "DESCRIBE on transactional id import"),
        (["transactions", "abort", "import", "--execute"], "DESCRIBE on transactional id import"),
        (["clients", "list"], "DESCRIBE on the cluster"),
        (["producers", "describe", "round:0"], "DESCRIBE on topic round|READ on topic round"),
    ],
)
def test_a_missing_permission_is_named(config: Configured, arguments: list[str], permission: str) -> None:
    result = Kgctl()(*arguments, *config("SASL_SSL", "alice"), text="one\n")
    assert result.exit_code == UNREACHABLE, result.output
    assert re.search(f"not authorised for ({permission})", result.output)


def test_a_transactional_id_needs_a_permission_of_its_own(config: Configured) -> None:
    kgctl, words = Kgctl(), ("produce", "imported", "--transactional-id", "import")
    allow = ("--allow-principal", "User:alice", "--execute")
    assert kgctl("topics", "create", "imported", *config("SASL_SSL")).exit_code == 0
    added = kgctl("acls", "add", "--producer", "--topic", "imported", *allow, *config("SASL_SSL"))
    assert added.exit_code == 0, added.output
    line = failure(kgctl(*words, *config("SASL_SSL", "alice"), text="one\n"))
    assert "not authorised for DESCRIBE on transactional id import" in line
    added = kgctl("acls", "add", "--transactional-id", "import", "--operation", "Write", *allow, *config("SASL_SSL"))
    assert added.exit_code == 0, added.output
    written = kgctl(*words, *config("SASL_SSL", "alice"), text="one\n")
    assert written.exit_code == 0, written.output
    listed = kgctl("transactions", "list", "-o", "csv", *config("SASL_SSL", "bob"))
    assert listed.stdout.splitlines()[1:] == []


def test_a_wrong_property_is_a_usage_error(config: Configured) -> None:
    line = failure(Kgctl()("topics", "list", *config("SSL", ssl_trustore_location="/x")), USAGE)
    assert "ssl.trustore.location: unknown property; did you mean ssl.truststore.location?" in line


def test_host_names_that_are_not_verified_are_a_warning(config: Configured) -> None:
    result = Kgctl()("topics", "list", *config("SSL", ssl_endpoint_identification_algorithm=""))
    assert result.exit_code == 0
    assert result.stderr.count("Warning: host names are not verified") == 1


@pytest.mark.parametrize("changes", [{"sasl_password": "wrong-secret"}, {"sasl_mechanism": "SCRAM-SHA-1"}])
def test_no_traceback_shows_a_secret(config: Configured, changes: dict[str, str]) -> None:
    """Even the traceback of a bug, which KGCTL_TRACEBACK=1 asks for."""
    command = [sys.executable, "-m", "kgctl", "topics", "list", *config("SASL_SSL", **changes)]
    environment = os.environ | {"KGCTL_TRACEBACK": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode in (UNREACHABLE, USAGE)
    assert "-secret" not in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


def test_a_command_on_plaintext_loads_nothing_of_tls(broker: RunningBroker) -> None:
    host, port = broker.addresses["PLAINTEXT"]
    program = (
        "import sys; from kgctl.app import app; app(['topics', 'list'], standalone_mode=False, prog_name='kgctl'); "
        "print(sorted(sys.modules.keys() & {'ssl', '_ssl', 'hashlib', 'hmac', 'secrets', 'cryptography', 'urllib.request'}))"
    )
    environment = os.environ | {"KGCTL_BOOTSTRAP": f"{host}:{port}"}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
def test_a_trace_shows_the_authentication_and_no_secret(config: Configured, tmp_path: Path, mechanism: str) -> None:
    options = config("SASL_SSL", mechanism=mechanism)
    result = Kgctl()("topics", "list", "--trace", tmp_path / "trace", *options)
    assert result.exit_code == 0, result.output
    text = (tmp_path / "trace").read_text()
    apis = re.findall('"api": "(.*?)"', text)
    assert "SaslAuthenticate" in apis[: apis.index("Metadata")]
    assert "secret" not in text
    opened = [event for event in map(json.loads, text.splitlines()) if event["event"] == "open"]
    assert all(list(event["steps"]) == ["resolve", "connect", "tls", "sasl"] for event in opened)
