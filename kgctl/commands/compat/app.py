"""`kgctl compat TOOL ARGS`: Kafka's own tools, with the same output and with exit codes for each kind of failure."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kgctl.client.admin.admin import Admin
from kgctl.commands.shared.effects import check_change, decides_itself
from kgctl.commands.shared.help import examples
from kgctl.commands.shared.journaling import journaled, keeper
from kgctl.commands.shared.settings import Settings, settings
from kgctl.compat.tool import DIALECTS, Host
from kgctl.compat.tools import TOOLS, run
from kgctl.contexts.names import BOOTSTRAP

if TYPE_CHECKING:
    from kgctl.journal.keeping import Keeper

# What follows the name of the tool belongs to the tool.
PARSING = {"allow_interspersed_args": False}
EPILOG = (
    "\b\n"
    + textwrap.fill(f"Tools: {', '.join(TOOLS)}", 76, subsequent_indent="  ")
    + "\n\n"
    + examples(
        "kgctl compat kafka-consumer-groups --bootstrap-server kafka-1:9092 --list",
        "kgctl compat kafka-consumer-groups --describe --group orders",
        "kgctl compat --dialect 3.9 kafka-topics --describe --topic orders",
        "ln -s $(which kgctl) kafka-consumer-groups.sh",
    )
)


@journaled
@decides_itself
def compat(
    ctx: typer.Context,
    tool: Annotated[str, typer.Argument(metavar="TOOL", show_default=False)],
    arguments: Annotated[list[str] | None, typer.Argument(metavar="[ARGS]...", show_default=False)] = None,
    dialect: Annotated[
        str,
        typer.Option(metavar="RELEASE", envvar="KGCTL_COMPAT_DIALECT", help=f"Output of: {', '.join(DIALECTS)}."),
    ] = "4.1",
    ak_exit_codes: Annotated[
        bool,
        typer.Option(
            "--ak-exit-codes",
            envvar="KGCTL_COMPAT_AK_EXIT_CODES",
            help="Exit as Apache Kafka's tool does: some exit with 0 after errors.",
        ),
    ] = False,
) -> None:
    """Run one of Kafka's command-line tools with its own arguments.

    A tool without servers among its arguments works on the current context, or on
    the local broker.
    """
    if dialect not in DIALECTS:
        raise typer.BadParameter(f"{dialect!r} is not one of {', '.join(DIALECTS)}.", param_hint="'--dialect'")
    name = tool.removesuffix(".sh")
    if name not in TOOLS:
        raise typer.BadParameter(f"{tool!r} is not one of {', '.join(TOOLS)}.", param_hint="'TOOL'")
    chosen = settings(ctx)

    def connect(servers: str | None, config: str | None, timeout_s: float | None) -> Admin:
        return _connect(chosen, servers, config, timeout_s)

    def may_change(names: Sequence[str]) -> None:
        check_change(ctx, names, f"`{name}`")

    def read_line() -> str:
        sys.stdout.flush()
        return sys.stdin.readline()

    def keep() -> Keeper:
        return keeper(chosen, hints=False)

    host = Host(dialect, connect, may_change, _writer(sys.stdout), _writer(sys.stderr), read_line, keep)
    ended = run(name, list(arguments or ()), host)
    raise typer.Exit(ended.kafkas if ak_exit_codes else ended.code)


def _connect(chosen: Settings, servers: str | None, config: str | None, timeout_s: float | None) -> Admin:
    chosen.bootstrap = servers or chosen.bootstrap
    chosen.command_config = config or chosen.command_config
    if timeout_s is not None and not chosen.is_timeout_given:
        chosen.timeout, chosen.is_timeout_given = timeout_s, True
    target = chosen.target()
    if servers is None:
        from kgctl.render import note

        where = f"context {target.name!r}" if target.name else str(target.values[BOOTSTRAP].source)
        note(f"Note: without --bootstrap-server, this is {target.text(BOOTSTRAP)} ({where}).")
    return chosen.admin()


def _writer(stream: Any) -> Any:
    """Writes text as the tool does; a terminal gets control characters of names escaped."""
    if not stream.isatty():
        return stream.write

    def write(text: str) -> None:
        from kgctl.render.table import printable

        stream.write("".join(char if char in "\n\t" else printable(char) for char in text))

    return write
