"""Where the journal is: a folder for each cluster."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from pathlib import Path

_PLAIN = re.compile(r"[A-Za-z0-9_-]{1,100}")


def journal_folder(environ: Mapping[str, str]) -> Path:
    """kgctl/journal in XDG_STATE_HOME, else in ~/.local/state; it need not exist."""
    home = environ.get("XDG_STATE_HOME", "")
    return (Path(home) if os.path.isabs(home) else Path.home() / ".local" / "state") / "kgctl" / "journal"


def cluster_folder(environ: Mapping[str, str], cluster_id: str) -> Path:
    """The folder of a cluster. An id that is no plain name, which a cluster may send, cannot lead out of the journal."""
    plain = _PLAIN.fullmatch(cluster_id)
    name = cluster_id if plain else f"other-{hashlib.sha256(cluster_id.encode()).hexdigest()[:32]}"
    return journal_folder(environ) / name
