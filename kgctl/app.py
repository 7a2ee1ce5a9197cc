"""The root of the command line: loads a command when it is named, takes options anywhere, turns failures into exit codes."""

from __future__ import annotations

import errno
import os
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from kgctl.commands.completion.options import completion_options, register_shells, with_shell_named
from kgctl.commands.shared.hints import improve
from kgctl.commands.shared.loading import Entry, load_entry, stand_ins
from kgctl.commands.shared.optional_values import with_values
from kgctl.commands.shared.options import add_options
from kgctl.commands.shared.settings import Settings
from kgctl.output import BROKEN_PIPE, CannotWrite, discard_output

COMMANDS = {
    "groups": Entry("kgctl.commands.groups.verbs:GROUPS", "List, examine and change consumer groups."),
    "events": Entry("kgctl.commands.groups.events:events", "Show the events of groups."),
    "ui": Entry("kgctl.commands.ui:ui", "Watch consumer groups on a live dashboard."),
    "apply": Entry("kgctl.commands.journal.apply:apply", "Apply a plan that a command wrote with --plan."),
    "undo": Entry("kgctl.commands.journal.undo:undo", "Take back a change that is in the journal."),
    "journal": Entry("kgctl.commands.journal.verbs:JOURNAL", "Show the changes that were made from this machine."),
    "transactions": Entry(
        "kgctl.commands.transactions.app:transactions_app", "List, describe and abort transactions, find hanging ones."
    ),
    "producers": Entry(
        "kgctl.commands.transactions.producers:producers_app", "Show the producers that partitions remember."
    ),
    "topics": Entry("kgctl.commands.topics.verbs:TOPICS", "List, describe, create, alter and delete topics."),
    "configs": Entry("kgctl.commands.configs.verbs:CONFIGS", "Show, set and unset configs of topics, brokers, groups."),
    "quotas": Entry("kgctl.commands.quotas.verbs:QUOTAS", "List, set and remove client quotas."),
    "users": Entry("kgctl.commands.security.users:users_app", "List SCRAM users, set passwords, delete users."),
    "acls": Entry("kgctl.commands.security.acls:acls_app", "List, add and remove ACLs: who may do what."),
    "clients": Entry("kgctl.commands.clients.verbs:CLIENTS", "List the clients that are connected to kgctl's broker."),
    "cluster": Entry("kgctl.commands.cluster.verbs:CLUSTER", "Describe and examine the brokers of a cluster."),
    "produce": Entry("kgctl.commands.records.produce:produce", "Write records from stdin to a topic."),
    "consume": Entry("kgctl.commands.records.consume:consume", "Print records of topics to stdout."),
    "context": Entry("kgctl.commands.contexts.app:context_app", "Name clusters, and choose the one to work on."),
    "broker": Entry("kgctl.commands.broker.app:broker_app", "Run a local broker: one per data directory."),
    "store": Entry("kgctl.commands.store.verbs:STORE", "Read a broker's data directory offline."),
    "pipeline": Entry(
        "kgctl.commands.pipelines.app:pipeline_app", "Analyze groups and topics with Spark; archive and replay them."
    ),
    "bench": Entry("kgctl.commands.bench.verbs:BENCH", "Measure a cluster with records and members of a group."),
    "lab": Entry("kgctl.commands.lab.verbs:LAB", "Simulate how consumer groups rebalance."),
    "compat": Entry(
        "kgctl.commands.compat.app:compat", "Run one of Kafka's command-line tools with its own arguments."
    ),
    "completion": Entry("kgctl.commands.completion.app:completion", "Print the completion script for a shell."),
    "schema": Entry("kgctl.commands.schema:schema", "Print the JSON Schema of an answer."),
    "demo": Entry("kgctl.commands.demo:demo", "Take a guided tour."),
}
SUMMARY = "Inspect and administer consumer groups and topics of any Kafka cluster, and run a local broker."
EPILOG = """\b
Examples:
  kgctl demo
  kgctl groups list --bootstrap kafka-1:9092
  kgctl groups describe orders -o json

\b
Which cluster: the options --bootstrap (or --bootstrap-server), --context and
--command-config, else their variables, else the current context (see
`kgctl context`), else the running local broker, else 127.0.0.1:9092.

\b
Exit codes:
  0    success
  1    error
  2    usage error
  3    timeout, or a condition was not met
  4    partial failure
  5    not found
  6    wrong state, such as a group that still has members; read-only context
  7    cluster unreachable, or access denied
  130  interrupted
  141  broken pipe (the reader closed the output)
"""


class Root(TyperGroup):
    """Finds commands by name in COMMANDS, and reports what they raise as one line and an exit code."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.params += completion_options()
        add_options(self)
        self.commands = stand_ins(COMMANDS)

    def main(self, *arguments: Any, **options: Any) -> Any:
        shell = os.environ.get("_KGCTL_COMPLETE", "")
        if shell in ("bash", "zsh", "fish"):
            from kgctl.commands.completion.answer import answer

            return answer(self, shell, arguments[0] if arguments and arguments[0] is not None else sys.argv[1:])
        if shell:
            # A script of an earlier version, or of PowerShell.
            register_shells()
        return super().main(*arguments, **options)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        ctx.ensure_object(Settings).command_line = tuple(args)
        try:
            rest: list[str] = super().parse_args(ctx, with_values(with_shell_named(args)))
        except BrokenPipeError as error:
            raise _broken_pipe() from error
        except Exception as error:
            improve(error)
            raise
        return rest

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        name, found, rest = super().resolve_command(ctx, args)
        return name, load(name) if name and found else found, rest

    def invoke(self, ctx: Any) -> Any:
        try:
            try:
                result = super().invoke(ctx)
            except typer.Exit:
                ctx.obj.end_explanation()
                raise
            ctx.obj.end_explanation()
            # Not left to the interpreter's exit, where a broken pipe could no longer be handled.
            sys.stdout.flush()
        except BrokenPipeError as error:
            raise _broken_pipe() from error
        except Exception as error:
            improve(error)
            raise typer.Exit(report(error, ctx.obj)) from error
        return result


def _broken_pipe() -> typer.Exit:
    """Typer itself would exit with 1, which means an error."""
    discard_output()
    return typer.Exit(BROKEN_PIPE)


def load(name: str) -> Any:
    """The command of this name, with the options that every command has."""
    return load_entry(name, COMMANDS[name])


def report(error: Exception, settings: Settings) -> int:
    """Describe the failure on stderr in one line; the exit code. Errors that Typer reports itself are raised again."""
    from kgctl.client.net.errors import KgctlError, Refused
    from kgctl.exit_codes import exit_code_of
    from kgctl.render import note

    if isinstance(error, KgctlError):
        note(f"Error: {error}. {settings.connection_advice()}" if isinstance(error, Refused) else f"Error: {error}")
        return exit_code_of(error)
    if hasattr(error, "exit_code") or isinstance(error, typer.Abort):
        raise error
    if isinstance(error, CannotWrite) or (isinstance(error, OSError) and error.errno == errno.EPIPE):
        raise error
    if os.environ.get("KGCTL_TRACEBACK"):
        raise error
    note(f"Error: {type(error).__name__}: {error} (this is a bug; set KGCTL_TRACEBACK=1 to see where)")
    return 1


app = typer.Typer(
    cls=Root,
    rich_markup_mode=None,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help=SUMMARY,
    epilog=EPILOG,
)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"kgctl {version('kgctl')}")
        raise typer.Exit


@app.callback(help=SUMMARY)
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None: ...
