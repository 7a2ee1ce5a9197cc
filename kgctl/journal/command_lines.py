"""Command lines for the journal: as typed, without secrets."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Sequence

from broker.secret_names import PATTERN, may_be_secret

HIDDEN = "***"
# A setting with such a name, anywhere in a word, as in a=1,ssl.key.password=x or [iterations=1,password=x].
_SETTING = re.compile(rf"(?is)((?:{PATTERN})[^=,\s]*\s*=).*")
_MOST = 2000


def without_values(line: str, settings: Collection[str]) -> str:
    """The command line without the values of these settings."""
    try:
        words = shlex.split(line)
    except ValueError:
        # It was cut in the middle of a word.
        return HIDDEN
    name = re.compile(rf"(?s)((?:^|[^\w.])(?:{'|'.join(map(re.escape, sorted(settings)))})\s*=).*")
    return shlex.join(name.sub(lambda found: found[1] + HIDDEN, word) for word in words)


def safe_command(words: Sequence[str]) -> str:
    """The words quoted for a shell. Values of options and settings with the name of a secret are hidden."""
    shown: list[str] = []
    hides_next = False
    for word in words:
        name, equals, _ = word.partition("=")
        if hides_next and not word.startswith("--"):
            shown.append(HIDDEN)
            hides_next = False
            continue
        hides_next = False
        if may_be_secret(name) and equals:
            shown.append(f"{name}={HIDDEN}")
            continue
        if equals and (found := _SETTING.search(word)):
            shown.append(word[: found.end(1)] + HIDDEN)
            continue
        hides_next = word.startswith("-") and may_be_secret(name)
        shown.append(re.sub(r"://[^/@\s]*@", f"://{HIDDEN}@", word))
    line = shlex.join(shown)
    return line if len(line) <= _MOST else line[: _MOST - 3] + "..."
