"""Commands that are loaded when they are named: a command line pays only for the verb that it runs."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Mapping
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from broker.light_named_tuples import NamedTuple
from kgctl.commands.shared.effects import guard
from kgctl.commands.shared.habits import keep_habits
from kgctl.commands.shared.journaling import add_journal_options
from kgctl.commands.shared.options import add_options
from kgctl.commands.shared.showing import prepare


class Entry(NamedTuple):
    """Where a command lives (`module:function`), and its line on the help page above it, which does not load it."""

    target: str
    help: str


class Noun(NamedTuple):
    """A command whose verbs are commands of their own. `default` is the verb that runs if none is named."""

    help: str
    verbs: Mapping[str, Entry]
    default: str | None = None


class NounGroup(TyperGroup):
    """Finds its verbs by name."""

    def __init__(self, name: str, noun: Noun) -> None:
        super().__init__(name=name, help=noun.help, no_args_is_help=noun.default is None, rich_markup_mode=None)
        self._verbs, self.default = noun.verbs, noun.default
        self.commands = stand_ins(noun.verbs)
        add_options(self)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if self.default is not None and not any(word in self._verbs or word in ctx.help_option_names for word in args):
            args = [self.default, *args]
        rest: list[str] = super().parse_args(ctx, args)
        return rest

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        name, found, rest = super().resolve_command(ctx, args)
        return name, load_entry(name, self._verbs[name]) if name and found else found, rest

    def load_all(self) -> dict[str, Any]:
        return {name: load_entry(name, entry) for name, entry in self._verbs.items()}


def stand_ins(entries: Mapping[str, Entry]) -> dict[str, Any]:
    """Commands for help and suggestions; `load_entry` gives the real ones."""
    return {name: TyperCommand(name, help=entry.help) for name, entry in entries.items()}


def verbs_of(command: Any) -> dict[str, Any]:
    """The verbs of a command by name, all loaded; none for a command without verbs."""
    found: dict[str, Any] = command.load_all() if isinstance(command, NounGroup) else getattr(command, "commands", {})
    return found


@functools.cache
def load_entry(name: str, entry: Entry) -> Any:
    """The command at this entry, with the options that every command has. It is built once in a process.

    The module of a function may add examples or exit codes to its help in `EPILOG`, and settings of Click's parser in
    `PARSING`.
    """
    path, _, attribute = entry.target.partition(":")
    module = importlib.import_module(path)
    found = getattr(module, attribute)
    if isinstance(found, Noun):
        return NounGroup(name, found)
    holder = typer.Typer(add_completion=False, rich_markup_mode=None)
    holder.callback()(lambda: None)
    if isinstance(found, typer.Typer):
        holder.add_typer(found, name=name)
    else:
        parsing = getattr(module, "PARSING", None)
        holder.command(name, epilog=getattr(module, "EPILOG", None), context_settings=parsing)(found)
    group = typer.main.get_command(holder)
    assert isinstance(group, TyperGroup)
    command = group.commands[name]
    add_options(command)
    guard(command)
    add_journal_options(command)
    prepare(command)
    keep_habits(command)
    return command
