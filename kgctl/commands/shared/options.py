"""The options of every command, before or after its arguments."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperGroup

from kgctl.commands.shared.effects import declared_effect, effect_of, kinds_of
from kgctl.commands.shared.help import GlobalOption, TableOption, lay_out
from kgctl.commands.shared.settings import Settings

COLORS = ("auto", "always", "never")
WATCH_SECONDS = 2.0
_FORMATS = "table, wide, name, json, jsonl, yaml, csv, template=TEXT, template-file=FILE, jsonpath=PATH"


def add_options(command: Any) -> None:
    """Give a command and its subcommands the options of Settings, except flags that they use themselves."""
    effect = declared_effect(command)
    taken = {flag for parameter in command.params for flag in parameter.opts}
    if isinstance(command, TyperGroup):
        options = [*_output_options(TableOption), *_table_options(), _watch_option()]
    elif kinds_of(command):
        repeatable = [_watch_option()] if effect_of(command).repeatable else []
        options = [*_output_options(TableOption), *_table_options(), *repeatable]
    else:
        options = _output_options(TableOption if effect is not None and effect.has_own_rows else GlobalOption)
    if effect is None or not effect.is_offline:
        options = [*_options(), *options]
    command.params += [option for option in options if not taken.intersection(option.opts)]
    command.rich_markup_mode = None
    lay_out(command)
    if isinstance(command, TyperGroup):
        for below in command.commands.values():
            add_options(below)


def _output_options(panel: type[GlobalOption]) -> list[GlobalOption]:
    return [
        panel(
            "FORMAT",
            _FORMATS if panel is TableOption else "table, json or jsonl, where it applies",
            param_decls=["output", "-o", "--output"],
            callback=_remember,
        ),
        panel(
            "WHEN",
            f"Colours: {', '.join(COLORS)}  [default: auto]",
            param_decls=["color", "--color"],
            callback=_remember,
        ),
    ]


def _options() -> list[GlobalOption]:
    return [
        GlobalOption(
            "HOST:PORT[,...]",
            "Cluster  [$KGCTL_BOOTSTRAP, or local broker]",
            param_decls=["bootstrap", "--bootstrap", "--bootstrap-server"],
            callback=_remember,
        ),
        GlobalOption(
            "NAME",
            "Context  [$KGCTL_CONTEXT, or the current one]",
            param_decls=["context", "--context"],
            callback=_remember,
            autocompletion=lambda ctx, words, incomplete: complete_contexts(incomplete),
        ),
        GlobalOption(
            "FILE",
            "Java client.properties  [$KGCTL_COMMAND_CONFIG]",
            param_decls=["command_config", "--command-config"],
            callback=_remember,
        ),
        GlobalOption(
            "SECONDS",
            "Time limit for the cluster  [default: 30]",
            param_decls=["timeout", "--timeout"],
            callback=_remember,
        ),
        GlobalOption(
            None,
            "Show Kafka's command for this, and its limits",
            param_decls=["wants_explanation", "--explain"],
            is_flag=True,
            default=None,
            callback=_remember,
        ),
        GlobalOption(
            "FILE",
            "Requests as JSON lines; -: readable, on stderr",
            param_decls=["trace", "--trace"],
            callback=_remember,
        ),
    ]


def _table_options() -> list[GlobalOption]:
    return [
        TableOption(
            "NAME[,...]",
            "Columns (or JSON keys) to show, in order",
            param_decls=["columns", "--columns"],
            callback=_remember,
        ),
        TableOption(
            "NAME[:desc][,...]",
            "Order of the rows",
            param_decls=["sort", "--sort"],
            callback=_remember,
        ),
        TableOption(
            None,
            "Leave out the header line",
            param_decls=["no_headers", "--no-headers"],
            is_flag=True,
            default=None,
            callback=_remember,
        ),
    ]


def _watch_option() -> GlobalOption:
    return TableOption(
        "[SECONDS]",
        f"Repeat until Ctrl-C  [default: every {WATCH_SECONDS:g} s]",
        param_decls=["watch", "--watch"],
        callback=_remember,
    )


def complete_contexts(incomplete: str) -> list[str]:
    """Names for the shell's completion; none if a file is not valid."""
    import os

    from kgctl.client.net.errors import KgctlError
    from kgctl.contexts.book import open_book

    try:
        names = open_book(os.environ).names()
    except KgctlError:
        return []
    return [name for name in names if name.startswith(incomplete)]


def _remember(ctx: Any, parameter: Any, value: str | bool | None) -> None:
    if value is None or ctx.resilient_parsing:
        return
    chosen = ctx.ensure_object(Settings)
    setattr(chosen, parameter.name, _checked(ctx, parameter, value) if isinstance(value, str) else value)
    chosen.is_timeout_given |= parameter.name == "timeout"


def _checked(ctx: Any, parameter: Any, value: str) -> Any:
    match parameter.name:
        case "output":
            return _checked_output(ctx, parameter, value)
        case "color" if value not in COLORS:
            raise typer.BadParameter(f"{value!r} is not one of {', '.join(COLORS)}.", ctx=ctx, param=parameter)
        case "columns" | "sort":
            return _checked_columns(ctx, parameter, value)
        case "trace":
            return _opened_trace(ctx, parameter, value)
        case "timeout":
            return parse_seconds(value)
        case "watch":
            return parse_seconds(value, "--watch") if value else WATCH_SECONDS
    return value


def _checked_output(ctx: Any, parameter: Any, value: str) -> str:
    from kgctl.render.formats import check
    from kgctl.render.program import BadFormat

    try:
        check(value)
    except BadFormat as error:
        raise typer.BadParameter(str(error), ctx=ctx, param=parameter) from error
    return value


def _checked_columns(ctx: Any, parameter: Any, value: str) -> Any:
    from kgctl.render.selection import BadColumn, parse_sort, parts_of

    try:
        return parts_of(value) if parameter.name == "columns" else parse_sort(value)
    except BadColumn as error:
        raise typer.BadParameter(str(error), ctx=ctx, param=parameter) from error


def _opened_trace(ctx: Any, parameter: Any, value: str) -> Any:
    from kgctl.commands.shared.trace_output import open_trace

    try:
        return open_trace(value, ctx.find_root().call_on_close)
    except OSError as error:
        raise typer.BadParameter(f"cannot write {value!r}: {error.strerror}.", ctx=ctx, param=parameter) from error


def parse_seconds(text: str, option: str = "--timeout") -> float:
    """A number of seconds, or a duration such as 2m."""
    from kgctl.client.admin.times import span_ms
    from kgctl.client.net.errors import BadValue

    try:
        seconds = span_ms(text) / 1000
    except BadValue:
        seconds = -1.0
    if not 0 < seconds <= 86400:
        raise typer.BadParameter(f"{text!r} is not a number of seconds above 0.", param_hint=f"'{option}'")
    return seconds
