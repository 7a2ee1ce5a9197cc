"""`kgctl broker start` forks the broker before it loads the command line, so that both happen at the same time.

Only for arguments that need no second look; the command compares them with what Typer finds.
"""

from __future__ import annotations

import os

# Without typing and collections: what runs before the fork delays the broker.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from broker.fork import ForkedProcess

PATHS = ("--data-dir", "--ready-file", "--log-file", "--config")
REPEATABLE = ("--config", "--override", "--add-scram")
VALUED = (*PATHS, *REPEATABLE, "--listen", "--durability")
FLAGS = ("--insecure-listen", "--secure", "--accept-loss")
DURABILITIES = ("power", "process")
OUTPUTS = ("table", "wide", "name", "json", "jsonl", "yaml", "csv")
LONGEST_TIMEOUT_S = 86400

_begun: tuple[dict[str, list[str]], ForkedProcess] | None = None


def begin(words: Sequence[str]) -> None:
    """Fork the broker for `kgctl broker start WORDS`, if they are simple. It ends with this process unless it is taken."""
    global _begun
    options = parse(words)
    if options is None:
        return
    from broker.fork import can_fork, fork_broker

    if not can_fork():
        return
    arguments = [word for name, values in options.items() for value in values or [""] for word in [name, value] if word]
    _begun = options, fork_broker([*arguments, "--background"])
    import atexit

    atexit.register(abandon)


def take(given: Mapping[str, object]) -> ForkedProcess | None:
    """The broker that was forked with these values of the options; None if there is none."""
    global _begun
    if _begun is None:
        return None
    options, process = _begun
    if not is_same(options, given):
        abandon()
        return None
    _begun = None
    return process


def is_same(options: Mapping[str, list[str]], given: Mapping[str, object]) -> bool:
    """Whether what `parse` found is what Typer found; None and False stand for an option that is not given."""
    found = {name: _texts(given[name]) for name in (*VALUED, *FLAGS) if given.get(name)}
    return _comparable(options) == _comparable(found)


def abandon() -> None:
    """End a broker that was not taken."""
    global _begun
    if _begun is not None:
        process, _begun = _begun[1], None
        process.kill()
        process.wait()


def parse(words: Sequence[str]) -> dict[str, list[str]] | None:
    """The options of the broker and their values. None if the words are not all options that are certainly valid."""
    options: dict[str, list[str]] = {}
    rest = list(words)
    while rest:
        name, equals, value = rest.pop(0).partition("=")
        if name in FLAGS and not equals:
            options[name] = []
            continue
        if not equals and rest:
            value = rest.pop(0)
        if not value or value.startswith("-") or (equals and not name.startswith("--")):
            return None
        if name in VALUED and (name in REPEATABLE or name not in options):
            options.setdefault(name, []).append(value)
        elif not _is_output_or_timeout(name, value):
            return None
    return options if options.get("--durability", ["power"])[0] in DURABILITIES else None


def _is_output_or_timeout(name: str, value: str) -> bool:
    if name == "--timeout":
        return value.isascii() and value.isdigit() and 0 < int(value) <= LONGEST_TIMEOUT_S
    return name in ("-o", "--output") and value in OUTPUTS


def _texts(value: object) -> list[str]:
    if value is True:
        return []
    return [str(one) for one in value] if isinstance(value, (list, tuple)) else [str(value)]


def _comparable(options: Mapping[str, list[str]]) -> dict[str, list[str]]:
    return {
        name: [os.path.abspath(value) if name in PATHS else value for value in values]
        for name, values in ({"--durability": [DURABILITIES[0]]} | dict(options)).items()
    }
