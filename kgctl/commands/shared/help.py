"""The layout of help pages: own options first, the options of every command in one panel, examples last."""

from __future__ import annotations

from types import MethodType
from typing import Any

from typer.core import TyperGroup, TyperOption

# Older names of options: understood, not shown.
RETIRED = ("--to",)
# What a panel of global options looks like: the two columns of each line.
Panel = list[tuple[str, str]]


class GlobalOption(TyperOption):
    """An option of every command; `summary` and `value` are its line in the panel."""

    def __init__(self, value: str | None, summary: str, **attributes: Any) -> None:
        super().__init__(**attributes, metavar=value, help=summary, expose_value=False)

    def panel_line(self) -> tuple[str, str]:
        shown = [option for option in self.opts if option != "--bootstrap-server"]
        return " ".join([", ".join(shown), *([self.metavar] if self.metavar else [])]), self.help or ""


class TableOption(GlobalOption):
    """An option of every command that shows rows."""


def examples(*lines: str) -> str:
    """The epilog of a command: example command lines, which keep their line breaks."""
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


def lay_out(command: Any) -> None:
    """Give a command this layout."""
    command.format_options = MethodType(_format_options, command)
    for parameter in command.params:
        if parameter.param_type_name == "argument":
            parameter.get_usage_pieces = MethodType(_usage_pieces, parameter)


def _format_options(command: Any, ctx: Any, formatter: Any) -> None:
    arguments, options, table, panel = [], [], [], []
    for parameter in command.get_params(ctx):
        if isinstance(parameter, TableOption):
            table.append(parameter.panel_line())
        elif isinstance(parameter, GlobalOption):
            panel.append(parameter.panel_line())
        elif parameter.param_type_name == "argument":
            if parameter.help:
                arguments.append((parameter.make_metavar(ctx), parameter.help))
        elif parameter.name == "help":
            panel.append(("-h, --help", "Show this page and exit."))
        else:
            record = parameter.get_help_record(ctx)
            options += [_without_retired(record)] if record else []
    for title, lines in (("Arguments", arguments), ("Options", options)):
        _section(formatter, title, lines)
    if isinstance(command, TyperGroup):
        command.format_commands(ctx, formatter)
    if ctx.parent is None or not isinstance(command, TyperGroup):
        _section(formatter, "Output options", table)
    _section(formatter, "Global options", panel)


def _section(formatter: Any, title: str, lines: Panel) -> None:
    if lines:
        with formatter.section(title):
            formatter.write_dl(lines)


def _without_retired(record: tuple[str, str]) -> tuple[str, str]:
    names = record[0]
    for name in RETIRED:
        names = names.replace(f", {name} ", " ")
    return names, record[1]


def _usage_pieces(argument: Any, ctx: Any) -> list[str]:
    """Kafka's tools and the man pages write GROUP and [GROUP], not {GROUP}."""
    name = argument.make_metavar(ctx)
    return [name if argument.required or name.startswith("[") else f"[{name}]"]
