"""Authenticates connections with SASL, and again before their sessions end (KIP-152, KIP-368). Imported only where SASL is used."""

from __future__ import annotations

import json
import random
import secrets
import time

from broker.light_named_tuples import NamedTuple
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from broker.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from broker.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from broker.security.sasl import oauthbearer, plain, scram
from broker.security.sasl.mechanism import SaslClient, SaslError
from broker.security.secret import Secret
from kgctl.client.net.connection import Connection
from kgctl.client.net.errors import AuthenticationFailed, BrokerError, KgctlError, Unsupported
from kgctl.client.net.security import Sasl
from kgctl.client.net.steps import Endpoint
from kgctl.client.net.tokens import Tokens

# Of the lifetime of a session, as in Kafka's client: brokers see re-authentications spread in time.
_EARLIEST, _LATEST = 0.85, 0.95
_NONCE_BYTES = 24


class Authenticated(NamedTuple):
    """`lifetime` of the session in seconds, if it has an end."""

    mechanism: str
    user: str
    lifetime: float | None


class Authenticator:
    """Authenticates the connections of one client; they share its tokens."""

    def __init__(self, sasl: Sasl) -> None:
        self._sasl = sasl
        self._tokens = Tokens(sasl.token) if sasl.token is not None else None
        self._versions: dict[Endpoint, int] = {}

    def authenticate(self, connection: Connection, deadline: float) -> Authenticated:
        """Raises AuthenticationFailed, and the errors of connections; the connection is closed then."""
        try:
            return self._authenticate(connection, deadline)
        except BaseException:
            connection.close()
            raise

    def _renew(self, connection: Connection, deadline: float) -> None:
        self.authenticate(connection, deadline)

    def _authenticate(self, connection: Connection, deadline: float) -> Authenticated:
        endpoint = connection.endpoint
        version = self._versions.get(endpoint)
        if version is None:
            version = self._versions[endpoint] = _sasl_version(connection, deadline)
        self._choose_mechanism(connection, deadline)
        try:
            client = self._client(endpoint, deadline)
            message: bytes | None = client.start()
            lifetime = 0.0
            while message is not None:
                begun = time.monotonic()
                request = SaslAuthenticateRequest(auth_bytes=message)
                answer = connection.exchange(request, version, SaslAuthenticateResponse, deadline)
                assert isinstance(answer, SaslAuthenticateResponse)
                lifetime = answer.session_lifetime_ms / 1000
                if answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED:
                    raise AuthenticationFailed(self._refusal(endpoint, answer.error_message))
                if answer.error_code:
                    raise BrokerError(
                        answer.error_code, f"{endpoint}: SASL {self._sasl.mechanism}", answer.error_message
                    )
                message = client.step(answer.auth_bytes)
        except SaslError as error:
            raise AuthenticationFailed(f"{endpoint}: SASL {self._sasl.mechanism} failed: {error}") from None
        except UnicodeEncodeError:
            raise AuthenticationFailed(f"{endpoint}: the user name or the password is not valid Unicode") from None
        if not client.complete:
            raise AuthenticationFailed(
                f"{endpoint}: the broker ended SASL {self._sasl.mechanism} before its last message"
            )
        if lifetime:
            connection.renew_at(begun + lifetime * random.uniform(_EARLIEST, _LATEST), self._renew)
        return Authenticated(self._sasl.mechanism, self._sasl.username, lifetime or None)

    def _choose_mechanism(self, connection: Connection, deadline: float) -> None:
        mechanism = self._sasl.mechanism
        answer = connection.exchange(SaslHandshakeRequest(mechanism=mechanism), 1, SaslHandshakeResponse, deadline)
        assert isinstance(answer, SaslHandshakeResponse)
        if answer.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM:
            error: KgctlError = AuthenticationFailed(
                f"{connection.endpoint}: the broker does not offer the SASL mechanism {mechanism}; "
                f"it offers {', '.join(sorted(answer.mechanisms)) or 'none'}"
            )
            error.name = ErrorCode.UNSUPPORTED_SASL_MECHANISM.name
            raise error
        if answer.error_code == ErrorCode.ILLEGAL_SASL_STATE:
            protocol = "SSL" if connection.is_encrypted else "PLAINTEXT"
            raise AuthenticationFailed(
                f"{connection.endpoint}: the listener does not use SASL; set security.protocol={protocol}"
            )
        if answer.error_code:
            raise BrokerError(answer.error_code, f"{connection.endpoint}: SASL {mechanism}")

    def _client(self, endpoint: Endpoint, deadline: float) -> SaslClient:
        sasl = self._sasl
        if self._tokens is not None:
            return oauthbearer.client(self._tokens.get(endpoint.host, deadline), sasl.extensions)
        password = sasl.password or Secret("")
        if sasl.mechanism == plain.NAME:
            return plain.client(sasl.username, password)
        return scram.client(sasl.mechanism, sasl.username, password, nonce=secrets.token_urlsafe(_NONCE_BYTES))

    def _refusal(self, endpoint: Endpoint, reason: str | None) -> str:
        said = (_status_in(reason) if reason else "wrong credentials").rstrip(".")
        who = f"user {self._sasl.username!r}" if self._sasl.username else "the token"
        return f"{endpoint}: the broker does not accept {who} with {self._sasl.mechanism}: {said}"


def _status_in(reason: str) -> str:
    """The status of an error document of OAUTHBEARER, or else the reason itself."""
    try:
        document = json.loads(reason)
    except (ValueError, RecursionError):
        return reason
    return str(document.get("status", reason)) if isinstance(document, dict) else reason


def _sasl_version(connection: Connection, deadline: float) -> int:
    """The version of SaslAuthenticate that both sides know."""
    for version in (ApiVersionsRequest.VERSIONS[-1], 0):
        request = ApiVersionsRequest(client_software_name="kgctl", client_software_version="0.1")
        answer = connection.exchange(request, version, ApiVersionsResponse, deadline)
        assert isinstance(answer, ApiVersionsResponse)
        if answer.error_code == ErrorCode.UNSUPPORTED_VERSION and version:
            continue
        if answer.error_code:
            raise BrokerError(answer.error_code, str(connection.endpoint))
        ranges = {row.api_key: (row.min_version, row.max_version) for row in answer.api_keys}
        low, high = ranges.get(SaslAuthenticateRequest.API_KEY, (1, 0))
        chosen = min(high, SaslAuthenticateRequest.VERSIONS[-1])
        if low <= chosen and ranges.get(SaslHandshakeRequest.API_KEY, (0, 0))[1] >= 1:
            return chosen
        break
    raise Unsupported(f"{connection.endpoint}: the broker does not offer SASL in a version that kgctl knows")
