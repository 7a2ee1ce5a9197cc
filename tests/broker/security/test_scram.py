"""SCRAM: both sides, with the vectors of the RFCs."""

from base64 import b64decode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.security.sasl import scram
from broker.security.sasl.mechanism import AuthenticationFailed, SaslError
from broker.security.sasl.scram import ScramCredential
from broker.security.secret import Secret

MECHANISMS = sorted(scram.TYPES)
ASCII = st.text(st.characters(min_codepoint=1, max_codepoint=127), min_size=1)
PASSWORD = Secret("pencil")
# RFC 7677 section 3.
CLIENT_NONCE, SERVER_NONCE = "rOprNGfwEbeRWgbNEkqO", "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
SALT = b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
CLIENT_FIRST = b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
SERVER_FIRST = b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
CLIENT_FINAL = (
    b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
)
SERVER_FINAL = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
KNOWN = {name: scram.credential(name, PASSWORD, SALT) for name in MECHANISMS}


def lookup(mechanism: str, user: str = "user") -> scram.Lookup:
    return {user: KNOWN[mechanism]}.get


def test_the_conversation_of_rfc_7677() -> None:
    client = scram.client("SCRAM-SHA-256", "user", PASSWORD, nonce=CLIENT_NONCE)
    server = scram.server("SCRAM-SHA-256", lookup("SCRAM-SHA-256"), nonce=SERVER_NONCE)
    assert client.start() == CLIENT_FIRST
    assert server.step(CLIENT_FIRST) == SERVER_FIRST
    assert client.step(SERVER_FIRST) == CLIENT_FINAL
    assert not client.complete
    assert not server.complete
    assert server.step(CLIENT_FINAL) == SERVER_FINAL
    assert client.step(SERVER_FINAL) is None
    assert client.complete
    assert server.complete
    assert server.identity is not None
    assert server.identity.name == "user"


@pytest.mark.parametrize("mechanism", MECHANISMS)
@given(user=ASCII, password=st.text(min_size=1), salt=st.binary(min_size=1, max_size=64))
def test_a_client_with_the_right_password_is_accepted(mechanism: str, user: str, password: str, salt: bytes) -> None:
    try:
        secret = Secret(password)
        password.encode()
    except UnicodeEncodeError:
        return
    kept = scram.credential(mechanism, secret, salt)
    client = scram.client(mechanism, user, secret, nonce="c")
    server = scram.server(mechanism, {user: kept}.get, nonce="s")
    final = client.step(server.step(client.start()))
    assert final is not None
    assert client.step(server.step(final)) is None
    assert client.complete
    assert server.identity is not None
    assert server.identity.name == user


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("user", ["user", "nobody"])
def test_a_wrong_password_and_an_unknown_user_fail_alike(mechanism: str, user: str) -> None:
    client = scram.client(mechanism, user, Secret("pen"), nonce="c")
    server = scram.server(mechanism, lookup(mechanism), nonce="s", secret=b"x")
    final = client.step(server.step(client.start()))
    assert final is not None
    with pytest.raises(AuthenticationFailed) as failure:
        server.step(final)
    assert failure.value.shown is None
    assert server.identity is None


def test_an_unknown_user_always_gets_the_same_salt_and_each_another() -> None:
    def salt(user: str, secret: bytes) -> bytes:
        server = scram.server("SCRAM-SHA-512", lambda _: None, nonce="s", secret=secret)
        return server.step(f"n,,n={user},r=c".encode()).split(b",")[1]

    assert salt("a", b"1") == salt("a", b"1")
    assert len({salt("a", b"1"), salt("b", b"1"), salt("a", b"2")}) == 3


def test_no_proof_opens_an_unknown_user() -> None:
    server = scram.server("SCRAM-SHA-256", lambda _: None, nonce="s")
    challenge = server.step(b"n,,n=user,r=c").decode()
    with pytest.raises(AuthenticationFailed):
        server.step(f"c=biws,r=cs,p={'A' * 43}=".encode())
    assert challenge.startswith("r=cs,")


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"n,,",
        b"y,,n=user,r=c",
        b"p=tls-unique,,n=user,r=c",
        b"n,,n=user",
        b"n,,n=,r=c",
        b"n,,n=us=er,r=c",
        b"n,,n=user,r=",
        b"n,,n=user,r=c,tokenauth=true",
        b"n,,n=us\xc3\xa9r,r=c",
        b"n,,n=user\xff,r=c",
        b"n,a=other,n=user,r=c",
    ],
)
def test_a_first_message_that_is_not_valid_is_refused(message: bytes) -> None:
    with pytest.raises(AuthenticationFailed):
        scram.server("SCRAM-SHA-256", lookup("SCRAM-SHA-256"), nonce="s").step(message)


@pytest.mark.parametrize(
    "change",
    [
        (b"c=biws", b"c=eSws"),
        (b"c=biws", b"c=bi*s"),
        (b"hNlF$k0", b"hNlF$k1"),
        (b"p=dH", b"p=dG"),
        (b"AndVQ=", b"AndV"),
        (b"AndVQ=", b"And"),
        (b",p=", b",q="),
        (b"c=", b"\xff"),
    ],
)
def test_a_changed_last_message_is_refused(change: tuple[bytes, bytes]) -> None:
    server = scram.server("SCRAM-SHA-256", lookup("SCRAM-SHA-256"), nonce=SERVER_NONCE)
    server.step(CLIENT_FIRST)
    changed = CLIENT_FINAL.replace(*change)
    assert changed != CLIENT_FINAL
    with pytest.raises(AuthenticationFailed):
        server.step(changed)
    assert server.identity is None


@pytest.mark.parametrize(
    "challenge",
    [
        b"",
        b"\xff",
        b"r=other,s=W22Z,i=4096",
        b"r=rOprNGfwEbeRWgbNEkqO,s=W22Z,i=4096",
        b"r=rOprNGfwEbeRWgbNEkqOx,s=W22,i=4096",
        b"r=rOprNGfwEbeRWgbNEkqOx,s=W22Z,i=4095",
        b"r=rOprNGfwEbeRWgbNEkqOx,s=W22Z,i=0",
        b"r=rOprNGfwEbeRWgbNEkqOx,s=W22Z,i=1000001",
        b"r=rOprNGfwEbeRWgbNEkqOx,s=W22Z,i=-4096",
        b"m=ext",
    ],
)
def test_a_client_refuses_a_challenge_that_is_not_valid(challenge: bytes) -> None:
    client = scram.client("SCRAM-SHA-256", "user", PASSWORD, nonce=CLIENT_NONCE)
    client.start()
    with pytest.raises(SaslError):
        client.step(challenge)


@pytest.mark.parametrize("final", [b"", b"v=", SERVER_FINAL[:-3] + b"AA=", b"e=invalid-proof", b"v=***", b"\xff"])
def test_a_client_refuses_a_server_that_does_not_know_the_password(final: bytes) -> None:
    client = scram.client("SCRAM-SHA-256", "user", PASSWORD, nonce=CLIENT_NONCE)
    client.start()
    client.step(SERVER_FIRST)
    with pytest.raises(SaslError):
        client.step(final)
    assert not client.complete


def test_a_credential_shows_no_key() -> None:
    assert repr(ScramCredential(b"salt", b"stored", b"server", 4096)) == "ScramCredential(iterations=4096, ***)"


@given(st.binary(), st.binary())
def test_any_bytes_are_refused_in_order(first: bytes, second: bytes) -> None:
    server = scram.server("SCRAM-SHA-256", lookup("SCRAM-SHA-256"), nonce="s")
    with pytest.raises(AuthenticationFailed):
        server.step(first)
    server = scram.server("SCRAM-SHA-256", lookup("SCRAM-SHA-256"), nonce="s")
    server.step(CLIENT_FIRST)
    with pytest.raises(AuthenticationFailed):
        server.step(second)
    client = scram.client("SCRAM-SHA-256", "user", PASSWORD, nonce="c")
    client.start()
    with pytest.raises(SaslError):
        client.step(first)
