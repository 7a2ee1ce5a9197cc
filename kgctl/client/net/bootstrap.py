"""The bootstrap addresses: given ones, KGCTL_BOOTSTRAP, the local broker's ready file, or 127.0.0.1:9092."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from kgctl.client.net.errors import KgctlError
from kgctl.client.net.steps import Endpoint

DEFAULT_PORT = 9092
VARIABLE = "KGCTL_BOOTSTRAP"
FALLBACK = Endpoint("127.0.0.1", DEFAULT_PORT)


class BadAddress(KgctlError):
    """An address that cannot be read."""

    name = "BAD_ADDRESS"


def resolve(given: str | None = None, environ: Mapping[str, str] = os.environ) -> tuple[Endpoint, ...]:
    """The bootstrap addresses. Raises BadAddress if one cannot be read."""
    if given is not None:
        return parse(given)
    if environ.get(VARIABLE):
        try:
            return parse(environ[VARIABLE])
        except BadAddress as error:
            raise BadAddress(f"{VARIABLE}: {error}") from error
    local = _local_broker(environ)
    return (local or FALLBACK,)


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


def _local_broker(environ: Mapping[str, str]) -> Endpoint | None:
    """The broker of the default data directory, if its ready file names a running process."""
    import json

    home = environ.get("XDG_DATA_HOME", "")
    base = Path(home) if os.path.isabs(home) else Path.home() / ".local" / "share"
    try:
        ready = json.loads((base / "kgctl" / "broker" / "ready.json").read_bytes())
        os.kill(int(ready["pid"]), 0)
        (endpoint,) = parse(ready["address"] if isinstance(ready["address"], str) else "")
    except (OSError, ValueError, KeyError, TypeError, BadAddress):
        return None
    return endpoint
