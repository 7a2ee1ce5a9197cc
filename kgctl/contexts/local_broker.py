"""The running local broker, by the ready file of the default data directory."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

FALLBACK = "127.0.0.1:9092"


def local_broker(environ: Mapping[str, str]) -> str | None:
    """Its address, if the ready file names a running process."""
    import json

    from kgctl.client.net.bootstrap import BadAddress, parse

    home = environ.get("XDG_DATA_HOME", "")
    base = Path(home) if os.path.isabs(home) else Path.home() / ".local" / "share"
    try:
        ready = json.loads((base / "kgctl" / "broker" / "ready.json").read_bytes())
        os.kill(int(ready["pid"]), 0)
        address = ready["address"]
        (endpoint,) = parse(address if isinstance(address, str) else "")
    except (OSError, ValueError, KeyError, TypeError, BadAddress):
        return None
    return str(endpoint)
