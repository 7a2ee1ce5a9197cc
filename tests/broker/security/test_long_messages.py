"""Messages as long as a client may send before it has authenticated cost little memory and time."""

from __future__ import annotations

import contextlib
import tracemalloc
from base64 import urlsafe_b64encode
from collections.abc import Callable

import pytest

from broker.security.credentials.unsecured_tokens import unsecured
from broker.security.sasl import oauthbearer, plain, scram
from broker.security.sasl.mechanism import AuthenticationFailed, SaslServer

LENGTH = 524_000
# The message is held several times: as bytes, as text, and in its fields.
MOST_BYTES = 16 * LENGTH


def plain_server() -> SaslServer:
    return plain.server(lambda _: None)


def scram_server() -> SaslServer:
    return scram.server("SCRAM-SHA-512", lambda _: None, nonce="s")


def scram_server_after_challenge() -> SaslServer:
    server = scram_server()
    server.step(b"n,,n=a,r=c")
    return server


def token_server() -> SaslServer:
    return oauthbearer.server(unsecured(None, lambda: 0))


def bearer(token: bytes) -> bytes:
    return b"n,,\x01auth=Bearer " + token + b"\x01\x01"


def filled(start: bytes, unit: bytes, end: bytes = b"") -> bytes:
    return start + unit * (LENGTH // len(unit)) + end


MESSAGES: list[tuple[Callable[[], SaslServer], bytes]] = [
    (plain_server, filled(b"", b"\0")),
    (plain_server, filled(b"\0", b"a", b"\0b")),
    (scram_server, filled(b"n,,n=", b"a")),
    (scram_server, filled(b"n,,n=", b"=2C")),
    (scram_server, filled(b"n,,n=", b"a", b",r=x")),
    (scram_server, filled(b"n,,n=a,r=", b"x", b",")),
    (scram_server, filled(b"n,,n=a,r=x", b",a=b", b",")),
    (scram_server, filled(b"n,,m=", b"a")),
    (scram_server, filled(b"n,a=", b"a")),
    (scram_server_after_challenge, filled(b"c=", b"A")),
    (scram_server_after_challenge, filled(b"c=biws,r=cs", b",a=b", b",p=")),
    (scram_server_after_challenge, filled(b"c=biws,r=cs,p=", b"A", b"=")),
    (token_server, filled(b"n,,\x01", b"a=b\x01", b"x")),
    (token_server, filled(b"n,,\x01auth=Bearer", b" ", b"\x01\x01")),
    (token_server, filled(b"n,,\x01auth=", b"B", b"\x01\x01")),
    (token_server, bearer(filled(b"", b"."))),
    (token_server, bearer(urlsafe_b64encode(b"[" * 300_000) + b".e30.")),
    (token_server, bearer(urlsafe_b64encode(b"{" + b'"a":0,' * 40_000 + b'"b":0}') + b".e30.")),
]


@pytest.mark.parametrize(("make", "message"), MESSAGES, ids=range(len(MESSAGES)))
def test_a_long_message_is_refused_with_little_memory(make: Callable[[], SaslServer], message: bytes) -> None:
    server = make()
    tracemalloc.start()
    try:
        with contextlib.suppress(AuthenticationFailed):
            server.step(message)
        assert tracemalloc.get_traced_memory()[1] < MOST_BYTES
    finally:
        tracemalloc.stop()
    assert server.identity is None


@pytest.mark.parametrize("time", [b"1e308", b"9" * 400, b"9" * 5000, b"NaN", b"Infinity", b"-1e300", b"true", b'"1"'])
def test_a_time_that_is_none_is_refused(time: bytes) -> None:
    parts = b'{"alg":"none"}', b'{"sub":"a","exp":' + time + b"}"
    token = b"".join(urlsafe_b64encode(part).rstrip(b"=") + b"." for part in parts)
    server = token_server()
    assert server.step(bearer(token)) == b'{"status":"invalid_token"}'
