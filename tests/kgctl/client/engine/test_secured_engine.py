"""The engine over TLS and SASL: each protocol, sessions that end, refused credentials, large requests and answers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.protocol.messages.fetch import FetchRequest, FetchResponse
from broker.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from broker.protocol.messages.produce import ProduceRequest, ProduceResponse
from kgctl.client.net.errors import AuthenticationFailed, KgctlError, TlsFailed
from kgctl.client.net.steps import Endpoint
from tests.harness import sasl_conversations as sasl
from tests.harness.certificates import Authority
from tests.harness.requests import batch
from tests.harness.running import RunningBroker
from tests.harness.secured_broker import PASSWORD, USER, secured_broker
from tests.kgctl.client.engine.asking import SECONDS, asking


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("ca"))


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory, authority: Authority) -> Iterator[RunningBroker]:
    with secured_broker(tmp_path_factory.mktemp("data"), authority) as running:
        yield running


def properties(authority: Authority, protocol: str, mechanism: str = "", password: str = PASSWORD) -> dict[str, str]:
    found = {"security_protocol": protocol}
    if protocol.endswith("SSL"):
        found["ssl_ca_location"] = str(authority.ca_file)
    if protocol == "SSL":
        own = authority.client(USER)
        found |= {"ssl_certificate_location": str(own.certificate), "ssl_key_location": str(own.key)}
    if protocol.startswith("SASL"):
        found |= {"sasl_mechanism": mechanism, "sasl_username": USER, "sasl_password": password}
    return found


def endpoint(broker: RunningBroker, protocol: str) -> Endpoint:
    return Endpoint(*broker.addresses[protocol])


@pytest.mark.parametrize(
    ("protocol", "mechanism"),
    [("SSL", ""), ("SASL_PLAINTEXT", "PLAIN"), ("SASL_PLAINTEXT", "SCRAM-SHA-256"), ("SASL_SSL", "SCRAM-SHA-512")],
)
def test_large_requests_and_answers_pass_over_each_protocol(
    broker: RunningBroker, authority: Authority, protocol: str, mechanism: str
) -> None:
    topic, values = f"large-{protocol}-{mechanism}", [bytes([65 + n]) * 900_000 for n in range(8)]
    with asking(endpoint(broker, protocol), **properties(authority, protocol, mechanism)) as client:
        with client.engine.lock:
            client.network.metadata.want([topic])
        metadata = client.network.metadata
        assert client.engine.wait(lambda: metadata.topic_id(topic) is not None, SECONDS)
        topic_id = metadata.topic_id(topic)
        assert topic_id is not None
        sent = [client.send(1, produce(topic_id, batch(value)), ProduceResponse) for value in values]
        assert client.engine.wait(lambda: all(sent), SECONDS)
        for (answer,) in sent:
            assert isinstance(answer, ProduceResponse)
            assert answer.responses[0].partition_responses[0].error_code == 0
        found = client.ask(fetch(topic_id), FetchResponse)
        records = bytes(found.responses[0].partitions[0].records)
        assert len(records) > 7_200_000
        assert all(value in records for value in values)


def produce(topic_id: bytes, records: bytes) -> ProduceRequest:
    row = ProduceRequest.Partition(index=0, records=records)
    topic = ProduceRequest.Topic(topic_id=topic_id, partition_data=[row])
    return ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=[topic])


def fetch(topic_id: bytes) -> FetchRequest:
    row = FetchRequest.Partition(partition=0, fetch_offset=0, partition_max_bytes=1 << 25)
    topic = FetchRequest.Topic(topic_id=topic_id, partitions=[row])
    return FetchRequest(max_wait_ms=1000, min_bytes=1, topics=[topic])


def test_no_request_fails_when_sessions_end(tmp_path: Path) -> None:
    """KIP-368: a session ends after a second, and the broker closes connections that use it longer."""
    options = sasl.options_of("sasl_plaintext") | {"connections.max.reauth.ms": "1000"}
    with RunningBroker(tmp_path, listeners="SASL_PLAINTEXT://127.0.0.1:0", **options) as broker:
        given = {
            "security_protocol": "SASL_PLAINTEXT",
            "sasl_mechanism": "PLAIN",
            "sasl_username": USER,
            "sasl_password": PASSWORD,
        }
        with asking(endpoint(broker, "SASL_PLAINTEXT"), **given) as client:
            links: set[int] = set()
            while len(links) < 3:
                client.ask(ListGroupsRequest(), ListGroupsResponse)
                peer = client.network._connections.peers[1]
                if peer.link is not None:
                    links.add(peer.link.number)


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
def test_refused_credentials_are_an_error_for_the_program(
    broker: RunningBroker, authority: Authority, mechanism: str
) -> None:
    given = properties(authority, "SASL_PLAINTEXT", mechanism, password="wrong")
    error = failure(endpoint(broker, "SASL_PLAINTEXT"), given)
    assert isinstance(error, AuthenticationFailed)
    assert f"the broker does not accept user 'alice' with {mechanism}" in str(error)


def test_a_listener_that_requires_tls_is_recognized(broker: RunningBroker) -> None:
    error = failure(endpoint(broker, "SSL"), {"security_protocol": "PLAINTEXT"})
    assert "TLS" in str(error)
    assert "security.protocol=SSL" in str(error)


def test_a_certificate_that_is_not_trusted_is_explained(broker: RunningBroker, tmp_path: Path) -> None:
    other = Authority(tmp_path)
    error = failure(endpoint(broker, "SSL"), {"security_protocol": "SSL", "ssl_ca_location": str(other.ca_file)})
    assert isinstance(error, TlsFailed)
    assert "ssl.truststore.location" in str(error)


def failure(address: Endpoint, given: dict[str, str]) -> KgctlError:
    """Why a client cannot reach the cluster."""
    with asking(address, **given) as client:
        network = client.network
        assert client.engine.wait(lambda: bool(network.metadata.error or network.error_of(-1)), SECONDS)
        error = network.metadata.error or network.error_of(-1)
        assert error is not None
        return error
