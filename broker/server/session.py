"""Session: who is on the other side of a connection, and on which listener it arrived."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from broker.server.client_facts import ClientFacts

if TYPE_CHECKING:
    from broker.protocol.messages.sasl_authenticate import SaslAuthenticateResponse
    from broker.protocol.messages.sasl_handshake import SaslHandshakeResponse
    from broker.server.access import Access
    from broker.server.listener import Listener

# Kafka's principal for a client that did not authenticate.
ANONYMOUS = "User:ANONYMOUS"


class Gate(Protocol):
    """The SASL conversation of one connection. Each method may raise RequestRefused, which closes the connection."""

    frame_bytes: int

    def take(self, frame: bytes) -> bytes | None:
        """Check a frame before it is served. None: it is a request; otherwise it was a bare token, and this is the answer."""
        ...

    def versions_answered(self) -> None:
        """The client has learned the versions of requests."""
        ...

    def handshake(self, mechanism: str, version: int) -> SaslHandshakeResponse: ...

    def authenticate(self, token: bytes) -> SaslAuthenticateResponse: ...


class Session:
    """The identity that a connection's requests are authorized for, and where it connects from.

    Until it is `authenticated`, a client may only send the requests of its authentication. After `expires_at`, on the event
    loop's clock, it must authenticate again (KIP-368); None means never.
    `access` remembers what the authorizer decided. On a SASL listener, `gate` checks each frame. `client` is for people: nothing
    is decided by it. `at_end` is called when the connection is lost.
    """

    __slots__ = ("access", "at_end", "authenticated", "client", "expires_at", "gate", "host", "listener", "principal")

    def __init__(self, listener: Listener, *, authenticated: bool) -> None:
        self.listener = listener
        self.host = ""
        self.principal = ANONYMOUS
        self.authenticated = authenticated
        self.expires_at: float | None = None
        self.access: Access | None = None
        self.gate: Gate | None = None
        self.client = ClientFacts()
        self.at_end: Callable[[], object] = bool

    def arrived(self, peer: tuple[str, int] | None) -> None:
        """The connection comes from this address; one that has gone already has none."""
        if peer is not None:
            self.host, self.client.port = peer[:2]

    def secured(self, certificate: bytes | None) -> None:
        """The TLS handshake is complete: without SASL, the client's certificate says who it is. Raises NoPrincipal."""
        assert self.listener.tls is not None
        if certificate is not None:
            self.listener.tls.check(certificate)
        if not self.listener.address.uses_sasl:
            self.principal = self.listener.tls.principal(certificate)
            self.authenticated = True
