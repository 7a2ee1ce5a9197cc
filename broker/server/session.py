"""Session: who is on the other side of a connection, and on which listener it arrived."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from broker.server.listener import Listener

# Kafka's principal for a client that did not authenticate.
ANONYMOUS = "User:ANONYMOUS"


class Session:
    """The identity that a connection's requests are authorized for.

    A TLS client certificate or a completed SASL handshake sets `principal`; plaintext connections stay anonymous.
    """

    __slots__ = ("listener", "principal")

    def __init__(self, principal: str, listener: Listener) -> None:
        self.principal = principal
        self.listener = listener
