"""Real clients produce, consume and commit over each security protocol and mechanism, and report what is wrong."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from broker.protocol.errors import ErrorCode
from broker.protocol.messages.alter_user_scram_credentials import AlterUserScramCredentialsRequest
from tests.clients.adapters import Client, Credentials, Membership, Place, client_named
from tests.clients.records import read
from tests.harness.certificates import Authority
from tests.harness.clusters import fresh
from tests.harness.running import RunningBroker, until
from tests.harness.scram_requests import drop
from tests.harness.secured_broker import PASSWORD, USER, address, secured_broker
from tests.harness.secured_kafka import MECHANISMS, unsecured_token

CASES = [("SSL", ""), *((protocol, each) for protocol in ("SASL_PLAINTEXT", "SASL_SSL") for each in MECHANISMS)]


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("ca"))


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory, authority: Authority) -> Iterator[RunningBroker]:
    with secured_broker(tmp_path_factory.mktemp("data"), authority) as running:
        yield running


def alice(authority: Authority, protocol: str, mechanism: str) -> Credentials:
    certificate = authority.client(USER) if protocol == "SSL" else None
    return Credentials(
        protocol,
        mechanism,
        USER,
        PASSWORD,
        unsecured_token(USER),
        authority.ca_file if protocol.endswith("SSL") else None,
        certificate and certificate.certificate,
        certificate and certificate.key,
    )


@pytest.mark.parametrize(("protocol", "mechanism"), CASES)
def test_a_client_produces_consumes_and_commits(
    broker: RunningBroker, authority: Authority, client: Client, client_name: str, protocol: str, mechanism: str
) -> None:
    topic = fresh("-".join([client_name, protocol, mechanism]))
    bootstrap, options = address(broker, protocol), client.security(alice(authority, protocol, mechanism))
    with contextlib.closing(client.producer(bootstrap, options=options)) as producer:
        sent = producer.send(topic, b"value", partition=0)
        producer.flush(10)
        assert sent.result(10) == Place(0, 0)
    with contextlib.closing(client.member(bootstrap, Membership(topic, topic), options)) as consumer:
        assert [record.value for record in read(consumer, 1)] == [b"value"]
        consumer.commit(topic, {0: 1})
        assert consumer.committed(topic, 0) == 1


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_wrong_credentials_are_reported(
    broker: RunningBroker, authority: Authority, client: Client, mechanism: str, caplog: pytest.LogCaptureFixture
) -> None:
    wrong = replace(alice(authority, "SASL_SSL", mechanism), password="wrong", token="not-a-token")
    error = client.refusal(address(broker, "SASL_SSL"), client.security(wrong))
    # Clients in Python may see only that the connection closes, on a Kafka as well.
    closed = "connection at .* closed|socket disconnected"
    assert re.search(f"(?i)authentication failed|invalid_token|{closed}", error + logged(caplog))


def test_a_certificate_of_another_authority_is_reported(
    broker: RunningBroker, authority: Authority, client: Client, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    wrong = replace(alice(authority, "SSL", ""), ca_file=Authority(tmp_path, "another").ca_file)
    error = client.refusal(address(broker, "SSL"), client.security(wrong))
    assert re.search("(?i)certificate.verify.failed", error + logged(caplog))


def test_a_deleted_user_is_refused_when_its_session_ends(tmp_path: Path, authority: Authority) -> None:
    """librdkafka is the one of these clients that authenticates again during a session (KIP-368)."""
    pytest.importorskip("confluent_kafka")
    client, errors = client_named("confluent-kafka"), list[str]()
    short = {"listener.name.sasl_ssl.connections.max.reauth.ms": "1000"}
    with secured_broker(tmp_path, authority, **short) as broker:
        noting = {"error_cb": lambda error: errors.append(str(error))}
        options = {**client.security(alice(authority, "SASL_SSL", "SCRAM-SHA-256")), **noting}
        with contextlib.closing(client.producer(address(broker, "SASL_SSL"), options=options)) as producer:
            sent = producer.send("t", b"before")
            producer.flush(10)
            assert sent.result(10) == Place(0, 0)
            with broker.client("PLAINTEXT") as admin:
                deletion = AlterUserScramCredentialsRequest(deletions=[drop(USER)], upsertions=[])
                assert [row.error_code for row in admin.ask(deletion).results] == [ErrorCode.NONE]
            until(lambda: producer.flush(1) or errors)
    assert "Authentication failed during re-authentication" in errors[0]


def logged(caplog: pytest.LogCaptureFixture) -> str:
    """What the client logged. Clients in Python give the reason only there."""
    return "\n".join(record.getMessage() for record in caplog.records if not record.name.startswith("broker"))
