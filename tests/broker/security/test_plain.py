"""PLAIN: both sides of the mechanism."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.security.sasl import plain
from broker.security.sasl.mechanism import AuthenticationFailed, SaslError
from broker.security.secret import Secret

USERS = {"alice": Secret("wonder"), "empty": Secret("")}
WORDS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1)


def test_the_message_of_rfc_4616_is_accepted() -> None:
    server = plain.server({"tim": Secret("tanstaaftanstaaf")}.get)
    assert server.step(b"\0tim\0tanstaaftanstaaf") == b""
    assert server.complete
    assert server.identity is not None
    assert server.identity.name == "tim"


@given(WORDS, WORDS)
def test_a_client_with_the_right_password_is_accepted(user: str, password: str) -> None:
    client, server = plain.client(user, Secret(password)), plain.server({user: Secret(password)}.get)
    assert client.step(server.step(client.start())) is None
    assert client.complete
    assert server.identity is not None
    assert server.identity.name == user


@pytest.mark.parametrize("message", [b"\0alice\0Wonder", b"\0alice\0wonder ", b"\0bob\0wonder", b"\0empty\0x"])
def test_an_unknown_user_and_a_wrong_password_get_the_same_answer(message: bytes) -> None:
    server = plain.server(USERS.get)
    with pytest.raises(AuthenticationFailed) as failure:
        server.step(message)
    assert failure.value.shown == "Authentication failed: Invalid username or password"
    assert not server.complete
    assert server.identity is None


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        (b"\0\0wonder", "Authentication failed: username not specified"),
        (b"\0alice\0", "Authentication failed: password not specified"),
        (b"\0empty\0", "Authentication failed: password not specified"),
        (b"bob\0alice\0wonder", plain.OTHER_IDENTITY),
        (b"alice\0wonder", "Invalid SASL/PLAIN response: expected 3 tokens, got 2"),
        (b"\0alice\0wonder\0\0", "Invalid SASL/PLAIN response: expected 3 tokens, got 4"),
        (b"\0alice\0\xff", plain.WRONG),
        (b"", "Invalid SASL/PLAIN response: expected 3 tokens, got 1"),
    ],
)
def test_a_message_that_is_not_valid_is_refused_as_in_kafka(message: bytes, shown: str) -> None:
    with pytest.raises(AuthenticationFailed) as failure:
        plain.server(USERS.get).step(message)
    assert failure.value.shown == shown


def test_an_authorization_id_equal_to_the_user_is_accepted() -> None:
    server = plain.server(USERS.get)
    server.step(b"alice\0alice\0wonder")
    assert server.complete


def test_a_second_message_is_refused() -> None:
    server = plain.server(USERS.get)
    server.step(b"\0alice\0wonder")
    with pytest.raises(AuthenticationFailed):
        server.step(b"\0alice\0wonder")


def test_a_challenge_is_unexpected() -> None:
    client = plain.client("alice", Secret("wonder"))
    client.start()
    with pytest.raises(SaslError):
        client.step(b"more")


@given(st.binary())
def test_any_bytes_are_refused_in_order(message: bytes) -> None:
    with pytest.raises(AuthenticationFailed):
        plain.server(lambda _: None).step(message)
