"""Java clients use our broker over each security protocol and mechanism, with the properties that they use for a Kafka."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.harness.certificates import Authority
from tests.harness.reference_kafka import KafkaTools
from tests.harness.running import RunningBroker
from tests.harness.secured_broker import PASSWORD, USER, address, secured_broker
from tests.harness.secured_kafka import MECHANISMS, jaas


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("ca"))


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory, authority: Authority) -> Iterator[RunningBroker]:
    with secured_broker(tmp_path_factory.mktemp("data"), authority) as running:
        yield running


def properties(authority: Authority, protocol: str, mechanism: str, password: str = PASSWORD) -> dict[str, str]:
    made = {"security.protocol": protocol}
    if protocol.endswith("SSL"):
        made |= {
            "ssl.truststore.location": str(authority.trust_store),
            "ssl.truststore.password": authority.trust_store_password,
        }
    if protocol == "SSL":
        own = authority.client(USER)
        made |= {"ssl.keystore.location": str(own.pkcs12), "ssl.keystore.password": own.store_password}
    if mechanism:
        made |= {"sasl.mechanism": mechanism, "sasl.jaas.config": jaas(mechanism, USER, password)}
    return made


class Java:
    """Kafka's tools on one listener of the broker."""

    def __init__(self, tools: KafkaTools, broker: RunningBroker, protocol: str, config: Mapping[str, str], to: Path):
        self._tools, self._where = tools, ["--bootstrap-server", address(broker, protocol)]
        self._file = to / "client.properties"
        self._file.write_text("".join(f"{name}={value}\n" for name, value in config.items()))

    def run(self, tool: str, *arguments: object, text: str | None = None) -> subprocess.CompletedProcess[str]:
        config = {"console-producer": "--producer.config", "console-consumer": "--consumer.config"}
        named = [config.get(tool, "--command-config"), self._file]
        return self._tools.run(tool, *self._where, *named, *arguments, text=text)

    def succeed(self, tool: str, *arguments: object, text: str | None = None) -> str:
        done = self.run(tool, *arguments, text=text)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


def case(protocol: str, mechanism: str) -> Any:
    """Over TLS each mechanism; without TLS in a long run, except one."""
    is_quick = protocol.endswith("SSL") or mechanism == "SCRAM-SHA-256"
    return pytest.param(protocol, mechanism, marks=[] if is_quick else pytest.mark.soak)


@pytest.mark.parametrize(
    ("protocol", "mechanism"),
    [case("SSL", ""), *(case(protocol, each) for protocol in ("SASL_PLAINTEXT", "SASL_SSL") for each in MECHANISMS)],
)
def test_a_java_client_produces_consumes_and_commits(
    tools: KafkaTools, broker: RunningBroker, authority: Authority, tmp_path: Path, protocol: str, mechanism: str
) -> None:
    java = Java(tools, broker, protocol, properties(authority, protocol, mechanism), tmp_path)
    topic = f"java-{protocol}-{mechanism}"
    java.succeed("console-producer", "--topic", topic, text="one\ntwo\n")
    reading = ["--topic", topic, "--group", topic, "--from-beginning", "--max-messages", 2, "--timeout-ms", 20_000]
    assert java.succeed("console-consumer", *reading).split() == ["one", "two"]
    described = java.succeed("consumer-groups", "--describe", "--group", topic)
    assert [line.split()[3] for line in described.splitlines() if line.startswith(topic)] == ["2"]


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
def test_a_java_client_reports_a_wrong_password(
    tools: KafkaTools, broker: RunningBroker, authority: Authority, tmp_path: Path, mechanism: str
) -> None:
    java = Java(tools, broker, "SASL_SSL", properties(authority, "SASL_SSL", mechanism, "wrong"), tmp_path)
    done = java.run("topics", "--list")
    assert done.returncode == 1
    assert "SaslAuthenticationException" in done.stdout + done.stderr


def test_a_java_client_reports_an_authority_that_it_does_not_trust(
    tools: KafkaTools, broker: RunningBroker, tmp_path: Path
) -> None:
    other = properties(Authority(tmp_path / "other"), "SASL_SSL", "PLAIN")
    done = Java(tools, broker, "SASL_SSL", other, tmp_path).run("topics", "--list")
    assert done.returncode == 1
    assert "SslAuthenticationException" in done.stdout + done.stderr
