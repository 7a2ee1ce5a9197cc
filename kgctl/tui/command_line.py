"""The `kgctl` command lines that make the same changes as the dialogs, or show the same as a row."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from kgctl.client.admin.reset_input import Strategy
from kgctl.tui.cluster_label import ClusterLabel

VALUELESS: tuple[Strategy, ...] = ("to-earliest", "to-latest", "to-current")


def reset_offsets(
    cluster: ClusterLabel,
    groups: Sequence[str],
    strategy: Strategy,
    value: str,
    topics: Sequence[str],
    *,
    create: bool = False,
) -> list[str]:
    """`topics` are TOPIC or TOPIC:P,...; without any, all topics that the group has commits for. A file names its own."""
    arguments = [] if strategy == "from-file" else _each("--topic", topics) or ["--all-topics"]
    arguments += [f"--{strategy}"] if strategy in VALUELESS else _each(f"--{strategy}", [value])
    return _words("reset-offsets", cluster, groups, [*arguments, *(["--create"] if create else [])])


def rebalance(cluster: ClusterLabel, groups: Sequence[str], reason: str = "", *, evict: bool = False) -> list[str]:
    arguments = ["--wait", *(_each("--reason", [reason]) if reason else []), *(["--evict"] if evict else [])]
    return _words("rebalance", cluster, groups, arguments)


def remove_members(
    cluster: ClusterLabel,
    groups: Sequence[str],
    members: Sequence[str],
    instances: Sequence[str] = (),
    reason: str = "",
    *,
    everyone: bool = False,
) -> list[str]:
    arguments = ["--all"] if everyone else [*_each("--member", members), *_each("--instance", instances)]
    arguments += _each("--reason", [reason]) if reason else []
    return _words("remove-members", cluster, groups, arguments)


def delete(cluster: ClusterLabel, groups: Sequence[str]) -> list[str]:
    return _words("delete", cluster, groups, [])


def delete_offsets(cluster: ClusterLabel, groups: Sequence[str], topics: Sequence[str]) -> list[str]:
    return _words("delete-offsets", cluster, groups, _each("--topic", topics))


def abort_transaction(cluster: ClusterLabel, name: str) -> list[str]:
    options = [*cluster.command_options(name), "--execute"]
    return ["kgctl", "transactions", "abort", *([*options, "--", name] if name.startswith("-") else [name, *options])]


def abort_in_partition(cluster: ClusterLabel, topic: str, partition: int, start_offset: int) -> list[str]:
    """The command for a transaction that no coordinator knows."""
    where = ["--topic", topic, "--partition", str(partition), "--start-offset", str(start_offset)]
    return ["kgctl", "transactions", "abort", *where, *cluster.command_options(topic), "--execute"]


def undo(cluster: ClusterLabel, change: str, names: Sequence[str], *, force: bool = False) -> list[str]:
    """`names` are those of what the change changed."""
    options = [*(["--force"] if force else []), *cluster.command_options(*names), "--execute"]
    return ["kgctl", "undo", change, *options]


def showing(cluster: ClusterLabel, noun: str, verb: str, name: str) -> str:
    """The command that shows this, such as `groups describe NAME`."""
    options = cluster.options or ("--bootstrap", cluster.address)
    return line(["kgctl", noun, verb, *([*options, "--", name] if name.startswith("-") else [name, *options])])


def records_at(cluster: ClusterLabel, topic: str, partition: int, offset: int) -> str:
    """The command that prints one record."""
    where = ["--partition", str(partition), "--offset", str(offset), "--max-messages", "1", "--json"]
    return line(["kgctl", "consume", topic, *where, *(cluster.options or ("--bootstrap", cluster.address))])


def of_cluster(cluster: ClusterLabel, verb: str) -> str:
    """`kgctl cluster VERB`."""
    return line(["kgctl", "cluster", verb, *(cluster.options or ("--bootstrap", cluster.address))])


def line(words: Sequence[str]) -> str:
    """The words for a POSIX shell, or for bash and zsh if one has control characters."""
    return " ".join(map(_quoted, words))


def _each(option: str, values: Sequence[str]) -> list[str]:
    return [word for value in values for word in (option, value)]


def _words(command: str, cluster: ClusterLabel, groups: Sequence[str], arguments: Sequence[str]) -> list[str]:
    options = [*arguments, *cluster.command_options(*groups), "--execute"]
    # After `--`, a name that looks like an option is an argument.
    looks_alike = any(group.startswith("-") for group in groups)
    return ["kgctl", "groups", command, *([*options, "--", *groups] if looks_alike else [*groups, *options])]


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
