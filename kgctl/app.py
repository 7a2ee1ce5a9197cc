"""The root of the command line: commands loaded when they are named, options anywhere, failures as exit codes."""

from __future__ import annotations

import errno
import importlib
import os
import sys
from typing import Annotated, Any, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup

from kgctl.commands.settings import Settings, add_options
from kgctl.output import NOBODY_READS, CannotWrite, forget_output


class Entry(NamedTuple):
    """Where a command lives, and what `kgctl --help` says of it without loading it."""

    target: str
    help: str


COMMANDS = {
    "groups": Entry("kgctl.commands.groups:groups_app", "List, describe and change consumer groups."),
    "ui": Entry("kgctl.commands.ui:ui", "Watch groups live on a dashboard, and act on them."),
    "topics": Entry("kgctl.commands.topics:topics_app", "List, describe, create and delete topics."),
    "produce": Entry("kgctl.commands.produce:produce", "Write records from stdin to a topic."),
    "consume": Entry("kgctl.commands.consume:consume", "Read records of topics to stdout."),
    "pipeline": Entry(
        "kgctl.commands.pipeline:pipeline_app", "Turn what consumer groups do into tables and a report, on Spark."
    ),
    "broker": Entry("kgctl.commands.broker:broker_app", "Run the local broker: one per data directory."),
    "demo": Entry("kgctl.commands.demo:demo", "Show the main job."),
}


class Root(TyperGroup):
    """Finds commands by name in COMMANDS, and turns what they raise into one line and an exit code."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        add_options(self)
        # What help and suggestions need; resolve_command gives the real ones.
        self.commands = {name: TyperCommand(name, help=entry.help) for name, entry in COMMANDS.items()}

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        ctx.ensure_object(Settings)
        try:
            rest: list[str] = super().parse_args(ctx, args)
        except BrokenPipeError as error:
            raise _nobody_reads() from error
        return rest

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        name, found, rest = super().resolve_command(ctx, args)
        return name, load(name) if name and found else found, rest

    def invoke(self, ctx: Any) -> Any:
        try:
            result = super().invoke(ctx)
            # Here, not at exit: a reader that has gone is noticed while someone can still handle it.
            sys.stdout.flush()
        except BrokenPipeError as error:
            raise _nobody_reads() from error
        except Exception as error:
            raise typer.Exit(report(error)) from error
        return result


def _nobody_reads() -> typer.Exit:
    """Typer itself would say 1, which is a failure."""
    forget_output()
    return typer.Exit(NOBODY_READS)


def load(name: str) -> Any:
    """The command behind a name, with the options that all commands have."""
    module, _, attribute = COMMANDS[name].target.partition(":")
    found = getattr(importlib.import_module(module), attribute)
    holder = typer.Typer(add_completion=False, rich_markup_mode=None)
    holder.callback()(lambda: None)
    if isinstance(found, typer.Typer):
        holder.add_typer(found, name=name)
    else:
        holder.command(name)(found)
    group = typer.main.get_command(holder)
    assert isinstance(group, TyperGroup)
    command = group.commands[name]
    add_options(command)
    return command


def report(error: Exception) -> int:
    """Say on stderr what went wrong, in one line, and give the exit code. Errors that are Typer's own go on."""
    from kgctl.client.net.errors import KgctlError, Refused
    from kgctl.render import note

    if isinstance(error, KgctlError):
        hint = ""
        if isinstance(error, Refused):
            hint = ". Start a local broker with `kgctl broker start`, or name a cluster with --bootstrap HOST:PORT."
        note(f"Error: {error}{hint}")
        return error.exit_code
    if hasattr(error, "exit_code") or isinstance(error, typer.Abort):
        raise error
    if isinstance(error, CannotWrite) or (isinstance(error, OSError) and error.errno == errno.EPIPE):
        raise error
    if os.environ.get("KGCTL_TRACEBACK"):
        raise error
    note(f"Error: {type(error).__name__}: {error} (this should not happen; KGCTL_TRACEBACK=1 shows where)")
    return 1


app = typer.Typer(
    cls=Root,
    rich_markup_mode=None,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Operate consumer groups and topics on any Kafka cluster, or on a local broker that starts in an instant.",
    epilog="Exit codes: 0 ok, 1 error, 2 usage, 3 timeout or condition not met, 4 partly failed, 5 not found, "
    "6 wrong state (a group that is not empty), 7 unreachable or not permitted, 130 interrupted, 141 nobody reads the output.",
)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"kgctl {version('kgctl')}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Operate consumer groups and topics on any Kafka cluster, or on a local broker that starts in an instant."""
