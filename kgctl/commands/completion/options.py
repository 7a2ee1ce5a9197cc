"""The options `--show-completion` and `--install-completion`: completion scripts for a named shell, or for $SHELL."""

from __future__ import annotations

import os
from pathlib import PurePath
from typing import Any

import typer
from typer.core import TyperOption

SHELLS = ("bash", "zsh", "fish", "powershell", "pwsh")
SHOW, INSTALL = "--show-completion", "--install-completion"


def completion_options() -> list[TyperOption]:
    return [
        TyperOption(
            param_decls=[SHOW],
            callback=_show,
            expose_value=False,
            is_eager=True,
            metavar="[SHELL]",
            help=f"Print the completion script for SHELL: {', '.join(SHELLS)}. [default: $SHELL]",
        ),
        TyperOption(
            param_decls=[INSTALL],
            callback=_install,
            expose_value=False,
            is_eager=True,
            metavar="[SHELL]",
            help="Install the completion script for SHELL. [default: $SHELL]",
        ),
    ]


def with_shell_named(arguments: list[str]) -> list[str]:
    """The arguments with an empty shell name behind a completion option that has none."""
    named: list[str] = []
    for number, argument in enumerate(arguments):
        named.append(argument)
        following = arguments[number + 1 : number + 2]
        if argument in (SHOW, INSTALL) and (not following or following[0].startswith("-")):
            named.append("")
    return named


def register_shells() -> None:
    """Let Typer answer the requests of its completion scripts."""
    from typer._completion_classes import completion_init

    completion_init()


def _show(ctx: Any, parameter: Any, value: str | None) -> None:
    if value is None or ctx.resilient_parsing:
        return
    from kgctl.commands.completion.scripts import script_of

    typer.echo(script_of(shell_named(value, f"'{SHOW}'")), nl=False)
    raise typer.Exit


def _install(ctx: Any, parameter: Any, value: str | None) -> None:
    if value is None or ctx.resilient_parsing:
        return
    from typer._completion_shared import install

    from kgctl.commands.completion.scripts import SCRIPTS, VARIABLE

    shell, path = install(shell=shell_named(value, f"'{INSTALL}'"), prog_name="kgctl", complete_var=VARIABLE)
    if shell in SCRIPTS:
        path.write_text(SCRIPTS[shell])
    typer.echo(f"Installed completion for {shell} in {path}; it takes effect in a new terminal.")
    raise typer.Exit


def shell_named(value: str, hint: str) -> str:
    """The shell of this name, or of $SHELL if the name is empty. `hint` is what names it, for errors."""
    if value:
        if value not in SHELLS:
            raise typer.BadParameter(f"{value!r} is not one of {', '.join(SHELLS)}.", param_hint=hint)
        return value
    name = PurePath(os.environ.get("SHELL", "")).name
    if name not in SHELLS:
        said = f"$SHELL is {name!r}" if name else "$SHELL is not set"
        raise typer.BadParameter(f"{said}; name one of {', '.join(SHELLS)}: kgctl completion bash.", param_hint=hint)
    return name
