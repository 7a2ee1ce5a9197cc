"""What the dialogs do, as lines for a shell: the `kgctl` commands that change the same."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from kgctl.client.admin.reset_input import Strategy

VALUELESS: tuple[Strategy, ...] = ("to-earliest", "to-latest", "to-current")


def reset_offsets(bootstrap: str, group: str, strategy: Strategy, value: str, topics: Sequence[str]) -> str:
    """`topics` as TOPIC or TOPIC:P,...; none are all that the group has commits for. A file names its own."""
    words = [] if strategy == "from-file" else _each("--topic", topics) or ["--all-topics"]
    words += [f"--{strategy}"] if strategy in VALUELESS else _each(f"--{strategy}", [value])
    return _line("reset-offsets", bootstrap, group, words)


def rebalance(bootstrap: str, group: str, reason: str = "", *, evict: bool = False) -> str:
    words = ["--wait", *(_each("--reason", [reason]) if reason else []), *(["--evict"] if evict else [])]
    return _line("rebalance", bootstrap, group, words)


def remove_members(
    bootstrap: str, group: str, members: Sequence[str], instances: Sequence[str] = (), reason: str = ""
) -> str:
    words = [*_each("--member", members), *_each("--instance", instances)]
    words += _each("--reason", [reason]) if reason else []
    return _line("remove-members", bootstrap, group, words)


def _each(option: str, values: Sequence[str]) -> list[str]:
    return [word for value in values for word in (option, value)]


def _line(command: str, bootstrap: str, group: str, words: Sequence[str]) -> str:
    options = [*words, "--bootstrap", bootstrap, "--execute"]
    # A name that looks like an option stands where there are none.
    arguments = [*options, "--", group] if group.startswith("-") else [group, *options]
    return " ".join(_quoted(word) for word in ["kgctl", "groups", command, *arguments])


def _quoted(word: str) -> str:
    """A word for a POSIX shell; control characters, which a paste would let the terminal see, as $'' of bash and zsh has them."""
    if word.isprintable():
        return shlex.quote(word)
    return "$'" + "".join(_escaped(char) for char in word) + "'"


def _escaped(char: str) -> str:
    if char in "\\'":
        return f"\\{char}"
    # Octal has a fixed length: what follows it in the word is not taken for a part of it.
    return char if char.isprintable() else "".join(f"\\{byte:03o}" for byte in char.encode())
