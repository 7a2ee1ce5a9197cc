"""PLAIN (RFC 4616): user name and password in one message."""

from __future__ import annotations

import hmac
from collections.abc import Callable

from broker.security.sasl.mechanism import AuthenticationFailed, Identity, SaslError, wrong_credentials
from broker.security.secret import Secret

NAME = "PLAIN"
WRONG = "Authentication failed: Invalid username or password"
OTHER_IDENTITY = "Authentication failed: Client requested an authorization id that is different from username"

Lookup = Callable[[str], Secret | None]


class PlainClient:
    name = NAME

    def __init__(self, user: str, password: Secret) -> None:
        if "\0" in user or "\0" in password.reveal():
            raise SaslError("a user name or password for PLAIN cannot contain a NUL character")
        self._user = user
        self._password = password
        self.complete = False

    def start(self) -> bytes:
        return f"\0{self._user}\0{self._password.reveal()}".encode()

    def step(self, challenge: bytes) -> bytes | None:
        if self.complete or challenge:
            raise SaslError("the server sent an unexpected challenge for PLAIN")
        self.complete = True
        return None


class PlainServer:
    name = NAME

    def __init__(self, lookup: Lookup) -> None:
        """`lookup` returns the password of a user, or None if there is no such user."""
        self._lookup = lookup
        self.complete = False
        self.identity: Identity | None = None
        self.refusal: str | None = None

    def step(self, response: bytes) -> bytes:
        if self.complete:
            raise AuthenticationFailed("a message after the end of the conversation")
        authorization, user, password = _fields(response)
        if not user:
            raise _refused("Authentication failed: username not specified")
        if not password:
            raise _refused("Authentication failed: password not specified")
        expected = self._lookup(user)
        # An unknown user takes as long as a wrong password.
        same = hmac.compare_digest(password.encode(), (expected.reveal() if expected else "").encode())
        if expected is None or not same:
            raise AuthenticationFailed(wrong_credentials(user, is_known=expected is not None), shown=WRONG)
        if authorization and authorization != user:
            raise _refused(OTHER_IDENTITY)
        self.complete = True
        self.identity = Identity(user)
        return b""


def client(user: str, password: Secret) -> PlainClient:
    return PlainClient(user, password)


def server(lookup: Lookup) -> PlainServer:
    return PlainServer(lookup)


def _fields(response: bytes) -> list[str]:
    """Authorization id, user and password."""
    fields = response.decode(errors="replace").split("\0")
    if len(fields) != 3:
        # Kafka looks for one field too many at most.
        raise _refused(f"Invalid SASL/PLAIN response: expected 3 tokens, got {min(len(fields), 4)}")
    return fields


def _refused(reason: str) -> AuthenticationFailed:
    return AuthenticationFailed(reason, shown=reason)
