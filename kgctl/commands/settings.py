"""The options that every command has, before or after its words: which cluster, which output, how long."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperGroup, TyperOption

if TYPE_CHECKING:
    from kgctl.client.admin.admin import Admin
    from kgctl.client.net.connector import ConnectionSettings

COLORS = ("auto", "always", "never")
OUTPUTS = ("table", "wide", "json", "yaml", "csv")


@dataclass(slots=True)
class Settings:
    """What a command finds as `ctx.obj`."""

    bootstrap: str | None = None
    output: str = "table"
    color: str = "auto"
    timeout: float = 30.0
    is_timeout_given: bool = False

    def connection(self) -> ConnectionSettings:
        """How to reach the chosen cluster."""
        from kgctl.client.net.bootstrap import resolve
        from kgctl.client.net.connector import ConnectionSettings

        return ConnectionSettings(resolve(self.bootstrap), timeout=self.timeout)

    def admin(self) -> Admin:
        """A client of the chosen cluster; use it in a `with`."""
        from kgctl.client.admin.admin import Admin

        return Admin(self.connection())

    def show(self, rows: Sequence[Any], *, kind: str, row_type: type | None = None, verbose: bool = False) -> None:
        """Print rows to stdout as --output and --color say."""
        from kgctl.render import show

        show(rows, self.output, self.color, kind=kind, row_type=row_type, verbose=verbose)


def settings(ctx: typer.Context) -> Settings:
    found = ctx.obj
    assert isinstance(found, Settings)
    return found


def add_options(command: Any) -> None:
    """Give a command, and all below it, the options of Settings, but for flags that it uses itself."""
    taken = {flag for parameter in command.params for flag in parameter.opts}
    command.params += [option for option in _options() if not taken.intersection(option.opts)]
    command.rich_markup_mode = None
    if isinstance(command, TyperGroup):
        for below in command.commands.values():
            add_options(below)


def _options() -> list[TyperOption]:
    return [
        TyperOption(
            param_decls=["bootstrap", "--bootstrap", "--bootstrap-server"],
            callback=_remember,
            expose_value=False,
            metavar="HOST:PORT[,...]",
            help="The cluster: addresses of some of its brokers. [env var: KGCTL_BOOTSTRAP; default: the local broker]",
        ),
        TyperOption(
            param_decls=["output", "-o", "--output"],
            callback=_remember,
            expose_value=False,
            metavar="|".join(OUTPUTS),
            help="How to print the answer; wide: a table that is not made to fit the terminal. [default: table]",
        ),
        TyperOption(
            param_decls=["color", "--color"],
            callback=_remember,
            expose_value=False,
            metavar="|".join(COLORS),
            help="Whether tables have colours; auto: on a terminal, unless NO_COLOR is set. [default: auto]",
        ),
        TyperOption(
            param_decls=["timeout", "--timeout"],
            callback=_remember,
            expose_value=False,
            metavar="SECONDS",
            help="How long to wait for the cluster. [default: 30]",
        ),
    ]


def _remember(ctx: Any, parameter: Any, value: str | None) -> None:
    if value is None or ctx.resilient_parsing:
        return
    chosen = ctx.ensure_object(Settings)
    setattr(chosen, parameter.name, _checked(ctx, parameter, value))
    chosen.is_timeout_given |= parameter.name == "timeout"


def _checked(ctx: Any, parameter: Any, value: str) -> str | float:
    known = {"output": OUTPUTS, "color": COLORS}.get(parameter.name)
    if known is not None and value not in known:
        raise typer.BadParameter(f"{value!r} is not one of {', '.join(known)}.", ctx=ctx, param=parameter)
    if parameter.name != "timeout":
        return value
    return parse_seconds(value)


def parse_seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 < seconds <= 86400:
        raise typer.BadParameter(f"{text!r} is not a number of seconds above 0.", param_hint="'--timeout'")
    return seconds
