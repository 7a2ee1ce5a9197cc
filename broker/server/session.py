"""Session: who is on the other side of a connection, and on which listener it arrived."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from broker.server.access import Access
    from broker.server.listener import Listener

# Kafka's principal for a client that did not authenticate.
ANONYMOUS = "User:ANONYMOUS"


class Session:
    """The identity that a connection's requests are authorized for, and where it connects from.

    Until it is `authenticated`, a client may only send the requests of its authentication. After `expires_at`, on the event
    loop's clock, it must authenticate again (KIP-368); None means never.
    `access` remembers what the authorizer decided.
    """

    __slots__ = ("access", "authenticated", "expires_at", "host", "listener", "principal")

    def __init__(self, listener: Listener, *, authenticated: bool) -> None:
        self.listener = listener
        self.host = ""
        self.principal = ANONYMOUS
        self.authenticated = authenticated
        self.expires_at: float | None = None
        self.access: Access | None = None

    def secured(self, certificate: bytes | None) -> None:
        """The TLS handshake is complete: without SASL, the client's certificate says who it is. Raises NoRuleApplies."""
        if not self.listener.address.uses_sasl:
            assert self.listener.tls is not None
            self.principal = self.listener.tls.principal(certificate)
            self.authenticated = True
