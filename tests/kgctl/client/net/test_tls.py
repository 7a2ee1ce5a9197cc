"""Connections over TLS: whom kgctl trusts, what it presents, and one clear sentence for each failure."""

from __future__ import annotations

import contextlib
import select
import socket
import ssl
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from broker.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from broker.protocol.messages.metadata import MetadataResponse
from kgctl.client.admin.admin import Admin
from kgctl.client.net.bootstrap import parse
from kgctl.client.net.client_properties import security_from
from kgctl.client.net.connection import Connection
from kgctl.client.net.connector import ConnectionSettings, Connector
from kgctl.client.net.errors import KgctlError, TlsFailed, Unreachable
from kgctl.client.net.security import BadSecurity
from kgctl.client.net.steps import Endpoint
from kgctl.exit_codes import UNREACHABLE, exit_code_of
from tests.harness.certificates import Authority, Issued
from tests.harness.clusters import Cluster
from tests.harness.feeding import METADATA
from tests.harness.listeners import listening, wait_for_the_end
from tests.harness.scripted_node import ScriptedNode

ServerContext = Callable[[Issued], ssl.SSLContext]


def settings(endpoint: Endpoint, timeout: float = 5.0, **properties: str) -> ConnectionSettings:
    """Settings for `ssl.` properties that are given with underscores."""
    named = {"ssl." + name.replace("_", "."): value for name, value in properties.items()}
    security = security_from({"security.protocol": "SSL"} | named)
    return ConnectionSettings((endpoint,), timeout=timeout, security=security)


def ask(endpoint: Endpoint, timeout: float = 5.0, **properties: str) -> None:
    with Admin(settings(endpoint, timeout, **properties)) as admin:
        admin.list_topics()


def node(context: ssl.SSLContext) -> ScriptedNode:
    return ScriptedNode({METADATA: lambda _: MetadataResponse(brokers=[], topics=[])}, tls=context)


def failure(context: ssl.SSLContext, **properties: str) -> str:
    """How a command fails on a node with this context."""
    with node(context).listening() as endpoint, pytest.raises(KgctlError) as failed:
        ask(endpoint, **properties)
    assert exit_code_of(failed.value) == UNREACHABLE
    assert isinstance(failed.value, TlsFailed)
    assert not failed.value.retriable
    return str(failed.value)


@pytest.mark.parametrize("form", ["file", "directory", "hashed directory", "inline", "PKCS12"])
def test_a_trusted_ca_in_each_form(
    authority: Authority, server_context: ServerContext, tmp_path: Path, form: str
) -> None:
    properties = {"truststore_location": str(authority.ca_file)}
    if form.endswith("directory"):
        name = "ca.pem"
        if form.startswith("hashed"):
            hashed = ["openssl", "x509", "-hash", "-noout", "-in", str(authority.ca_file)]
            name = subprocess.run(hashed, capture_output=True, text=True, check=True).stdout.strip() + ".0"
        (tmp_path / name).write_text(authority.ca_file.read_text())
        properties = {"ca_location": str(tmp_path)}
    elif form == "inline":
        properties = {"truststore_certificates": " ".join(authority.ca_file.read_text().split("\n"))}
    elif form == "PKCS12":
        properties = {
            "truststore_location": str(authority.trust_store),
            "truststore_password": authority.trust_store_password,
        }
    with node(server_context(authority.server())).listening() as endpoint:
        ask(endpoint, **properties)


def test_a_certificate_may_itself_be_what_is_trusted(authority: Authority, server_context: ServerContext) -> None:
    issued = authority.server("pinned")
    leaf, end = issued.certificate.read_text().partition("-----END CERTIFICATE-----")[:2]
    with node(server_context(issued)).listening() as endpoint:
        ask(endpoint, truststore_certificates=leaf + end)


def test_a_client_certificate_is_presented(authority: Authority, server_context: ServerContext) -> None:
    context = server_context(authority.server())
    context.verify_mode = ssl.CERT_REQUIRED
    alice, locked = authority.client("alice"), authority.client("locked", password="key-secret")
    with node(context).listening() as endpoint:
        ca = {"truststore_location": str(authority.ca_file)}
        ask(endpoint, keystore_location=str(alice.bundle), **ca)
        ask(endpoint, keystore_location=str(locked.bundle), key_password="key-secret", **ca)
        ask(endpoint, keystore_location=str(alice.pkcs12), keystore_password=alice.store_password, **ca)
        ask(endpoint, certificate_location=str(alice.certificate), key_location=str(alice.key), **ca)
        ask(
            endpoint, keystore_certificate_chain=alice.certificate.read_text(), keystore_key=alice.key.read_text(), **ca
        )


def test_an_unknown_ca_is_named(authority: Authority, server_context: ServerContext) -> None:
    text = failure(server_context(authority.server()))
    assert "the certificate of CN=server,O=kgctl tests is issued by CN=kgctl test CA,O=kgctl tests" in text
    assert "ssl.truststore.location" in text


def test_an_expired_certificate_says_since_when(authority: Authority, server_context: ServerContext) -> None:
    issued = authority.server("old", expired=True)
    text = failure(server_context(issued), truststore_location=str(authority.ca_file))
    assert f"the certificate of CN=old,O=kgctl tests expired on {issued.not_after:%Y-%m-%d %H:%M} UTC" in text


def test_a_wrong_host_name_says_which_names_are_right(authority: Authority, server_context: ServerContext) -> None:
    context = server_context(authority.server("other", names=("kafka.example", "10.1.2.3")))
    trusted = {"truststore_location": str(authority.ca_file)}
    text = failure(context, **trusted)
    assert "is not for '127.0.0.1': it names kafka.example, 10.1.2.3" in text
    with node(context).listening() as endpoint:
        ask(endpoint, endpoint_identification_algorithm="", **trusted)


def test_a_missing_client_certificate_is_the_reason(authority: Authority, server_context: ServerContext) -> None:
    for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        context = server_context(authority.server())
        context.verify_mode, context.maximum_version = ssl.CERT_REQUIRED, version
        text = failure(context, truststore_location=str(authority.ca_file))
        assert "requires a client certificate" in text


def test_a_client_certificate_of_another_ca_is_refused(
    authority: Authority, server_context: ServerContext, tmp_path: Path
) -> None:
    context = server_context(authority.server())
    context.verify_mode = ssl.CERT_REQUIRED
    stranger = Authority(tmp_path / "other", "another CA").client("alice")
    text = failure(context, truststore_location=str(authority.ca_file), keystore_location=str(stranger.bundle))
    assert "refused the TLS handshake and the certificate of kgctl: unknown ca" in text


def test_no_common_version_is_the_reason(authority: Authority, server_context: ServerContext) -> None:
    context = server_context(authority.server())
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    text = failure(context, truststore_location=str(authority.ca_file), enabled_protocols="TLSv1.3")
    assert "no TLS version in common; kgctl offers TLSv1.3" in text


def test_tls_to_a_plaintext_port_says_so(our_cluster: Cluster) -> None:
    (endpoint,) = parse(our_cluster.bootstrap_servers)
    with pytest.raises(TlsFailed, match="does not speak TLS, or refuses it"):
        ask(endpoint)


def test_plaintext_to_a_tls_port_says_so(authority: Authority, server_context: ServerContext) -> None:
    sentence = "the listener requires TLS; set security.protocol=SSL or SASL_SSL"
    with (
        node(server_context(authority.server())).listening() as endpoint,
        Admin(ConnectionSettings((endpoint,))) as admin,
        pytest.raises(TlsFailed, match=sentence),
    ):
        admin.list_topics()


def test_a_handshake_that_does_not_end_takes_no_longer_than_the_timeout() -> None:
    begun = time.monotonic()
    with listening(wait_for_the_end) as endpoint, pytest.raises(Unreachable, match="did not finish in time"):
        ask(endpoint, timeout=0.4)
    assert time.monotonic() - begun < 5


@pytest.mark.parametrize("name", ["truststore_location", "keystore_location", "ca_location"])
def test_a_missing_file_is_a_wrong_option(name: str) -> None:
    with listening(wait_for_the_end) as endpoint, pytest.raises(BadSecurity, match="/no/such: No such file"):
        ask(endpoint, **{name: "/no/such"})


def test_the_handshake_tells_the_peer_and_its_expiry(authority: Authority, server_context: ServerContext) -> None:
    issued = authority.server("peer")
    with node(server_context(issued)).listening() as endpoint:
        connector = Connector(settings(endpoint, truststore_location=str(authority.ca_file)))
        with connector.opening(endpoint, time.monotonic() + 5) as opening:
            assert [str(address) for address in opening.resolve()] == [str(endpoint)]
            assert str(opening.connect()) == str(endpoint)
            handshake = opening.secure()
            assert opening.authenticate() is None
    assert handshake is not None
    assert handshake.version == "TLSv1.3"
    assert handshake.peer is not None
    assert (handshake.peer.subject, handshake.peer.names) == (issued.subject, ("localhost", "127.0.0.1"))
    assert handshake.peer.expires_at == issued.not_after.timestamp()


# --- connections on which nothing is in flight ---


def tls_connection(endpoint: Endpoint, authority: Authority) -> Connection:
    connector = Connector(settings(endpoint, truststore_location=str(authority.ca_file)))
    return connector.connect(endpoint, time.monotonic() + 5)


def wait_until_readable(connection: Connection) -> None:
    poll = select.poll()
    poll.register(connection.detach(), select.POLLIN)
    assert poll.poll(5000)


def test_a_record_of_tls_itself_does_not_end_a_connection(authority: Authority, server_context: ServerContext) -> None:
    """A server of TLS 1.3 sends session tickets after the handshake: the idle socket is readable."""
    context = server_context(authority.server())

    def serve(plain: socket.socket) -> None:
        with context.wrap_socket(plain, server_side=True) as secured:
            assert context.num_tickets == 2
            wait_for_the_end(secured)

    with listening(serve) as endpoint:
        connection = tls_connection(endpoint, authority)
        wait_until_readable(connection)
        assert not connection.has_ended()
        connection.close()


def test_an_alert_that_arrives_while_idle_is_the_reason(authority: Authority, server_context: ServerContext) -> None:
    """A server of TLS 1.3 refuses a client certificate after the handshake is over for the client."""
    context = server_context(authority.server())
    context.verify_mode = ssl.CERT_REQUIRED

    def serve(plain: socket.socket) -> None:
        with contextlib.suppress(ssl.SSLError):
            context.wrap_socket(plain, server_side=True, suppress_ragged_eofs=False)

    with listening(serve) as endpoint:
        connection = tls_connection(endpoint, authority)
        wait_until_readable(connection)
        assert connection.has_ended()
        with pytest.raises(TlsFailed, match="requires a client certificate"):
            connection.exchange(ListGroupsRequest(), 0, ListGroupsResponse, time.monotonic() + 5)


def test_a_closed_tls_connection_has_ended(authority: Authority, server_context: ServerContext) -> None:
    context = server_context(authority.server())

    context.num_tickets = 0  # so that nothing but the end arrives

    def serve(plain: socket.socket) -> None:
        context.wrap_socket(plain, server_side=True).close()

    with listening(serve) as endpoint:
        connection = tls_connection(endpoint, authority)
        wait_until_readable(connection)
        assert connection.has_ended()
        connection.close()
