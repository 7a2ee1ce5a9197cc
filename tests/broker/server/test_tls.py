"""TLS listeners: handshakes that succeed, fail, stall and flood, and the principals of client certificates."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import random
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from broker.config.config import load_config
from broker.config.option import ConfigError
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.metadata import MetadataRequest
from broker.security.principals import NoPrincipal
from broker.server import connections, handshake_turns, tls_transport
from broker.server.listener_tls import listener_tls
from tests.harness.certificates import Authority, Issued
from tests.harness.damaged_tls import converse
from tests.harness.requests import create_topic, fetch_request, metadata_of, produce, values_of
from tests.harness.running import RunningBroker, tls_options, until
from tests.harness.wire_client import WireClient

SSL = {"listeners": "SSL://127.0.0.1:0"}


@pytest.fixture
def running(tmp_path: Path, authority: Authority) -> Iterator[RunningBroker]:
    with RunningBroker(tmp_path / "data", authority=authority, **SSL) as broker:
        yield broker


def connect(running: RunningBroker, certificate: Issued | None = None, **limits: ssl.TLSVersion) -> WireClient:
    """A client that presents a certificate and speaks the TLS versions within its limits."""
    assert running.authority is not None
    context = ssl.create_default_context(cafile=running.authority.ca_file)
    for name, version in limits.items():
        setattr(context, name, version)
    if certificate is not None:
        context.load_cert_chain(certificate.certificate, certificate.key, certificate.password)
    client = WireClient(running.address)
    client.socket = context.wrap_socket(client.socket, server_hostname="127.0.0.1")
    return client


def principals(running: RunningBroker) -> list[str]:
    return running.run(lambda: [each.session.principal for each in running.broker.connections])


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_client_of_either_version_is_served(running: RunningBroker, version: ssl.TLSVersion) -> None:
    with connect(running, maximum_version=version) as client:
        assert metadata_of(client).brokers
        assert client.socket.version() == version.name.replace("v1_", "v1.")  # type: ignore[attr-defined]
        assert principals(running) == ["User:ANONYMOUS"]


def test_large_answers_arrive_byte_for_byte(running: RunningBroker) -> None:
    values = [os.urandom(1_000_000) for _ in range(12)]
    with running.client() as client:
        create_topic(client, "big")
        for value in values:
            assert produce(client, "big", value).error_code == ErrorCode.NONE
        found: list[bytes] = []
        while len(found) < len(values):
            asking = fetch_request("big", len(found), max_bytes=16 << 20, partition_max_bytes=16 << 20)
            found += values_of(client.ask(asking, 12).responses[0].partitions[0])
        assert found == values


def test_the_certificate_of_a_client_decides_its_principal(tmp_path: Path, authority: Authority) -> None:
    rules = "RULE:^CN=(.*?),O=kgctl tests$/$1/U,DEFAULT"
    options = SSL | {"ssl_client_auth": "requested", "ssl_principal_mapping_rules": rules}
    with RunningBroker(tmp_path, authority=authority, **options) as running:
        with connect(running, authority.client("alice", password="secret")) as client:
            metadata_of(client)
            assert principals(running) == ["User:ALICE"]
        until(lambda: principals(running) == [])
        with connect(running) as client:
            metadata_of(client)
            assert principals(running) == ["User:ANONYMOUS"]


def test_a_handshake_does_not_authenticate_a_client_that_must_use_sasl(tmp_path: Path, authority: Authority) -> None:
    options = {"listeners": "SASL_SSL://127.0.0.1:0", "listener.name.sasl_ssl.ssl.client.auth": "required"}
    with (
        RunningBroker(tmp_path, authority=authority, **options, sasl_enabled_mechanisms="SCRAM-SHA-512") as running,
        connect(running, authority.client("alice")) as client,
    ):
        (session,) = until(lambda: running.run(lambda: [each.session for each in running.broker.connections]))
        assert (session.principal, session.authenticated) == ("User:ANONYMOUS", False)
        client.send(MetadataRequest(topics=[]), 12)
        assert client.is_closed()


@pytest.mark.parametrize(
    ("who", "reason"),
    [
        ("nobody", "the client presents no certificate, but ssl.client.auth=required"),
        ("expired", "the client's certificate is refused: certificate has expired"),
        ("stranger", "the client's certificate is refused: self-signed certificate in certificate chain"),
        ("server", "the client's certificate is refused: unsuitable certificate purpose"),
        ("unmapped", "no rule of ssl.principal.mapping.rules applies to CN=unmapped,O=kgctl tests"),
    ],
)
def test_a_client_without_a_good_certificate_is_refused_in_one_line(
    tmp_path: Path, authority: Authority, caplog: pytest.LogCaptureFixture, who: str, reason: str
) -> None:
    certificates = {
        "nobody": None,
        "expired": authority.client("expired", expired=True),
        "stranger": Authority(tmp_path / "other", name="another CA").client("alice"),
        "server": authority.server(),
        "unmapped": authority.client("unmapped"),
    }
    options = SSL | {"ssl_client_auth": "required", "ssl_principal_mapping_rules": "RULE:^CN=alice,.*$/alice/"}
    with RunningBroker(tmp_path / "data", authority=authority, **options) as running:
        # With TLS 1.3 a client learns of the refusal when it reads.
        with contextlib.suppress(ssl.SSLError, ConnectionError), connect(running, certificates[who]) as client:
            client.send(MetadataRequest(topics=[]), 12)
            assert client.is_closed()
        until(lambda: reason in caplog.text)
        until(lambda: not len(running.broker.connections))
        with connect(running, authority.client("alice")) as client:
            assert metadata_of(client).brokers
    assert len(caplog.records) == 1


def test_a_listener_warns_of_its_expired_certificate(authority: Authority, caplog: pytest.LogCaptureFixture) -> None:
    def start(certificate: Issued) -> None:
        store = {"ssl.keystore.location": str(certificate.bundle), "ssl.keystore.type": "PEM"}
        listener_tls(load_config(overrides=SSL | store))

    start(authority.server())
    assert caplog.text == ""
    start(authority.server("old", expired=True))
    assert "listener SSL: its certificate expired on 20" in caplog.text


def test_the_certificate_of_a_resumed_session_must_still_be_valid(running: RunningBroker, authority: Authority) -> None:
    chain = authority.client("expired", expired=True).certificate.read_bytes()
    expired = x509.load_pem_x509_certificate(chain).public_bytes(Encoding.DER)
    with connect(running) as client:
        metadata_of(client)
        (session,) = running.run(lambda: [each.session for each in running.broker.connections])
        with pytest.raises(NoPrincipal, match="the client's certificate expired on 20"):
            session.secured(expired)


def test_a_client_of_the_wrong_protocol_is_disconnected_at_once_with_one_line(
    tmp_path: Path, authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    listeners = "PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:0"
    with RunningBroker(tmp_path, authority=authority, listeners=listeners) as running:
        with WireClient(running.addresses["SSL"]) as plain:
            plain.send(MetadataRequest(topics=[]), 12)
            assert plain.socket.recv(100) == tls_transport.ALERT
            assert plain.is_closed()
        until(lambda: "the client does not speak TLS" in caplog.text)
        with pytest.raises((ssl.SSLError, ConnectionError)):
            ssl.create_default_context().wrap_socket(
                socket.create_connection(running.addresses["PLAINTEXT"]), server_hostname="localhost"
            )
        until(lambda: "the client speaks TLS, but this listener does not" in caplog.text)
    assert len(caplog.records) == 2


def test_a_client_that_refuses_the_certificate_is_logged(
    running: RunningBroker, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(ssl.SSLCertVerificationError):
        ssl.create_default_context().wrap_socket(socket.create_connection(running.address), server_hostname="127.0.0.1")
    until(lambda: "the client refuses the broker's certificate" in caplog.text)


def test_a_client_that_does_not_complete_its_handshake_is_disconnected(
    running: RunningBroker, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(tls_transport, "HANDSHAKE_S", 0.1)
    with WireClient(running.address) as silent:
        silent.send_bytes(b"\x16\x03\x01")
        assert silent.is_closed()
    assert "no handshake within" in caplog.text


def test_a_client_that_completed_its_handshake_has_no_further_deadline(
    tmp_path: Path, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "AUTHENTICATION_S", 0.3)
    with RunningBroker(tmp_path, authority=authority, **SSL) as running, running.client() as client:
        with WireClient(running.address) as silent:
            assert silent.is_closed()
        assert metadata_of(client).brokers


def test_connections_count_in_the_limits_before_their_handshake(tmp_path: Path, authority: Authority) -> None:
    with (
        RunningBroker(tmp_path / "a", authority=authority, max_connections_per_ip="1", **SSL) as running,
        WireClient(running.address),
        WireClient(running.address) as second,
    ):
        assert second.is_closed()
    with RunningBroker(tmp_path / "b", authority=authority, max_connections="1", **SSL) as running:
        first = WireClient(running.address)
        until(lambda: len(running.broker.connections))
        with WireClient(running.address) as second:
            assert second.is_quiet()
            first.close()
            until(lambda: len(running.broker.connections) == 1)


def test_a_client_whose_principal_cannot_be_found_out_is_disconnected(tmp_path: Path, authority: Authority) -> None:
    overrides = {name.replace("_", "."): value for name, value in (SSL | tls_options(authority)).items()}
    (tls,) = listener_tls(load_config(overrides=overrides)).values()

    class Failing(asyncio.Protocol):
        def secured(self, certificate: bytes | None) -> None:
            raise ValueError("an error in the broker")

    def talk(client: socket.socket) -> bytes:
        context = ssl.create_default_context(cafile=authority.ca_file)
        with context.wrap_socket(client, server_hostname="127.0.0.1") as secured:
            return secured.recv(1)

    async def serve() -> bytes:
        loop, errors = asyncio.get_running_loop(), list[object]()
        loop.set_exception_handler(lambda _, context: errors.append(context["exception"]))
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        theirs.settimeout(5)
        await tls.connector(Failing, loop)(ours)
        answer = await asyncio.to_thread(talk, theirs)
        assert [str(error) for error in errors] == ["an error in the broker"]
        return answer

    assert asyncio.run(serve()) == b""


def test_clients_are_served_between_the_handshakes_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    # One handshake takes all the time of a turn.
    monkeypatch.setattr(handshake_turns, "TURN_S", 0.0)
    order: list[str] = []

    async def serve() -> None:
        turns = handshake_turns.HandshakeTurns(asyncio.get_running_loop())
        for _ in range(3):
            turns.run(lambda: order.append("handshake"))
        for _ in range(3):
            await asyncio.sleep(0)
            order.append("client")

    asyncio.run(serve())
    assert order == ["handshake", "client"] * 3


def test_a_handshake_that_fails_does_not_stall_others() -> None:
    order: list[str] = []

    def fail() -> None:
        raise ValueError("an error in the broker")

    async def serve() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: order.append("failed"))
        turns = handshake_turns.HandshakeTurns(loop)
        for step in (fail, lambda: order.append("handshake")):
            turns.run(step)
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    asyncio.run(serve())
    assert order == ["failed", "handshake"]


def test_a_probe_that_connects_and_closes_logs_nothing(
    running: RunningBroker, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(20):
        socket.create_connection(running.address).close()
    with running.client() as client:
        assert metadata_of(client).brokers
    assert caplog.records == []


@pytest.mark.parametrize("seed", range(2))
def test_damaged_handshakes_and_records_harm_nobody(
    running: RunningBroker, caplog: pytest.LogCaptureFixture, seed: int
) -> None:
    randomness = random.Random(seed)
    caplog.set_level(logging.ERROR)
    for _ in range(60):
        with socket.create_connection(running.address, timeout=5) as sock:
            converse(sock, randomness)
    with running.client() as client:
        assert metadata_of(client).brokers
    until(lambda: not len(running.broker.connections))
    assert caplog.records == []


@pytest.mark.parametrize("kind", ["inline", "inline on one line", "PEM", "PKCS12"])
def test_a_certificate_may_come_in_any_form_that_kafka_takes(tmp_path: Path, authority: Authority, kind: str) -> None:
    issued = authority.server("locked-server", password="key-secret")
    chain, key = issued.certificate.read_text(), issued.key.read_text()
    if kind == "inline on one line":
        chain, key = chain.replace("\n", " "), key.replace("\n", " ")
    inline = {"type": "PEM", "certificate_chain": chain, "key": key}
    store = {
        "PEM": {"type": "PEM", "location": str(issued.bundle)},
        "PKCS12": {"type": "PKCS12", "location": str(issued.pkcs12), "password": issued.store_password},
    }.get(kind, inline)
    options = {f"ssl_keystore_{name}": value for name, value in store.items()} | SSL
    with RunningBroker(tmp_path / "data", ssl_key_password="key-secret", **options) as running:
        running.authority = authority
        with connect(running) as client:
            assert metadata_of(client).brokers


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"ssl.keystore.location": None}, "needs a certificate: set ssl.keystore.location, or"),
        ({"ssl.keystore.location": "/absent.pem"}, "/absent.pem: No such file or directory"),
        (
            {"ssl.keystore.type": "PKCS12"},
            "ssl.keystore.location needs ssl.keystore.password, or ssl.keystore.type=PEM",
        ),
        ({"ssl.keystore.password": "hunter2"}, "ssl.keystore.password does not belong to a PEM store"),
        ({"ssl.keystore.key": "x"}, "ssl.keystore.location and ssl.keystore.certificate.chain are both set"),
        ({"ssl.keystore.key": "x", "ssl.keystore.location": None}, "belong together; only one of them is set"),
        (
            {"ssl.keystore.type": "PKCS12", "ssl.keystore.location": "P12", "ssl.keystore.password": "hunter2"},
            "the password does not open the store",
        ),
        ({"ssl.keystore.location": "LOCKED"}, "the private key is encrypted; its password is missing"),
        (
            {"ssl.keystore.location": "LOCKED", "ssl.key.password": "hunter2"},
            "the password does not open the private key",
        ),
        (
            {"ssl.client.auth": "required", "ssl.truststore.location": None},
            "set ssl.truststore.location or ssl.truststore.certificates",
        ),
        ({"ssl.principal.mapping.rules": "RULE:x"}, "'RULE:x' is not DEFAULT or RULE:pattern/replacement/[LU]"),
        ({"ssl.cipher.suites": "TLS_NULL"}, "ssl.cipher.suites: 'TLS_NULL' is not known, or too weak"),
        (
            {"ssl.cipher.suites": "TLS_AES_128_GCM_SHA256", "ssl.enabled.protocols": "TLSv1.2"},
            "no suite belongs to a version",
        ),
    ],
)
def test_options_that_do_not_fit_are_refused_in_one_line(
    authority: Authority, changed: dict[str, str | None], message: str
) -> None:
    locked = authority.client("locked", password="key-secret")
    files = {"P12": str(locked.pkcs12), "LOCKED": str(locked.bundle)}
    options = {"listeners": "SSL://127.0.0.1:0"}
    options |= {name.replace("_", "."): value for name, value in tls_options(authority).items()}
    for name, value in changed.items():
        options.pop(name, None)
        if value is not None:
            options[name] = files.get(value, value)
    with pytest.raises(ConfigError) as caught:
        listener_tls(load_config(overrides=options))
    line = str(caught.value)
    assert line.startswith("listener SSL: ")
    assert message in line
    assert "\n" not in line
    assert "hunter2" not in line


def test_only_the_chosen_versions_and_suites_are_spoken(tmp_path: Path, authority: Authority) -> None:
    suites = "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"
    with RunningBroker(tmp_path, authority=authority, ssl_cipher_suites=suites, **SSL) as running:
        with connect(running) as client:
            assert client.socket.cipher()[0] == "ECDHE-ECDSA-AES128-GCM-SHA256"  # type: ignore[attr-defined]
        with pytest.raises(ssl.SSLError):
            connect(running, minimum_version=ssl.TLSVersion.TLSv1_3)
