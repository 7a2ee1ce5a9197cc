"""Finds out what a listener requires that has closed a connection without serving it."""

from __future__ import annotations

import socket
import time
from typing import TYPE_CHECKING

from broker.protocol.errors import ErrorCode
from broker.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from kgctl.client.net.connection import Connection
from kgctl.client.net.diagnosis import is_closing, is_of_tls
from kgctl.client.net.errors import AuthenticationFailed, KgctlError, TlsFailed
from kgctl.client.net.steps import Endpoint

if TYPE_CHECKING:
    from kgctl.client.net.tls import TlsClient

_SECONDS = 0.5


def why_closed(endpoint: Endpoint, tls: TlsClient | None, *, uses_sasl: bool) -> KgctlError | None:
    """What is missing on connections to this listener; None if nothing seems to be. `tls` is what they use already."""
    if not uses_sasl and (offered := _offered_mechanisms(endpoint, tls)):
        protocol = "SASL_SSL" if tls else "SASL_PLAINTEXT"
        return AuthenticationFailed(
            f"{endpoint}: the listener requires SASL; set security.protocol={protocol}, "
            f"sasl.mechanism (it offers {', '.join(sorted(offered))}) and credentials"
        )
    if tls is not None:
        return _refusal_after_handshake(endpoint, tls)
    if _speaks_tls(endpoint):
        return TlsFailed(f"{endpoint}: the listener requires TLS; set security.protocol=SSL or SASL_SSL")
    return None


def _offered_mechanisms(endpoint: Endpoint, tls: TlsClient | None) -> list[str]:
    """A listener with SASL answers an unknown mechanism with those it offers; another one refuses the request."""
    deadline = time.monotonic() + _SECONDS
    try:
        stream = socket.create_connection(endpoint, _SECONDS)
        if tls is not None:
            stream = tls.wrap(stream, endpoint, deadline)
        connection = Connection(endpoint, stream, "kgctl")
        try:
            request = SaslHandshakeRequest(mechanism="?")
            answer = connection.exchange(request, 1, SaslHandshakeResponse, deadline)
        finally:
            connection.close()
    except (OSError, KgctlError):
        return []
    assert isinstance(answer, SaslHandshakeResponse)
    return answer.mechanisms if answer.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM else []


def _refusal_after_handshake(endpoint: Endpoint, tls: TlsClient) -> KgctlError | None:
    """What a server of TLS 1.3 says that refuses the client's certificate: its alert follows the handshake.

    It is lost if the client has sent a request meanwhile, so this connection sends none.
    """
    try:
        plain = socket.create_connection(endpoint, _SECONDS)
        with tls.wrap(plain, endpoint, time.monotonic() + _SECONDS) as secured:
            secured.settimeout(_SECONDS)
            secured.recv(1)
    except TimeoutError:
        return None
    except OSError as error:
        return tls.explain(endpoint, error) if is_of_tls(error) and not is_closing(error) else None
    except KgctlError as error:
        return error
    return None


def _speaks_tls(endpoint: Endpoint) -> bool:
    from kgctl.client.net.tls import shown_certificates

    return shown_certificates(endpoint, _SECONDS) != []
