"""What the failures of connections mean, in one sentence each."""

from __future__ import annotations

import socket
import sys

from kgctl.client.net.errors import KgctlError, NotKafka, Refused, TimedOut, TlsFailed, Unreachable
from kgctl.client.net.steps import Endpoint


def explain(endpoint: Endpoint, error: Exception, *, connecting: bool = False) -> KgctlError:
    """The error of a connection without TLS, or before it."""
    if isinstance(error, NotKafka | TlsFailed):
        return type(error)(f"{endpoint}: {error}")
    if isinstance(error, TimeoutError | TimedOut):
        if connecting:
            return Unreachable(f"{endpoint}: could not connect in time")
        return TimedOut(f"{endpoint}: no answer in time")
    if isinstance(error, socket.gaierror | UnicodeError):
        return Unreachable(f"{endpoint}: unknown host name {endpoint.host!r}")
    if isinstance(error, ConnectionRefusedError):
        return Refused(f"{endpoint}: connection refused; nothing listens there")
    if is_closing(error):
        return Unreachable(f"{endpoint}: the other side closed the connection")
    return Unreachable(f"{endpoint}: {getattr(error, 'strerror', None) or error}")


def is_closing(error: Exception) -> bool:
    """Whether the other side closed the connection."""
    tls = sys.modules.get("ssl")  # not imported for it
    closing = (EOFError, ConnectionResetError, BrokenPipeError)
    return isinstance(error, closing if tls is None else (*closing, tls.SSLEOFError, tls.SSLZeroReturnError))


def is_of_tls(error: Exception) -> bool:
    tls = sys.modules.get("ssl")
    return tls is not None and isinstance(error, tls.SSLError)
