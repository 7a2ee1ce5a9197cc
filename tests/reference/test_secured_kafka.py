"""kgctl on a real Kafka over each security protocol and mechanism: with good and bad credentials, and in long sessions."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kgctl.client.admin.admin import Admin
from kgctl.client.consumer.consumer import Consumer
from kgctl.client.consumer.fetching.options import FetchOptions
from kgctl.client.consumer.reset_strategy import EARLIEST
from kgctl.client.consumer.settings import ConsumerSettings
from kgctl.client.net.bootstrap import parse
from kgctl.client.net.client_properties import security_from
from kgctl.client.net.connector import ConnectionSettings
from kgctl.client.net.errors import AuthenticationFailed, KgctlError, TlsFailed
from kgctl.client.network.settings import NetworkSettings
from kgctl.client.producer.core.accumulator import AccumulatorSettings
from kgctl.client.producer.core.client import CoreSettings
from kgctl.client.producer.producer import Producer
from kgctl.client.producer.shared_face import Plugins, ProducerSettings
from kgctl.exit_codes import UNREACHABLE, exit_code_of
from tests.harness.clusters import fresh
from tests.harness.reference_kafka import Unavailable
from tests.harness.secured_kafka import ADMIN, MECHANISMS, SecuredKafka, unsecured_token

SASL_PROTOCOLS = ("SASL_PLAINTEXT", "SASL_SSL")
# Sessions of this mechanism on this listener end soon; Kafka allows one authentication a second.
SHORT = "listener.name.sasl_ssl.scram-sha-256.connections.max.reauth.ms"
SHORT_MS = 1500
EVERYBODY = {"super.users": "User:admin;User:ANONYMOUS;User:CN=carol,O=kgctl tests"}


@pytest.fixture(scope="module")
def kafka() -> Iterator[SecuredKafka]:
    try:
        running = SecuredKafka({SHORT: str(SHORT_MS), **EVERYBODY})
    except Unavailable as reason:
        pytest.skip(f"no real Kafka: {reason}")
    with running:
        yield running


def settings(kafka: SecuredKafka, listener: str, properties: dict[str, str]) -> ConnectionSettings:
    return ConnectionSettings(parse(kafka.addresses[listener]), timeout=10, security=security_from(properties))


def round_trip(chosen: ConnectionSettings, count: int = 100) -> None:
    """Produce records and fetch them."""
    topic = fresh("secured")
    with Producer.connect(chosen, ProducerSettings(), Plugins()) as producer:
        for number in range(count):
            producer.send(topic, b"%d" % number, partition=0)
    values: list[bytes | None] = []
    with reader_of(chosen, topic) as consumer:
        while len(values) < count:
            values += [record.value for record in consumer.poll(10)]
    assert values == [b"%d" % number for number in range(count)]


def reader_of(chosen: ConnectionSettings, topic: str) -> Consumer:
    consumer = Consumer.connect(chosen, ConsumerSettings(NetworkSettings(), FetchOptions(), group=None, reset=EARLIEST))
    consumer.assign([(topic, 0)])
    return consumer


def failure(chosen: ConnectionSettings) -> KgctlError:
    with Admin(chosen) as admin, pytest.raises(KgctlError) as failed:
        admin.list_topics()
    assert exit_code_of(failed.value) == UNREACHABLE
    assert not failed.value.retriable
    return failed.value


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("protocol", SASL_PROTOCOLS)
def test_records_go_round_with_each_mechanism(kafka: SecuredKafka, protocol: str, mechanism: str) -> None:
    round_trip(settings(kafka, protocol, kafka.properties(protocol, ADMIN, mechanism)))


@pytest.mark.parametrize("protocol", ["PLAINTEXT", "SSL"])
def test_records_go_round_without_sasl(kafka: SecuredKafka, protocol: str) -> None:
    round_trip(settings(kafka, protocol, kafka.properties(protocol)))


@pytest.mark.parametrize("form", ["PEM", "PKCS12", "JKS"])
def test_a_client_certificate_is_the_principal(kafka: SecuredKafka, tmp_path: Path, form: str) -> None:
    carol = kafka.authority.client("carol")
    own = {"ssl.keystore.location": str(carol.bundle)}
    trust = {"ssl.truststore.location": str(kafka.authority.ca_file)}
    if form != "PEM":
        own = {"ssl.keystore.location": str(carol.pkcs12), "ssl.keystore.password": carol.store_password}
        trust = {
            "ssl.truststore.location": str(kafka.authority.trust_store),
            "ssl.truststore.password": kafka.authority.trust_store_password,
        }
    if form == "JKS":
        own = converted(own, "ssl.keystore", tmp_path / "carol.jks")
        trust = converted(trust, "ssl.truststore", tmp_path / "ca.jks")
    types = {"ssl.keystore.type": form, "ssl.truststore.type": form}
    chosen = settings(kafka, "SSL", {"security.protocol": "SSL", **own, **trust, **types})
    round_trip(chosen, 1)
    with Admin(chosen) as admin:
        assert not admin.list_groups().errors


def converted(store: dict[str, str], prefix: str, path: Path) -> dict[str, str]:
    """A PKCS12 store as keytool makes a JKS store of it."""
    password = store[f"{prefix}.password"]
    source = ["-srckeystore", store[f"{prefix}.location"], "-srcstoretype", "PKCS12", "-srcstorepass", password]
    target = ["-destkeystore", str(path), "-deststoretype", "JKS", "-deststorepass", password]
    subprocess.run(["keytool", "-importkeystore", "-noprompt", *source, *target], check=True, capture_output=True)
    return {f"{prefix}.location": str(path), f"{prefix}.password": password}


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
@pytest.mark.parametrize("user", ["alice", "nobody"])
def test_wrong_credentials_say_so(kafka: SecuredKafka, mechanism: str, user: str) -> None:
    properties = kafka.properties("SASL_SSL", user, mechanism, password="wrong-secret")
    error = failure(settings(kafka, "SASL_SSL", properties))
    assert f"the broker does not accept user '{user}' with {mechanism}: " in str(error)
    assert "wrong-secret" not in str(error)


def test_an_expired_token_says_so(kafka: SecuredKafka) -> None:
    token = unsecured_token("alice", -60)
    properties = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.token": token,
    }
    error = failure(settings(kafka, "SASL_PLAINTEXT", properties))
    assert "does not accept the token with OAUTHBEARER: invalid_token" in str(error)
    assert token not in str(error)


# Listener, protocol of the client, what the error says.
MISMATCHES = [
    ("PLAINTEXT", "SSL", TlsFailed, "does not speak TLS"),
    ("SASL_PLAINTEXT", "SASL_SSL", TlsFailed, "does not speak TLS"),
    ("SSL", "PLAINTEXT", TlsFailed, "requires TLS"),
    ("SASL_SSL", "PLAINTEXT", TlsFailed, "requires TLS"),
    ("SASL_SSL", "SASL_PLAINTEXT", TlsFailed, "requires TLS"),
    ("SASL_PLAINTEXT", "PLAINTEXT", AuthenticationFailed, "requires SASL; set security.protocol=SASL_PLAINTEXT"),
    ("SASL_SSL", "SSL", AuthenticationFailed, "requires SASL; set security.protocol=SASL_SSL"),
    ("PLAINTEXT", "SASL_PLAINTEXT", AuthenticationFailed, "does not use SASL"),
    ("SSL", "SASL_SSL", AuthenticationFailed, "does not use SASL"),
]


@pytest.mark.parametrize(("listener", "protocol", "kind", "sentence"), MISMATCHES)
def test_a_protocol_that_does_not_fit_the_listener_is_named(
    kafka: SecuredKafka, listener: str, protocol: str, kind: type[KgctlError], sentence: str
) -> None:
    user = ADMIN if protocol.startswith("SASL") else None
    error = failure(settings(kafka, listener, kafka.properties(protocol, user)))
    assert isinstance(error, kind)
    assert sentence in str(error)


def test_an_unknown_ca_is_named(kafka: SecuredKafka) -> None:
    error = failure(settings(kafka, "SSL", {"security.protocol": "SSL"}))
    assert "is issued by CN=kgctl test CA,O=kgctl tests, which is not trusted" in str(error)


def test_a_missing_permission_is_named(kafka: SecuredKafka) -> None:
    topic = fresh("secret")
    with Admin(settings(kafka, "SASL_SSL", kafka.properties("SASL_SSL", ADMIN))) as admin:
        admin.create_topics([topic], partitions=1, replicas=1)
    with Admin(settings(kafka, "SASL_SSL", kafka.properties("SASL_SSL", "bob"))) as admin:
        (group,) = admin.describe_groups(["orders"])
        assert group.error is not None
        assert str(group.error.message) == "not authorised for DESCRIBE on group orders (GROUP_AUTHORIZATION_FAILED)"
        assert exit_code_of(group.error) == UNREACHABLE
        (row,) = admin.describe_topics([topic])
        assert row.error is not None
        assert f"not authorised for DESCRIBE on topic {topic}" in row.error.message


def test_long_sessions_authenticate_again_and_lose_nothing(kafka: SecuredKafka) -> None:
    """A producer with requests in flight and a consumer outlive several sessions."""
    chosen = settings(kafka, "SASL_SSL", kafka.properties("SASL_SSL", ADMIN, "SCRAM-SHA-256"))
    topic, sent, values = fresh("long"), 0, list[bytes | None]()
    end = time.monotonic() + 4 * SHORT_MS / 1000
    producer = Producer.connect(chosen, _without_linger(), Plugins())
    producer.partitions_for(topic)
    with reader_of(chosen, topic) as consumer:
        while time.monotonic() < end or len(values) < sent:
            if time.monotonic() < end:
                producer.send(topic, b"%d" % sent, partition=0)
                sent += 1
            else:
                producer.flush()
            values += [record.value for record in consumer.poll(0.001 if len(values) < sent - 500 else 0)]
            assert not values or consumer.obstacle() is None
        producer.close()
    with Admin(chosen) as admin:
        admin.list_topics()
    assert values == [b"%d" % number for number in range(sent)]
    assert producer.metrics()["record-error-total"] == 0


def _without_linger() -> ProducerSettings:
    return ProducerSettings(CoreSettings(accumulator=AccumulatorSettings(linger_ms=0)))
