"""The `kgctl` command lines that make the same changes as the dialogs."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from kgctl.client.admin.reset_input import Strategy
from kgctl.tui.cluster_label import ClusterLabel

VALUELESS: tuple[Strategy, ...] = ("to-earliest", "to-latest", "to-current")


def reset_offsets(cluster: ClusterLabel, group: str, strategy: Strategy, value: str, topics: Sequence[str]) -> str:
    """`topics` are TOPIC or TOPIC:P,...; without any, all topics that the group has commits for. A file names its own."""
    arguments = [] if strategy == "from-file" else _each("--topic", topics) or ["--all-topics"]
    arguments += [f"--{strategy}"] if strategy in VALUELESS else _each(f"--{strategy}", [value])
    return _line("reset-offsets", cluster, group, arguments)


def rebalance(cluster: ClusterLabel, group: str, reason: str = "", *, evict: bool = False) -> str:
    arguments = ["--wait", *(_each("--reason", [reason]) if reason else []), *(["--evict"] if evict else [])]
    return _line("rebalance", cluster, group, arguments)


def remove_members(
    cluster: ClusterLabel, group: str, members: Sequence[str], instances: Sequence[str] = (), reason: str = ""
) -> str:
    arguments = [*_each("--member", members), *_each("--instance", instances)]
    arguments += _each("--reason", [reason]) if reason else []
    return _line("remove-members", cluster, group, arguments)


def _each(option: str, values: Sequence[str]) -> list[str]:
    return [word for value in values for word in (option, value)]


def _line(command: str, cluster: ClusterLabel, group: str, arguments: Sequence[str]) -> str:
    options = [*arguments, *cluster.command_options(group), "--execute"]
    # After `--`, a name that looks like an option is an argument.
    rest = [*options, "--", group] if group.startswith("-") else [group, *options]
    return " ".join(_quoted(word) for word in ["kgctl", "groups", command, *rest])


def _quoted(word: str) -> str:
    """Quote for a POSIX shell; use $'...' of bash and zsh for control characters, which a paste would send to the terminal."""
    if word.isprintable():
        return shlex.quote(word)
    return "$'" + "".join(_escaped(char) for char in word) + "'"


def _escaped(char: str) -> str:
    if char in "\\'":
        return f"\\{char}"
    # Octal escapes have a fixed length, so the next character cannot become part of one.
    return char if char.isprintable() else "".join(f"\\{byte:03o}" for byte in char.encode())
