"""The running local broker, by the ready file of the default data directory."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

FALLBACK = "127.0.0.1:9092"


def local_broker(environ: Mapping[str, str]) -> str | None:
    """Its address, if the ready file names a running process."""
    from kgctl.client.net.bootstrap import BadAddress, parse

    address = _ready(environ).get("address")
    try:
        (endpoint,) = parse(address if isinstance(address, str) else "")
    except (ValueError, BadAddress):
        return None
    return str(endpoint)


def local_client_properties(environ: Mapping[str, str]) -> Path | None:
    """The file that says how to connect to it, if it was started with --secure."""
    path = _ready(environ).get("client_properties")
    return Path(path) if isinstance(path, str) else None


def _ready(environ: Mapping[str, str]) -> dict[str, object]:
    """The content of the ready file; empty if its process does not run."""
    import json

    home = environ.get("XDG_DATA_HOME", "")
    base = Path(home) if os.path.isabs(home) else Path.home() / ".local" / "share"
    try:
        ready = json.loads((base / "kgctl" / "broker" / "ready.json").read_bytes())
        os.kill(int(ready["pid"]), 0)
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    return dict(ready)
