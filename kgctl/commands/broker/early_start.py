"""`kgctl broker start` without Typer, for arguments that are certainly valid: it forks the broker at once, and loads what
shows the outcome while the broker starts. Any other arguments take the usual way."""

from __future__ import annotations

import sys

# Without typing and collections: what runs before the fork delays the broker.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from broker.fork import ForkedProcess
    from kgctl.commands.shared.settings import Settings

PATHS = ("--data-dir", "--ready-file", "--log-file", "--config")
REPEATABLE = ("--config", "--override", "--add-scram")
VALUED = (*PATHS, *REPEATABLE, "--listen", "--metrics-listen", "--durability")
FLAGS = ("--insecure-listen", "--secure", "--accept-loss")
DURABILITIES = ("power", "process")
OUTPUT, TIMEOUT = "--output", "--timeout"
OUTPUTS = ("table", "wide", "name", "json", "jsonl", "yaml", "csv")
LONGEST_TIMEOUT_S = 86400


def begin(words: Sequence[str], report: Callable[[Exception, Settings], int]) -> Callable[[], None] | None:
    """Fork the broker for `kgctl broker start WORDS`. Returns what completes the command; None if it needs the usual way.

    The broker ends with this process if that fails, and if a signal ends this process. `report` shows a failure and returns the exit code.
    """
    options = parse(words)
    if options is None:
        return None
    from broker.fork import can_fork, fork_broker

    if not can_fork():
        return None
    own = {name: options.pop(name) for name in (OUTPUT, TIMEOUT) if name in options}
    arguments = [word for name, values in options.items() for value in values or [""] for word in [name, value] if word]
    process = fork_broker([*arguments, "--background"])
    import atexit

    atexit.register(_end, process)
    return lambda: _complete(process, options.get("--data-dir"), own, report)


def _end(process: ForkedProcess) -> None:
    if process.returncode is None:
        process.kill()
        process.wait()


def _complete(
    process: ForkedProcess,
    data_dir: list[str] | None,
    own: Mapping[str, list[str]],
    report: Callable[[Exception, Settings], int],
) -> None:
    from kgctl.commands.shared.settings import Settings

    chosen = Settings(owns_process=True)
    try:
        _show_outcome(process, data_dir, own, chosen)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except Exception as error:  # noqa: BLE001  the root of the program reports any failure in one line
        sys.exit(report(error, chosen))


def _show_outcome(
    process: ForkedProcess, data_dir: list[str] | None, own: Mapping[str, list[str]], chosen: Settings
) -> None:
    from pathlib import Path

    from broker.local import BrokerFailed, await_broker, confirm
    from kgctl.commands.broker.starting import StartFailed, progress_notes, show_started
    from kgctl.commands.broker.state import directory_of

    chosen.output = own.get(OUTPUT, [chosen.output])[-1]
    chosen.timeout = float(own.get(TIMEOUT, [str(chosen.timeout)])[-1])
    directory = directory_of(Path(data_dir[0]) if data_dir else None)
    try:
        ready, warnings = await_broker(process, directory, timeout_s=chosen.timeout, show_progress=progress_notes())
    except BrokerFailed as failure:
        raise StartFailed(failure) from None
    confirm(process)
    process.returncode = 0
    show_started(chosen, ready, warnings, is_default=directory == directory_of(None))


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
        name = OUTPUT if name == "-o" else name
        if not (_is_valid(name, value) and (name not in options or name in REPEATABLE)):
            return None
        options.setdefault(name, []).append(value)
    return options


def _is_valid(name: str, value: str) -> bool:
    if name == "--durability":
        return value in DURABILITIES
    if name == TIMEOUT:
        return value.isascii() and value.isdigit() and 0 < int(value) <= LONGEST_TIMEOUT_S
    return name in VALUED or (name == OUTPUT and value in OUTPUTS)
