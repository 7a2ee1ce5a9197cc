"""What the verbs that show rows have in common: their columns are checked before they run, and --watch repeats them."""

from __future__ import annotations

from types import MethodType
from typing import Any

import typer
from typer.core import TyperGroup

from kgctl.commands.shared.effects import effect_of, kinds_of
from kgctl.commands.shared.settings import Settings


def prepare(command: Any) -> None:
    """Let the command and its subcommands obey the options for tables."""
    if isinstance(command, TyperGroup):
        for below in command.commands.values():
            prepare(below)
        return
    run = command.invoke

    def invoke(_: Any, ctx: Any) -> Any:
        chosen: Settings = ctx.obj
        _check(command, ctx, chosen)
        if chosen.watch is None:
            return run(ctx)
        from kgctl.commands.shared.watching import watch

        return watch(lambda: run(ctx), chosen)

    command.invoke = MethodType(invoke, command)


def _check(command: Any, ctx: Any, chosen: Settings) -> None:
    kinds = kinds_of(command)
    if not kinds:
        given = {"--columns": chosen.columns, "--sort": chosen.sort, "--watch": chosen.watch}
        for option, value in given.items():
            if value:
                raise typer.BadParameter(f"`{ctx.command_path}` shows no table.", param_hint=f"'{option}'")
        return
    if chosen.watch is not None and not effect_of(command).repeatable:
        raise typer.BadParameter("Only commands that read from a cluster are repeated.", param_hint="'--watch'")
    chosen.check_output(kinds)
