"""OAUTHBEARER (RFC 7628, KIP-255): a bearer token in one message."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from types import MappingProxyType

from broker.security.sasl.mechanism import NAME_CHARACTERS, AuthenticationFailed, Identity, SaslError
from broker.security.secret import Secret

NAME = "OAUTHBEARER"
NO_EXTENSIONS: Mapping[str, str] = MappingProxyType({})
# A client that got an error document acknowledges it with this byte, and then the server fails the conversation.
ACKNOWLEDGEMENT = b"\x01"

# Possessive repetitions: a long message costs no memory to backtrack.
_SASL_NAME = r"(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]++|=2C|=3D)++"
_KEY = r"[A-Za-z]++"
_VALUE = r"[\x21-\x7e \t\r\n]++"
_INITIAL = re.compile(rf"n,(?:a=(?P<authzid>{_SASL_NAME}))?,\x01(?P<pairs>(?:{_KEY}={_VALUE}\x01)*+)\x01")
_AUTH = re.compile(r"(?P<scheme>\w++) ++(?P<token>[-_.+/=~a-zA-Z0-9]+)", re.ASCII)
_EXTENSION_KEY, _EXTENSION_VALUE = re.compile(_KEY), re.compile(_VALUE)


class TokenRefused(Exception):
    """A token is not valid. `status` and `scope` are for the client (RFC 7628 section 3.2.2), the text is for the log."""

    def __init__(self, reason: str, *, status: str = "invalid_token", scope: str | None = None) -> None:
        super().__init__(reason)
        self.status = status
        self.scope = scope


# Returns who a token identifies. Raises TokenRefused.
Validate = Callable[[Secret], Identity]


class OAuthBearerClient:
    name = NAME

    def __init__(self, token: Secret, extensions: Mapping[str, str]) -> None:
        if not _AUTH.fullmatch(f"Bearer {token.reveal()}"):
            raise SaslError("the token has characters that a bearer token cannot have")
        for key, value in extensions.items():
            if key == "auth" or not _EXTENSION_KEY.fullmatch(key) or not _EXTENSION_VALUE.fullmatch(value):
                raise SaslError(f"the SASL extension {key!r} is not valid")
        self._token = token
        self._extensions = dict(extensions)
        self._error: str | None = None
        self.complete = False

    def start(self) -> bytes:
        pairs = {"auth": f"Bearer {self._token.reveal()}", **self._extensions}
        return ("n,,\x01" + "".join(f"{key}={value}\x01" for key, value in pairs.items()) + "\x01").encode()

    def step(self, challenge: bytes) -> bytes | None:
        if self._error is not None:
            raise SaslError(self._error)
        if self.complete:
            raise SaslError("the server sent a message after the end of the conversation")
        if not challenge:
            self.complete = True
            return None
        self._error = f"the server refused the token: {_status_of(challenge)}"
        return ACKNOWLEDGEMENT


class OAuthBearerServer:
    name = NAME

    def __init__(self, validate: Validate) -> None:
        self._validate = validate
        # What the client was answered about its last token.
        self._document = ""
        self.complete = False
        self.identity: Identity | None = None
        self.refusal: str | None = None

    def step(self, response: bytes) -> bytes:
        if self.complete:
            raise AuthenticationFailed("a message after the end of the conversation")
        if self.refusal is not None and response == ACKNOWLEDGEMENT:
            raise AuthenticationFailed(self.refusal, shown=self._document)
        self.refusal = None
        authorization, token, extensions = _parse(response)
        try:
            identity = self._validate(token)
        except TokenRefused as refusal:
            self.refusal = str(refusal)
            self._document = json.dumps(
                {"status": refusal.status} | ({"scope": refusal.scope} if refusal.scope else {}), separators=(",", ":")
            )
            return self._document.encode()
        if authorization and authorization != identity.name:
            text = (
                f"Authentication failed: Client requested an authorization id ({authorization[:NAME_CHARACTERS]}) that is different from "
                f"the token's principal name ({identity.name})"
            )
            raise AuthenticationFailed(text, shown=text)
        self.complete = True
        self.identity = identity._replace(extensions=extensions)
        return b""


def client(token: Secret, extensions: Mapping[str, str] = NO_EXTENSIONS) -> OAuthBearerClient:
    return OAuthBearerClient(token, extensions)


def server(validate: Validate) -> OAuthBearerServer:
    return OAuthBearerServer(validate)


def _parse(response: bytes) -> tuple[str, Secret, Mapping[str, str]]:
    """Authorization id (or an empty text), token and extensions of the initial response."""
    try:
        found = _INITIAL.fullmatch(response.decode())
    except UnicodeDecodeError:
        found = None
    if found is None:
        raise AuthenticationFailed("the first message is malformed")
    extensions = dict(pair.split("=", 1) for pair in found["pairs"].split("\x01") if pair)
    auth = _AUTH.fullmatch(extensions.pop("auth", ""))
    if auth is None:
        raise AuthenticationFailed("the first message has no valid token")
    if auth["scheme"].lower() != "bearer":
        raise AuthenticationFailed("the scheme of the token is not bearer")
    authorization = (found["authzid"] or "").replace("=2C", ",").replace("=3D", "=")
    return authorization, Secret(auth["token"]), extensions


def _status_of(challenge: bytes) -> str:
    """The status of an error document, in words for a person."""
    try:
        document = json.loads(challenge)
    except (ValueError, RecursionError):
        return "it answered with something that is not a JSON document"
    status, scope = (document.get("status"), document.get("scope")) if isinstance(document, dict) else (None, None)
    if not isinstance(status, str):
        return "it gave no status"
    return status[:200] + (f" (it requires the scope {scope[:200]})" if isinstance(scope, str) else "")
