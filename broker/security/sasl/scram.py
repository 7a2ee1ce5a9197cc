"""SCRAM-SHA-256 and SCRAM-SHA-512 (RFC 5802, RFC 7677): both sides prove that they know the password without sending it."""

from __future__ import annotations

import binascii
import hashlib
import hmac
import re
from base64 import b64decode, b64encode
from collections.abc import Callable

from broker.light_named_tuples import NamedTuple
from broker.security.sasl.mechanism import AuthenticationFailed, Identity, SaslError, wrong_credentials
from broker.security.secret import Secret

# Kafka's number of each mechanism in its requests.
TYPES = {"SCRAM-SHA-256": 1, "SCRAM-SHA-512": 2}
_HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
# What Kafka accepts in a credential.
MIN_ITERATIONS, MAX_ITERATIONS = 4096, 16384
# The size of the salts that this broker and kgctl make.
SALT_BYTES = 26
# What a client computes for a server; more would let a server stall its clients.
CLIENT_MAX_ITERATIONS = 1_000_000
# Without channel binding, without an authorization id.
GS2_HEADER = "n,,"
OTHER_IDENTITY = "Authentication failed: Client requested an authorization id that is different from username"

# Possessive and bounded repetitions: a long message costs no memory to backtrack.
_SASL_NAME = r"(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]++|=2C|=3D)++"
_PRINTABLE = r"[\x21-\x2b\x2d-\x7e]++"
_VALUE = r"[\x01-\x2b\x2d-\x7f]++"
_BASE64 = r"[A-Za-z0-9+/]*+={0,2}"
_EXTENSIONS = rf"(?:,[A-Za-z]++={_VALUE}){{0,100}}"
_CLIENT_FIRST = re.compile(
    rf"(?P<header>n,(?:a=(?P<authzid>{_SASL_NAME}))?,)"
    rf"(?P<bare>(?:m={_VALUE},)?n=(?P<user>{_SASL_NAME}),r=(?P<nonce>{_PRINTABLE})(?P<extensions>{_EXTENSIONS}))"
)
_SERVER_FIRST = re.compile(
    rf"(?:m={_VALUE},)?r=(?P<nonce>{_PRINTABLE}),s=(?P<salt>{_BASE64}),i=(?P<iterations>[0-9]{{1,9}}){_EXTENSIONS}"
)
_CLIENT_FINAL = re.compile(
    rf"(?P<bare>c=(?P<binding>{_BASE64}),r=(?P<nonce>{_PRINTABLE}){_EXTENSIONS}),p=(?P<proof>{_BASE64})"
)
_SERVER_FINAL = re.compile(rf"(?:e=(?P<error>{_VALUE})|v=(?P<signature>{_BASE64})){_EXTENSIONS}")


class ScramCredential(NamedTuple):
    """What a server keeps for a user. The password cannot be computed from it."""

    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int

    def __repr__(self) -> str:
        return f"ScramCredential(iterations={self.iterations}, ***)"


# The credential of a user, or None if there is none.
Lookup = Callable[[str], ScramCredential | None]


def salted_password(mechanism: str, password: Secret, salt: bytes, iterations: int) -> bytes:
    return hashlib.pbkdf2_hmac(_HASHES[mechanism], password.reveal().encode(), salt, iterations)


def credential_from(mechanism: str, salted: bytes, salt: bytes, iterations: int) -> ScramCredential:
    """The credential for a salted password, as AlterUserScramCredentials carries it."""
    stored_key = _digest(mechanism, _hmac(mechanism, salted, b"Client Key"))
    return ScramCredential(salt, stored_key, _hmac(mechanism, salted, b"Server Key"), iterations)


def credential(mechanism: str, password: Secret, salt: bytes, iterations: int = MIN_ITERATIONS) -> ScramCredential:
    return credential_from(mechanism, salted_password(mechanism, password, salt, iterations), salt, iterations)


class ScramClient:
    def __init__(self, mechanism: str, user: str, password: Secret, nonce: str) -> None:
        self.name = mechanism
        self.complete = False
        self._password = password
        self._nonce = nonce
        self._first = f"n={_escaped(user)},r={nonce}"
        self._server_signature: bytes | None = None

    def start(self) -> bytes:
        return (GS2_HEADER + self._first).encode()

    def step(self, challenge: bytes) -> bytes | None:
        if self.complete:
            raise SaslError("the server sent a message after the end of the conversation")
        if self._server_signature is None:
            return self._prove(_text(challenge))
        self._verify(_text(challenge), self._server_signature)
        self.complete = True
        return None

    def _prove(self, challenge: str) -> bytes:
        found = _SERVER_FIRST.fullmatch(challenge)
        if found is None:
            raise SaslError(f"the server's first {self.name} message is malformed")
        nonce, iterations = found["nonce"], int(found["iterations"])
        if not nonce.startswith(self._nonce) or nonce == self._nonce:
            raise SaslError("the server's nonce does not continue that of the client")
        if not MIN_ITERATIONS <= iterations <= CLIENT_MAX_ITERATIONS:
            raise SaslError(
                f"the server asks for {iterations} iterations; from {MIN_ITERATIONS} to {CLIENT_MAX_ITERATIONS} are accepted"
            )
        salted = salted_password(self.name, self._password, _unbase64(found["salt"]), iterations)
        bare = f"c={_base64(GS2_HEADER.encode())},r={nonce}"
        message = f"{self._first},{challenge},{bare}".encode()
        client_key = _hmac(self.name, salted, b"Client Key")
        proof = _xor(client_key, _hmac(self.name, _digest(self.name, client_key), message))
        self._server_signature = _hmac(self.name, _hmac(self.name, salted, b"Server Key"), message)
        return f"{bare},p={_base64(proof)}".encode()

    def _verify(self, challenge: str, expected: bytes) -> None:
        found = _SERVER_FINAL.fullmatch(challenge)
        if found is None:
            raise SaslError(f"the server's last {self.name} message is malformed")
        if found["error"] is not None:
            raise SaslError(f"the server refused the credentials: {found['error']}")
        if not hmac.compare_digest(_unbase64(found["signature"]), expected):
            raise SaslError("the server did not prove that it knows the password (wrong server signature)")


class ScramServer:
    def __init__(self, mechanism: str, lookup: Lookup, nonce: str, secret: bytes) -> None:
        self.name = mechanism
        self.complete = False
        self.identity: Identity | None = None
        self.refusal: str | None = None
        self._lookup = lookup
        self._nonce = nonce
        self._secret = secret
        self._user = ""
        self._binding = b""
        self._messages = ""
        self._known = False
        self._credential: ScramCredential | None = None

    def step(self, response: bytes) -> bytes:
        if self.complete:
            raise AuthenticationFailed("a message after the end of the conversation")
        try:
            text = _text(response)
            return self._challenge(text) if self._credential is None else self._verify(text, self._credential)
        except AuthenticationFailed:
            raise
        except SaslError as error:
            raise AuthenticationFailed(str(error)) from None

    def _challenge(self, first: str) -> bytes:
        found = _CLIENT_FIRST.fullmatch(first)
        if found is None:
            raise AuthenticationFailed("the first message is malformed")
        if ",tokenauth=true" in found["extensions"]:
            raise AuthenticationFailed("delegation tokens are not supported")
        self._user = _unescaped(found["user"])
        if found["authzid"] and _unescaped(found["authzid"]) != self._user:
            raise AuthenticationFailed(OTHER_IDENTITY, shown=OTHER_IDENTITY)
        known = self._lookup(self._user)
        self._known = known is not None
        self._credential = known or _fake(self.name, self._user, self._secret)
        self._nonce = found["nonce"] + self._nonce
        self._binding = found["header"].encode()
        challenge = f"r={self._nonce},s={_base64(self._credential.salt)},i={self._credential.iterations}"
        self._messages = f"{found['bare']},{challenge}"
        return challenge.encode()

    def _verify(self, final: str, kept: ScramCredential) -> bytes:
        found = _CLIENT_FINAL.fullmatch(final)
        if found is None:
            raise AuthenticationFailed("the last message is malformed")
        if found["nonce"] != self._nonce:
            raise AuthenticationFailed("the nonce of the last message is another one")
        if _unbase64(found["binding"]) != self._binding:
            raise AuthenticationFailed("the channel binding of the last message differs from the first")
        message = f"{self._messages},{found['bare']}".encode()
        proof = _unbase64(found["proof"])
        client_key = _xor(proof, _hmac(self.name, kept.stored_key, message))
        same = hmac.compare_digest(_digest(self.name, client_key), kept.stored_key)
        if not self._known or not same:
            raise AuthenticationFailed(wrong_credentials(self._user, is_known=self._known))
        self.complete = True
        self.identity = Identity(self._user)
        return f"v={_base64(_hmac(self.name, kept.server_key, message))}".encode()


def client(mechanism: str, user: str, password: Secret, *, nonce: str) -> ScramClient:
    """`nonce` is printable ASCII without a comma, and fresh."""
    return ScramClient(mechanism, user, password, nonce)


def server(mechanism: str, lookup: Lookup, *, nonce: str, secret: bytes = b"") -> ScramServer:
    """`nonce` as for the client.

    An unknown user gets a challenge like any other and fails after its proof. Its salt comes from `secret`, which stays the same
    for a store, so that the same name always gets the same salt.
    """
    return ScramServer(mechanism, lookup, nonce, secret)


def _fake(mechanism: str, user: str, secret: bytes) -> ScramCredential:
    salt = _hmac(mechanism, secret, b"salt" + user.encode())[:SALT_BYTES]
    return ScramCredential(salt, bytes(hashlib.new(_HASHES[mechanism]).digest_size), b"", MIN_ITERATIONS)


def _hmac(mechanism: str, key: bytes, message: bytes) -> bytes:
    return hmac.digest(key, message, _HASHES[mechanism])


def _digest(mechanism: str, data: bytes) -> bytes:
    return hashlib.new(_HASHES[mechanism], data).digest()


def _xor(left: bytes, right: bytes) -> bytes:
    if len(left) != len(right):
        raise SaslError("the proof has another length than the hash")
    return bytes(a ^ b for a, b in zip(left, right, strict=True))


def _text(message: bytes) -> str:
    try:
        return message.decode()
    except UnicodeDecodeError:
        raise SaslError("the message is not UTF-8") from None


def _base64(data: bytes) -> str:
    return b64encode(data).decode()


def _unbase64(text: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except binascii.Error:
        raise SaslError("a field is not base64") from None


def _escaped(name: str) -> str:
    return name.replace("=", "=3D").replace(",", "=2C")


def _unescaped(name: str) -> str:
    return name.replace("=2C", ",").replace("=3D", "=")
