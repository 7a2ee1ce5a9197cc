"""`kgctl context test`: what works, and what to do about the first step that does not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness.certificates import Authority
from tests.harness.running import RunningBroker
from tests.harness.schema_registry import schema_registry
from tests.kgctl.contexts.folders import Home


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    """A broker with TLS and SASL PLAIN; alice's password is alice-secret."""
    folder = tmp_path_factory.mktemp("secured")
    jaas = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="alice-secret";'
    options = {
        "listeners": "SASL_SSL://127.0.0.1:0",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_ssl.plain.sasl.jaas.config": jaas,
        "connection.failed.authentication.delay.ms": "10",
    }
    with RunningBroker(folder / "data", authority=Authority(folder / "ca"), **options) as broker:
        yield broker


def store(home: Home, broker: RunningBroker, **changed: str) -> None:
    """A context that fits the broker, but for what is changed; an empty value leaves a line out."""
    assert broker.authority is not None
    host, port = broker.address
    lines = {
        "bootstrap.servers": f'"{host}:{port}"',
        "security.protocol": '"SASL_SSL"',
        "sasl.mechanism": '"PLAIN"',
        "sasl.username": '"alice"',
        "sasl.password": '{ env = "PASSWORD" }',
        "ssl.ca.location": f'"{broker.authority.ca_file}"',
    }
    lines |= {name.replace("_", "."): value for name, value in changed.items()}
    home.write("[contexts.mine]\n" + "".join(f"{name} = {value}\n" for name, value in lines.items() if value))
    home.use("mine")


def steps(home: Home, password: str = "alice-secret") -> tuple[int, list[dict[str, object]]]:
    done = home.kgctl("context", "test", "--timeout", "5", "-o", "json", PASSWORD=password)
    assert "alice-secret" not in done.output
    return done.exit_code, json.loads(done.stdout)["rows"]


def test_every_step_of_a_secured_cluster_is_shown(home: Home, secured: RunningBroker) -> None:
    store(home, secured)
    code, rows = steps(home)
    assert code == 0, rows
    assert [(row["step"], row["status"]) for row in rows] == [
        (name, "ok") for name in ("settings", "name", "port", "tls", "sasl", "api-versions", "brokers", "operations")
    ]
    found = {row["step"]: str(row["detail"]) for row in rows}
    assert found["settings"] == "SASL_SSL; secrets found: sasl.password"
    assert found["tls"].startswith("TLSv1.3 with ")
    assert "issued by O=kgctl tests,CN=kgctl test CA; expires 20" in found["tls"].replace(
        "CN=kgctl test CA,O=kgctl tests", "O=kgctl tests,CN=kgctl test CA"
    )
    assert found["sasl"] == "PLAIN as alice"
    assert found["brokers"].startswith("1 broker reached at the advertised address, cluster id ")
    assert "cluster: CREATE, ALTER, DESCRIBE" in found["operations"]


def test_the_same_context_serves_commands_and_other_processes(home: Home, secured: RunningBroker) -> None:
    store(home, secured)
    done = home.kgctl("topics", "create", "orders", PASSWORD="alice-secret")
    assert done.exit_code == 0, done.output
    exported = home.kgctl("context", "export", "--with-secrets", "--out", "client.properties", PASSWORD="alice-secret")
    assert exported.exit_code == 0, exported.output
    shown = home.kgctl("topics", "list", "--command-config", "client.properties")
    assert (shown.exit_code, "orders" in shown.stdout) == (0, True), shown.output
    framed = home.kgctl("ui", "--once", PASSWORD="alice-secret")
    assert (framed.exit_code, "No groups." in framed.stdout) == (0, True), framed.output


@pytest.mark.parametrize(
    ("changed", "step", "detail", "advice"),
    [
        ({"sasl_password": '{ env = "NOPE" }'}, "settings", "variable NOPE is not set", "kgctl context show --explain"),
        ({"sasl_mechanism": '"GSSAPI"'}, "settings", "GSSAPI", "kgctl context show --explain"),
        ({"bootstrap_servers": '"nowhere.invalid:1"'}, "name", "unknown host name", "config.toml, line 2"),
        ({"bootstrap_servers": '"127.0.0.1:1"'}, "port", "connection refused", "Check the address in"),
        (
            {"ssl_ca_location": '"/nowhere/ca.pem"'},
            "settings",
            "/nowhere/ca.pem: No such file",
            "context show --explain",
        ),
        ({"ssl_ca_location": ""}, "tls", "not trusted; name the certificate of its CA", "context show --explain"),
        ({"sasl_username": '"bob"'}, "sasl", "does not accept user 'bob'", "user and password"),
        ({"sasl_mechanism": '"SCRAM-SHA-256"'}, "sasl", "it offers PLAIN", "sasl.mechanism"),
        ({"security_protocol": '"PLAINTEXT"'}, "api-versions", "TLS", "security.protocol"),
        ({"security_protocol": '"SSL"'}, "brokers", "requires SASL", "user and password"),
    ],
)
def test_the_first_step_that_fails_ends_the_test_with_advice(
    home: Home, secured: RunningBroker, changed: dict[str, str], step: str, detail: str, advice: str
) -> None:
    store(home, secured, **changed)
    code, rows = steps(home)
    assert code == 7
    assert [row["status"] for row in rows[:-1]] == ["ok"] * (len(rows) - 1)
    last = rows[-1]
    assert (last["step"], last["status"]) == (step, "failed"), rows
    assert detail in str(last["detail"])
    assert advice in str(last["advice"])


def test_one_address_that_works_is_enough(home: Home, secured: RunningBroker) -> None:
    host, port = secured.address
    store(home, secured, bootstrap_servers=f'"127.0.0.1:1,{host}:{port}"')
    code, rows = steps(home)
    assert code == 0
    assert [row["step"] for row in rows if row["status"] == "failed"] == ["port"]


def test_the_schema_registry_of_the_context_is_the_last_step(
    home: Home, secured: RunningBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    with schema_registry() as registry:
        registry.user_info = "alice:secret"
        registry.register("orders-value", "AVRO", "string")
        url, user = f'"{registry.url}"', '{ env = "REGISTRY_USER" }'
        store(home, secured, schema_registry_url=url, schema_registry_basic_auth_user_info=user)
        monkeypatch.setenv("REGISTRY_USER", "alice:secret")
        code, rows = steps(home)
        assert code == 0, rows
        assert rows[-1]["step"] == "registry"
        assert rows[-1]["detail"] == f"{registry.url}: 1 subject visible"
        monkeypatch.setenv("REGISTRY_USER", "alice:wrong")
        code, rows = steps(home)
        assert (code, rows[-1]["step"], rows[-1]["status"]) == (7, "registry", "failed")
        assert str(rows[-1]["detail"]).endswith("check schema.registry.basic.auth.user.info")
        # What is wrong with the cluster comes first.
        code, rows = steps(home, password="no")
        assert (code, rows[-1]["step"]) == (7, "sasl")


def test_a_wrong_password_is_exit_code_7_in_every_command(home: Home, secured: RunningBroker) -> None:
    store(home, secured)
    done = home.kgctl("groups", "list", PASSWORD="wrong")
    assert done.exit_code == 7
    assert done.stderr.count("\n") == 1
    assert "does not accept user 'alice'" in done.stderr
    assert "wrong" not in done.stderr.replace("wrong credentials", "")


def test_a_broker_that_advertises_another_address_is_named(home: Home, tmp_path: Path) -> None:
    options = {"listeners": "PLAINTEXT://127.0.0.1:0", "advertised.listeners": "PLAINTEXT://127.0.0.1:1"}
    with RunningBroker(tmp_path / "data", **options) as broker:
        home.write(f'[contexts.mine]\nbootstrap.servers = "127.0.0.1:{broker.address[1]}"\n')
        home.use("mine")
        code, rows = steps(home)
    assert code == 7
    assert rows[-1]["step"] == "brokers"
    assert "127.0.0.1:1: connection refused" in str(rows[-1]["detail"])
    assert "advertised.listeners" in str(rows[-1]["advice"])
