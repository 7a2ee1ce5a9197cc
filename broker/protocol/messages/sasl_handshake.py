"""SaslHandshake: choose a SASL mechanism."""

from __future__ import annotations

from broker.protocol.wire_types import ARRAY, INT16, STRING, Message, wire


class SaslHandshakeRequest(Message):
    """After v0 the tokens follow as bare frames, after v1 in SaslAuthenticate requests (KIP-152)."""

    API_KEY, VERSIONS, FLEXIBLE_SINCE = 17, range(2), 2

    mechanism: str = wire(STRING)


class SaslHandshakeResponse(Message):
    API_KEY, VERSIONS, FLEXIBLE_SINCE = 17, range(2), 2

    error_code: int = wire(INT16, default=0)
    mechanisms: list[str] = wire(ARRAY(STRING))
