"""The options of every command, before or after its arguments: which cluster, which output, how long to wait."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import typer
from typer.core import TyperGroup

from kgctl.commands.shared.help import GlobalOption, lay_out

if TYPE_CHECKING:
    from kgctl.client.admin.admin import Admin
    from kgctl.client.net.connector import ConnectionSettings
    from kgctl.contexts.handover import PortableSettings
    from kgctl.contexts.target import Given, Target
    from kgctl.model.failure import RowError

C = TypeVar("C", bound="ConnectionSettings")
COLORS = ("auto", "always", "never")
OUTPUTS = ("table", "wide", "json", "yaml", "csv")


@dataclass(slots=True)
class Settings:
    """What a command finds as `ctx.obj`; `timeout` in seconds."""

    bootstrap: str | None = None
    context: str | None = None
    command_config: str | None = None
    output: str = "table"
    color: str = "auto"
    timeout: float = 30.0
    is_timeout_given: bool = False
    wants_explanation: bool = False
    confirmed: list[str] = field(default_factory=list)
    _target: Target | None = None
    _has_warned: bool = False

    def given(self) -> Given:
        from kgctl.contexts.target import Given

        return Given(self.bootstrap, self.context, self.command_config)

    def target(self) -> Target:
        """The chosen cluster. Raises BadContext; opens no connection and resolves no secret."""
        if self._target is None:
            from kgctl.contexts.target import choose

            self._target = choose(self.given())
            for sentence in self._target.notes:
                from kgctl.render import note

                note(f"Note: {sentence}" if sentence.endswith("?") else f"Note: {sentence}.")
        return self._target

    def connection(self) -> ConnectionSettings:
        """How to reach the chosen cluster, with the time limit of the command or of the context."""
        from kgctl.contexts.connecting import connection_to

        return self._warned(connection_to(self.target(), timeout=self.timeout if self.is_timeout_given else None))

    def portable_connection(self) -> PortableSettings:
        """The same for a process that this one starts."""
        from kgctl.contexts.connecting import DEFAULT_TIMEOUT_S, resolved
        from kgctl.contexts.handover import portable

        target = self.target()
        default = target.timeout or DEFAULT_TIMEOUT_S
        return self._warned(portable(resolved(target), timeout=self.timeout if self.is_timeout_given else default))

    def _warned(self, connection: C) -> C:
        """The same settings, after a warning, once, if they are less secure than they could be."""
        if not self._has_warned:
            self._has_warned = True
            for sentence in connection.security.warnings:
                from kgctl.render import note

                note(f"Warning: {sentence}.")
        return connection

    def admin(self) -> Admin:
        """A client of the chosen cluster; use it in a `with`."""
        from kgctl.client.admin.admin import Admin

        return Admin(self.connection())

    def show(
        self, rows: Sequence[Any], *, kind: str, verbose: bool = False, errors: Iterable[RowError | None] = ()
    ) -> None:
        """Print rows to stdout as --output and --color say.

        `errors`: what failed and has no row of its own, such as a broker that did not answer.
        """
        from kgctl.render import show

        show(rows, self.output, self.color, kind=kind, verbose=verbose, errors=errors)

    def explain(self, sentence: str) -> None:
        """With --explain, a sentence on stderr about where values come from, or why some are missing."""
        if self.wants_explanation:
            from kgctl.render import note

            note(sentence)

    def explain_as(self, tool: str, *arguments: str) -> None:
        """With --explain, the command of Kafka's own tools that does the same: `tool` with these arguments.

        The options that name the cluster are added.
        """
        if not self.wants_explanation:
            return
        import shlex

        target = self.target()
        cluster = ["--bootstrap-server", target.text("bootstrap") or ""]
        cluster += ["--command-config", str(target.java_file)] if target.java_file else []
        self.explain(f"Kafka's tool: {shlex.join([tool, *cluster, *arguments])}")

    def connection_advice(self) -> str:
        """What to do when nothing listens at the address."""
        return self.target().advice


def settings(ctx: typer.Context) -> Settings:
    found = ctx.obj
    assert isinstance(found, Settings)
    return found


def add_options(command: Any) -> None:
    """Give a command and its subcommands the options of Settings, except flags that they use themselves."""
    taken = {flag for parameter in command.params for flag in parameter.opts}
    command.params += [option for option in _options() if not taken.intersection(option.opts)]
    command.rich_markup_mode = None
    lay_out(command)
    if isinstance(command, TyperGroup):
        for below in command.commands.values():
            add_options(below)


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
            "FORMAT",
            f"{', '.join(OUTPUTS)}  [default: table]",
            param_decls=["output", "-o", "--output"],
            callback=_remember,
        ),
        GlobalOption(
            "WHEN",
            f"Colours: {', '.join(COLORS)}  [default: auto]",
            param_decls=["color", "--color"],
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
            "Name Kafka's command, say why values are missing",
            param_decls=["wants_explanation", "--explain"],
            is_flag=True,
            default=None,
            callback=_remember,
        ),
    ]


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
