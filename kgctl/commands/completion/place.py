"""Which part of a command is being typed: a command, an option, or the value of a parameter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from kgctl.commands.completion.options import INSTALL, SHOW, with_shell_named
from kgctl.commands.shared.optional_values import with_values

# Words of Kafka's tools that name an argument; see habits.py.
_HABITS = ("--group", "--topic")


@dataclass(slots=True)
class Place:
    """`parameter` is what the incomplete word is the value of, None for a command or an option.

    `given` has the values of the parameters so far, by option or, for arguments, by their name in capitals.
    """

    command: Any
    path: tuple[str, ...] = ()
    parameter: Any = None
    habit: str | None = None
    given: dict[str, list[str]] = field(default_factory=dict)
    incomplete: str = ""

    def note(self, name: str, value: str) -> None:
        self.given.setdefault(name, []).append(value)

    def values(self, *names: str) -> list[str]:
        return [value for name in names for value in self.given.get(name, [])]


def find_place(root: Any, words: Sequence[str], incomplete: str) -> Place:
    """Follow the words from the root command. Nothing is executed, and nothing fails."""
    place = Place(root, incomplete=incomplete)
    pending: Any = None
    only_arguments = False
    positionals = 0
    filled = list(words) if words and words[-1] in (SHOW, INSTALL) else with_shell_named(list(words))
    for word in with_values(filled):
        if pending is not None:
            place.note(_name(pending), word)
            pending = None
        elif word == "--" and not only_arguments:
            only_arguments = True
        elif word.startswith("-") and len(word) > 1 and not only_arguments:
            name, equals, value = word.partition("=")
            parameter = option_of(place.command, name)
            if equals:
                place.note(_name(parameter) if parameter is not None else name, value)
            elif parameter is None and name in _HABITS:
                pending = name
            elif parameter is not None and _takes_value(parameter):
                pending = parameter
            else:
                place.note(name, "")
        elif _is_group(place.command):
            below = subcommand(place.command, word)
            if below is None:
                return Place(None, incomplete=incomplete)
            place.command, place.path = below, (*place.path, word)
        else:
            parameter = _argument(place.command, positionals)
            place.note(_name(parameter) if parameter is not None else "", word)
            positionals += 1
    if isinstance(pending, str):
        place.habit = pending
    elif pending is not None:
        place.parameter = pending
    elif (not incomplete.startswith("-") or only_arguments) and not _is_group(place.command):
        place.parameter = _argument(place.command, positionals)
    return place


def option_of(command: Any, name: str) -> Any:
    return next((one for one in command.params if name in (*one.opts, *one.secondary_opts) and _is_option(one)), None)


def subcommand(command: Any, name: str) -> Any:
    import typer._click as click

    if name not in command.commands:
        return None
    with click.Context(command, info_name="kgctl", resilient_parsing=True) as ctx:
        return command.resolve_command(ctx, [name])[1]


def _is_group(command: Any) -> bool:
    return hasattr(command, "commands")


def _is_option(parameter: Any) -> bool:
    return bool(parameter.param_type_name == "option")


def _takes_value(parameter: Any) -> bool:
    return not getattr(parameter, "is_flag", False) and not getattr(parameter, "count", False)


def _argument(command: Any, number: int) -> Any:
    """The argument that takes the word with this number; the last one may take many."""
    arguments = [one for one in command.params if not _is_option(one)]
    for place, one in enumerate(arguments):
        if one.nargs == -1 or place == number:
            return one
    return None


def _name(parameter: Any) -> str:
    if isinstance(parameter, str):
        return parameter
    return str(parameter.opts[0]) if _is_option(parameter) else (parameter.metavar or "").strip("[].").split(":")[0]
