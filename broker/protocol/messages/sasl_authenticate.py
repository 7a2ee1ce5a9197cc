"""SaslAuthenticate: one step of a SASL conversation."""

from __future__ import annotations

from broker.protocol.wire_types import BYTES, INT16, INT64, STRING, Message, wire


class SaslAuthenticateRequest(Message):
    API_KEY, VERSIONS, FLEXIBLE_SINCE = 36, range(3), 2

    auth_bytes: bytes = wire(BYTES)


class SaslAuthenticateResponse(Message):
    """v1 adds the lifetime of the session, after which the client must authenticate again (KIP-368)."""

    API_KEY, VERSIONS, FLEXIBLE_SINCE = 36, range(3), 2

    error_code: int = wire(INT16, default=0)
    error_message: str | None = wire(STRING, default=None, null_since=0)
    auth_bytes: bytes = wire(BYTES, default=b"")
    session_lifetime_ms: int = wire(INT64, default=0, since=1)
