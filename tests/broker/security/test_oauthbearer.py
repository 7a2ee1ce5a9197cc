"""OAUTHBEARER: both sides of the mechanism."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.security.sasl import oauthbearer
from broker.security.sasl.mechanism import AuthenticationFailed, Identity, SaslError
from broker.security.sasl.oauthbearer import TokenRefused
from broker.security.secret import Secret

TOKEN = "vF9dft4qmTc2Nvb3RlckBhbHRhdmlzdGEuY29tCg=="


def validate(token: Secret) -> Identity:
    if token.reveal() == TOKEN:
        return Identity("alice", expires_at_ms=5)
    if token.reveal() == "narrow":
        raise TokenRefused("no such scope", status="insufficient_scope", scope="kafka")
    raise TokenRefused("unknown token")


def test_the_message_of_rfc_7628_is_accepted() -> None:
    server = oauthbearer.server(validate)
    message = f"n,a=alice,\x01host=server.example.com\x01port=143\x01auth=Bearer {TOKEN}\x01\x01"
    assert server.step(message.encode()) == b""
    assert server.identity == Identity("alice", 5, {"host": "server.example.com", "port": "143"})


def test_a_client_with_a_valid_token_is_accepted() -> None:
    client, server = oauthbearer.client(Secret(TOKEN), {"traceId": "7"}), oauthbearer.server(validate)
    assert client.step(server.step(client.start())) is None
    assert client.complete
    assert server.identity == Identity("alice", 5, {"traceId": "7"})


@pytest.mark.parametrize(
    ("token", "document"),
    [
        ("other", '{"status":"invalid_token"}'),
        ("narrow", '{"status":"insufficient_scope","scope":"kafka"}'),
    ],
)
def test_a_refused_token_is_answered_with_a_document_before_the_failure(token: str, document: str) -> None:
    client, server = oauthbearer.client(Secret(token)), oauthbearer.server(validate)
    challenge = server.step(client.start())
    assert challenge == document.encode()
    answer = client.step(challenge)
    assert answer == b"\x01"
    with pytest.raises(AuthenticationFailed) as failure:
        server.step(answer)
    assert failure.value.shown == document
    assert server.identity is None
    with pytest.raises(SaslError):
        client.step(b"")
    assert not client.complete


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"\x01",
        b"n,,\x01\x01",
        b"n,,\x01auth=Bearer\x01\x01",
        b"n,,\x01auth=Basic YTpi\x01\x01",
        b"n,,auth=Bearer other\x01\x01",
        b"n,,\x01auth=Bearer other\x01",
        b"y,,\x01auth=Bearer other\x01\x01",
        b"n,,\x01auth=Bearer \xff\x01\x01",
    ],
)
def test_a_message_that_is_not_valid_is_refused(message: bytes) -> None:
    with pytest.raises(AuthenticationFailed):
        oauthbearer.server(validate).step(message)


def test_another_authorization_id_is_refused() -> None:
    with pytest.raises(AuthenticationFailed, match="different"):
        oauthbearer.server(validate).step(f"n,a=bob,\x01auth=Bearer {TOKEN}\x01\x01".encode())


@pytest.mark.parametrize("token", ["", "secret part", "se\x01cret", "sécret"])
def test_a_token_that_cannot_be_sent_is_refused(token: str) -> None:
    with pytest.raises(SaslError) as failure:
        oauthbearer.client(Secret(token))
    assert not token or token not in str(failure.value)


@pytest.mark.parametrize("extension", [("auth", "x"), ("a1", "x"), ("a", ""), ("a", "\x01")])
def test_an_extension_that_cannot_be_sent_is_refused(extension: tuple[str, str]) -> None:
    with pytest.raises(SaslError):
        oauthbearer.client(Secret(TOKEN), dict([extension]))


@given(st.binary(), st.binary())
def test_any_bytes_are_refused_in_order(message: bytes, challenge: bytes) -> None:
    with pytest.raises(AuthenticationFailed):
        oauthbearer.server(validate).step(message)
    client = oauthbearer.client(Secret(TOKEN))
    client.start()
    if client.step(challenge) is not None:
        with pytest.raises(SaslError):
            client.step(challenge)
