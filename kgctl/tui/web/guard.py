"""Who may ask: those who know the token, at a loopback name, from pages of this server."""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Mapping
from urllib.parse import urlsplit

HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; font-src 'self'; img-src 'self' data:; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


def has_token(path: str, token: str) -> bool:
    """Whether the first part of the path is the token."""
    return hmac.compare_digest(path.removeprefix("/").partition("/")[0].encode(), token.encode())


def is_loopback(host: str) -> bool:
    """Whether this is `localhost` or an address of this machine itself."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def is_loopback_host(header: str | None) -> bool:
    """Whether a Host header names loopback, with any port, as tunnels change it.

    A page of another site can let its own name point to 127.0.0.1, but cannot send another Host.
    """
    return header is not None and is_loopback(_parts(f"http://{header}")[1])


def is_same_origin(origin: str | None, host: str | None) -> bool:
    """Whether the page that opens a websocket came from this server. Browsers always send the Origin of a websocket."""
    return origin is not None and origin.lower() == f"http://{host}".lower()


def _parts(url: str) -> tuple[str, str]:
    try:
        split = urlsplit(url)
        return split.scheme, split.hostname or ""
    except ValueError:
        return "", ""
