"""Names of the last minutes, one file for each list, below $XDG_CACHE_HOME/kgctl/completion.

The files hold names and no secrets. A file that cannot be read or written is as good as none.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from broker.light_named_tuples import NamedTuple

MOST_FILES = 200
_DAY_S = 86_400.0


class Cached(NamedTuple):
    """`names` is None after a failed attempt."""

    names: tuple[str, ...] | None
    age_s: float


class NameCache:
    def __init__(self, environ: dict[str, str] | os._Environ[str] = os.environ) -> None:
        home = environ.get("XDG_CACHE_HOME", "")
        base = Path(home) if os.path.isabs(home) else Path(os.path.expanduser("~")) / ".cache"
        self._folder = base / "kgctl" / "completion"

    def read(self, key: str) -> Cached | None:
        try:
            content = json.loads(self._path(key).read_bytes())
            names, at = content["names"], float(content["at"])
            known = None if names is None else tuple(name for name in names if isinstance(name, str))
        except (OSError, ValueError, KeyError, TypeError):
            return None
        age_s = time.time() - at
        return Cached(known, age_s) if 0 <= age_s < _DAY_S else None

    def write(self, key: str, names: Sequence[str] | None) -> None:
        path = self._path(key)
        part = path.with_name(f"{path.name}.{os.getpid()}")
        with suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._prune()
            handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with open(handle, "w", encoding="utf-8") as file:
                json.dump({"at": time.time(), "names": None if names is None else list(names)}, file)
            part.replace(path)

    def _prune(self) -> None:
        found = sorted(self._folder.iterdir(), key=lambda path: path.stat().st_mtime)
        for path in found[: max(0, len(found) - MOST_FILES)]:
            path.unlink(missing_ok=True)

    def _path(self, key: str) -> Path:
        return self._folder / f"{hashlib.sha256(key.encode('utf-8', 'replace')).hexdigest()[:32]}.json"
