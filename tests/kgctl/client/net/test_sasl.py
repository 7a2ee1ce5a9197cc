"""Authentication with SASL: each mechanism, refusals in one sentence, and sessions that end."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from broker.protocol.errors import ErrorCode
from broker.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from broker.protocol.messages.metadata import MetadataResponse
from broker.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from broker.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from broker.security.sasl import oauthbearer, plain, scram
from broker.security.sasl.mechanism import AuthenticationFailed as Refusal
from broker.security.sasl.mechanism import Identity, SaslServer
from broker.security.secret import Secret
from kgctl.client.admin.admin import Admin
from kgctl.client.net.client_properties import security_from
from kgctl.client.net.connector import ConnectionSettings, Connector
from kgctl.client.net.errors import AuthenticationFailed, Unreachable, Unsupported
from kgctl.client.net.steps import Endpoint
from kgctl.exit_codes import UNREACHABLE, exit_code_of
from tests.harness.feeding import API_VERSIONS, METADATA
from tests.harness.scripted_node import Received, ScriptedNode

HANDSHAKE, AUTHENTICATE, LIST_GROUPS = 17, 36, 16
PASSWORD = "alice-secret"


def validate(token: Secret) -> Identity:
    if token.reveal() != "good-token":
        raise oauthbearer.TokenRefused("it is another one")
    return Identity("alice")


def credential(user: str) -> scram.ScramCredential | None:
    return scram.credential("SCRAM-SHA-256", Secret(PASSWORD), b"salt") if user == "alice" else None


SERVERS: dict[str, Callable[[], SaslServer]] = {
    "PLAIN": lambda: plain.server({"alice": Secret(PASSWORD)}.get),
    "SCRAM-SHA-256": lambda: scram.server("SCRAM-SHA-256", credential, nonce="server-nonce"),
    "OAUTHBEARER": lambda: oauthbearer.server(validate),
}


class SaslNode(ScriptedNode):
    """A node that authenticates with our own mechanisms, one connection at a time."""

    def __init__(self, lifetime_ms: int = 0) -> None:
        super().__init__({METADATA: lambda _: MetadataResponse(brokers=[], topics=[])})
        self.answers |= {HANDSHAKE: self._handshake, AUTHENTICATE: self._authenticate}
        self.answers[LIST_GROUPS] = lambda _: ListGroupsResponse(groups=[])
        self.lifetime_ms = lifetime_ms
        self._server: SaslServer = SERVERS["PLAIN"]()

    def _handshake(self, request: SaslHandshakeRequest) -> SaslHandshakeResponse:
        if request.mechanism not in SERVERS:
            code = ErrorCode.UNSUPPORTED_SASL_MECHANISM
            return SaslHandshakeResponse(error_code=code, mechanisms=list(SERVERS))
        self._server = SERVERS[request.mechanism]()
        return SaslHandshakeResponse(mechanisms=list(SERVERS))

    def _authenticate(self, request: SaslAuthenticateRequest) -> SaslAuthenticateResponse:
        try:
            answer = self._server.step(request.auth_bytes)
        except Refusal as refusal:
            code = ErrorCode.SASL_AUTHENTICATION_FAILED
            return SaslAuthenticateResponse(error_code=code, error_message=refusal.shown or "wrong")
        return SaslAuthenticateResponse(auth_bytes=answer, session_lifetime_ms=self.lifetime_ms)

    def keys(self) -> list[int]:
        return [request.api_key for request in self.received]


@pytest.fixture
def node() -> SaslNode:
    return SaslNode()


@pytest.fixture
def endpoint(node: SaslNode) -> Iterator[Endpoint]:
    with node.listening() as listening:
        yield listening


def settings(endpoint: Endpoint, mechanism: str, password: str = PASSWORD) -> ConnectionSettings:
    properties = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": mechanism}
    if mechanism == "OAUTHBEARER":
        properties["sasl.oauthbearer.token"] = "good-token" if password == PASSWORD else password
    else:
        properties |= {"sasl.username": "alice", "sasl.password": password}
    return ConnectionSettings((endpoint,), timeout=5, security=security_from(properties))


def ask(endpoint: Endpoint, mechanism: str, password: str = PASSWORD) -> None:
    with Admin(settings(endpoint, mechanism, password)) as admin:
        admin.list_topics()


def refusal(endpoint: Endpoint, mechanism: str, password: str) -> AuthenticationFailed:
    with pytest.raises(AuthenticationFailed) as refused:
        ask(endpoint, mechanism, password)
    assert exit_code_of(refused.value) == UNREACHABLE
    assert not refused.value.retriable
    assert password not in str(refused.value)
    return refused.value


@pytest.mark.parametrize("mechanism", SERVERS)
def test_each_mechanism_authenticates_before_the_first_request(
    node: SaslNode, endpoint: Endpoint, mechanism: str
) -> None:
    ask(endpoint, mechanism)
    messages = 2 if mechanism.startswith("SCRAM") else 1
    assert node.keys() == [API_VERSIONS, HANDSHAKE, *[AUTHENTICATE] * messages, API_VERSIONS, METADATA]
    assert node.received[1] == Received(HANDSHAKE, 1, "kgctl")


@pytest.mark.parametrize("mechanism", SERVERS)
def test_wrong_credentials_are_refused_once(node: SaslNode, endpoint: Endpoint, mechanism: str) -> None:
    error = refusal(endpoint, mechanism, "wrong-secret")
    who = "the token" if mechanism == "OAUTHBEARER" else "user 'alice'"
    assert f"the broker does not accept {who} with {mechanism}" in str(error)
    assert error.name == "SASL_AUTHENTICATION_FAILED"
    assert node.keys().count(HANDSHAKE) == 1


def test_the_status_of_a_refused_token_is_shown(endpoint: Endpoint) -> None:
    assert str(refusal(endpoint, "OAUTHBEARER", "other-token")).endswith(": invalid_token")


def test_a_mechanism_that_is_not_offered_comes_with_those_that_are(endpoint: Endpoint) -> None:
    error = refusal(endpoint, "SCRAM-SHA-512", PASSWORD)
    assert "does not offer the SASL mechanism SCRAM-SHA-512; it offers OAUTHBEARER, PLAIN, SCRAM-SHA-256" in str(error)
    assert error.name == "UNSUPPORTED_SASL_MECHANISM"


def test_a_server_that_does_not_know_the_password_is_not_trusted(node: SaslNode, endpoint: Endpoint) -> None:
    honest = node.answers[AUTHENTICATE]

    def forge(request: Any) -> Any:
        answer = honest(request)
        if answer.auth_bytes.startswith(b"v="):
            answer.auth_bytes = b"v=" + b"A" * 43 + b"="
        return answer

    node.answers[AUTHENTICATE] = forge
    assert "wrong server signature" in str(refusal(endpoint, "SCRAM-SHA-256", PASSWORD))


def test_a_conversation_that_ends_early_is_refused(node: SaslNode, endpoint: Endpoint) -> None:
    node.answers[AUTHENTICATE] = lambda _: SaslAuthenticateResponse(auth_bytes=b"")
    assert "malformed" in str(refusal(endpoint, "SCRAM-SHA-256", PASSWORD))


@pytest.mark.parametrize(
    ("mechanism", "password", "reason"),
    [
        ("PLAIN", "a\0b", "cannot contain a NUL"),
        ("OAUTHBEARER", "not a token", "characters that a bearer token cannot have"),
        ("SCRAM-SHA-256", "\ud800", "not valid Unicode"),
    ],
)
def test_credentials_that_cannot_be_sent_fail_in_one_line(
    endpoint: Endpoint, mechanism: str, password: str, reason: str
) -> None:
    assert reason in str(refusal(endpoint, mechanism, password))


def test_a_listener_without_sasl_says_so(node: SaslNode, endpoint: Endpoint) -> None:
    code = ErrorCode.ILLEGAL_SASL_STATE
    node.answers[HANDSHAKE] = lambda _: SaslHandshakeResponse(error_code=code, mechanisms=[])
    assert "the listener does not use SASL; set security.protocol=PLAINTEXT" in str(
        refusal(endpoint, "PLAIN", PASSWORD)
    )


def test_a_listener_with_sasl_tells_a_client_without_it(node: SaslNode, endpoint: Endpoint) -> None:
    del node.answers[METADATA]  # it closes the connection, as a broker does it
    with Admin(ConnectionSettings((endpoint,), timeout=5)) as admin, pytest.raises(AuthenticationFailed) as refused:
        admin.list_topics()
    assert "the listener requires SASL; set security.protocol=SASL_PLAINTEXT" in str(refused.value)
    assert "it offers OAUTHBEARER, PLAIN, SCRAM-SHA-256" in str(refused.value)


def test_a_broker_without_sasl_requests_is_unsupported(node: SaslNode, endpoint: Endpoint) -> None:
    node.offered = {API_VERSIONS: (0, 3), METADATA: (0, 9)}
    with pytest.raises(Unsupported, match="does not offer SASL in a version that kgctl knows"):
        ask(endpoint, "PLAIN")


def test_an_older_broker_gets_the_version_that_it_knows(node: SaslNode, endpoint: Endpoint) -> None:
    node.offered = dict(node.offered) | {API_VERSIONS: (0, 2), AUTHENTICATE: (0, 0)}
    ask(endpoint, "SCRAM-SHA-256")
    assert {request.version for request in node.received if request.api_key == AUTHENTICATE} == {0}


# --- sessions that end (KIP-368) ---


def test_a_connection_authenticates_again_before_its_session_ends(node: SaslNode, endpoint: Endpoint) -> None:
    node.lifetime_ms = 1  # over at the next request
    connector = Connector(settings(endpoint, "SCRAM-SHA-256"))
    connection = connector.connect(endpoint, time.monotonic() + 5)
    for _ in range(2):
        time.sleep(0.002)
        connection.send(ListGroupsRequest(), 4, ListGroupsResponse, time.monotonic() + 5)
        assert connection.receive(time.monotonic() + 5)[1] == ListGroupsResponse(groups=[])
    login = [HANDSHAKE, AUTHENTICATE, AUTHENTICATE]
    assert node.keys() == [API_VERSIONS, *login, *login, LIST_GROUPS, *login, LIST_GROUPS]
    connection.close()


def test_answers_in_flight_survive_a_new_authentication(node: SaslNode, endpoint: Endpoint) -> None:
    node.lifetime_ms = 1
    connection = Connector(settings(endpoint, "PLAIN")).connect(endpoint, time.monotonic() + 5)
    sent = []
    for _ in range(4):
        time.sleep(0.002)
        sent.append(connection.send(ListGroupsRequest(), 4, ListGroupsResponse, time.monotonic() + 5))
    assert connection.in_flight == 4
    assert [connection.receive(time.monotonic() + 5)[0] for _ in range(4)] == sent
    assert connection.in_flight == 0
    assert node.keys().count(HANDSHAKE) == 5
    connection.close()


def test_a_password_that_was_changed_ends_the_session(
    node: SaslNode, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    node.lifetime_ms = 1
    connection = Connector(settings(endpoint, "PLAIN")).connect(endpoint, time.monotonic() + 5)
    monkeypatch.setitem(SERVERS, "PLAIN", lambda: plain.server({"alice": Secret("changed")}.get))
    time.sleep(0.002)
    with pytest.raises(AuthenticationFailed, match="Invalid username or password"):
        connection.send(ListGroupsRequest(), 4, ListGroupsResponse, time.monotonic() + 5)
    assert connection.closed


def test_a_broker_that_closes_meanwhile_is_unreachable(node: SaslNode, endpoint: Endpoint) -> None:
    del node.answers[AUTHENTICATE]
    with pytest.raises(Unreachable, match="the other side closed the connection"):
        ask(endpoint, "PLAIN")
