"""Answers the requests of the completion scripts."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from kgctl.commands.completion.candidates import candidates
from kgctl.commands.completion.live_names import live_names
from kgctl.commands.completion.shell_words import insertion, read_line, unquoted


def answer(root: Any, shell: str, arguments: Sequence[str]) -> None:
    """Print the candidates for what is typed: for bash the line and what breaks words, else the words."""
    if shell == "bash":
        line, breaks = [*arguments, "", ""][:2]
        typed = read_line(line, breaks)
        found = candidates(root, _arguments(typed.words), typed.incomplete, live_names)
        lines = [insertion(one.value, typed) for one in found.found]
    else:
        *words, incomplete = arguments or [""]
        if shell == "fish":
            incomplete = unquoted(incomplete)
        found = candidates(root, words, incomplete, live_names)
        lines = [f"{one.value}\t{one.help}" if one.help else one.value for one in found.found]
    text = "\n".join(["files" if found.files else "names", *lines])
    # The shell reads bytes, whatever the locale of this process is.
    sys.stdout.buffer.write(text.encode("utf-8", "surrogateescape") + b"\n")
    sys.stdout.flush()


def _arguments(words: Sequence[str]) -> list[str]:
    """The words behind the name of the program, which assignments may precede."""
    place = next((n for n, word in enumerate(words) if "=" not in word), 0)
    return list(words[place + 1 :])
