"""Addresses as people write them: HOST:PORT[,HOST:PORT...]."""

from __future__ import annotations

from kgctl.client.net.errors import KgctlError
from kgctl.client.net.steps import Endpoint

DEFAULT_PORT = 9092


class BadAddress(KgctlError):
    """An address that cannot be read."""

    name = "BAD_ADDRESS"


def parse(text: str) -> tuple[Endpoint, ...]:
    """`host:port[,host:port...]`. The port is optional; IPv6 addresses are in brackets."""
    endpoints = tuple(_parse_one(part.strip()) for part in text.split(",") if part.strip())
    if not endpoints:
        raise BadAddress(f"no address in {text!r}; write HOST:PORT[,HOST:PORT...]")
    return endpoints


def _parse_one(text: str) -> Endpoint:
    host, port = text, str(DEFAULT_PORT)
    if text.startswith("["):
        host, _, rest = text[1:].partition("]")
        port = rest.removeprefix(":") or port
    else:
        host, colon, rest = text.partition(":")
        port = rest if colon else port
    if not host or not (port.isascii() and port.isdigit()) or not 0 < int(port) < 65536:
        raise BadAddress(f"{text!r} is not an address; write HOST:PORT")
    return Endpoint(host, int(port))
