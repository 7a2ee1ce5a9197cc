"""Command lines for the journal: as typed, without secrets."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

HIDDEN = "***"
_SECRET = re.compile(r"(?i)passw|secret|token|credential|jaas|private|api[._-]?key|\bsasl\.mechanism\.oauth")
_MOST = 2000


def safe_command(words: Sequence[str]) -> str:
    """The words quoted for a shell. Values of options and settings with the name of a secret are hidden."""
    shown: list[str] = []
    hides_next = False
    for word in words:
        name, equals, value = word.partition("=")
        if hides_next and not word.startswith("--"):
            shown.append(HIDDEN)
            hides_next = False
            continue
        hides_next = False
        if _SECRET.search(name) and equals:
            shown.append(f"{name}={HIDDEN}")
            continue
        # `--config sasl.jaas.config=...` has its name behind the first sign.
        if equals and _SECRET.search(value.partition("=")[0]) and "=" in value:
            shown.append(f"{name}={value.partition('=')[0]}={HIDDEN}")
            continue
        hides_next = word.startswith("-") and _SECRET.search(name) is not None
        shown.append(re.sub(r"://[^/@\s]*@", f"://{HIDDEN}@", word))
    line = shlex.join(shown)
    return line if len(line) <= _MOST else line[: _MOST - 3] + "..."
