"""SaslHandshake and SaslAuthenticate: the requests of a SASL conversation, which the gate of the connection holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.protocol.errors import ErrorCode
from broker.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from broker.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from broker.server.declaration import Declaration
from broker.server.guards import OPEN

if TYPE_CHECKING:
    from broker.server.exchange import Exchange
    from broker.server.resources import Resources


def sasl_handshake(request: SaslHandshakeRequest, exchange: Exchange, resources: Resources) -> SaslHandshakeResponse:
    gate = exchange.connection.session.gate
    if gate is None:
        return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE, mechanisms=[])
    return gate.handshake(request.mechanism, exchange.version)


def sasl_authenticate(
    request: SaslAuthenticateRequest, exchange: Exchange, resources: Resources
) -> SaslAuthenticateResponse:
    gate = exchange.connection.session.gate
    if gate is None:
        return SaslAuthenticateResponse(
            error_code=ErrorCode.ILLEGAL_SASL_STATE,
            error_message="SaslAuthenticate request received after successful authentication",
        )
    return gate.authenticate(request.auth_bytes)


REQUESTS = (
    Declaration(SaslHandshakeRequest, sasl_handshake, OPEN),
    Declaration(SaslAuthenticateRequest, sasl_authenticate, OPEN),
)
