"""`kgctl context import` and `export`: a Java client.properties to a context and back."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from broker.security.secret import Secret
from kgctl.commands.shared.effects import local
from kgctl.commands.shared.help import examples
from kgctl.commands.shared.journaling import write_document
from kgctl.commands.shared.options import complete_contexts
from kgctl.commands.shared.out_files import Overwrite, check_out
from kgctl.commands.shared.settings import settings
from kgctl.contexts import java_export, store
from kgctl.contexts.book import existing
from kgctl.contexts.java_properties import ignored_in, misspelt_in, read_java_file
from kgctl.contexts.names import BOOTSTRAP, BadContext, check_name, is_path
from kgctl.contexts.target import of_context
from kgctl.contexts.values import Value
from kgctl.render import note

IMPORT_EPILOG = examples(
    "kgctl context import client.properties --name prod --bootstrap kafka-1:9093",
    "kgctl context import ~/kafka/staging.properties --use",
)
EXPORT_EPILOG = examples(
    "kgctl context export prod > client.properties",
    "kgctl context export prod --with-secrets --out client.properties",
)


@local
def import_file(
    ctx: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="FILE", show_default=False)],
    name: Annotated[
        str | None, typer.Option("--name", metavar="NAME", help="[default: the file's name without its suffix]")
    ] = None,
    use: Annotated[bool, typer.Option("--use", help="Make it the current context.")] = False,
    replace: Annotated[bool, typer.Option("--replace", help="Replace a context of this name.")] = False,
) -> None:
    """Store a Java client.properties as a context.

    Properties that are not about the connection, such as acks, are left out. The address given as a global option is added, or replaces that of the file.
    """
    found, _ = read_java_file(file)
    values: dict[str, Value] = {key: _absolute(key, value) for key, value in found.items()}
    chosen = settings(ctx)
    if chosen.bootstrap is not None:
        values[BOOTSTRAP] = chosen.bootstrap
    if not values:
        raise BadContext(f"{file} has no property of a connection")
    wanted = check_name(name or file.stem)
    path = store.put(wanted, values, replace=replace)
    note(f"Stored the context {wanted!r} in {path}.")
    ignored = ignored_in(file)
    if ignored:
        note(f"Left out, because they are not about the connection: {', '.join(ignored)}.")
    for sentence in misspelt_in(file):
        note(f"Warning: {sentence}")
    if BOOTSTRAP not in values:
        note(f"Warning: the file has no {BOOTSTRAP}: kgctl context edit {wanted} --bootstrap HOST:PORT")
    literal = [key for key, value in values.items() if isinstance(value, Secret)]
    if literal:
        note(
            f"Warning: {', '.join(literal)} {'is' if len(literal) == 1 else 'are'} stored as plain text in a file that only "
            f"you can read; change that with `kgctl context edit {wanted} --secret {literal[0]}=env:VAR`."
        )
    if use:
        store.use(wanted)
        note(f"The current context is {wanted!r} now.")


@local
def export(
    ctx: typer.Context,
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", show_default=False, autocompletion=complete_contexts)
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "--to", metavar="FILE", help="A file that only you can read. [default: stdout]"),
    ] = None,
    overwrite: Overwrite = False,
    with_secrets: Annotated[
        bool, typer.Option("--with-secrets", help="Write the secrets too; needs --out, because they are never printed.")
    ] = False,
) -> None:
    """Write a context as client.properties for Java clients.

    Without NAME, what a command would use now. Without --with-secrets, secrets are left out and a comment names each.
    """
    file = None if out is None or str(out) == "-" else out
    if with_secrets and (file is None or (file.exists() and not file.is_file())):
        raise typer.BadParameter("Secrets are never printed: name a file with --out.", param_hint="'--with-secrets'")
    target = settings(ctx).target() if name is None else of_context(existing(name), "NAME")
    text = java_export.java_client(target, with_secrets=with_secrets)
    if file is None:
        typer.echo(text, nl=False)
        return
    check_out(file, "--out", overwrite=overwrite)
    write_document(str(file), text.encode())
    note(f"Wrote {file}.")


def _absolute(name: str, value: Value) -> Value:
    """Java clients take relative paths from their working directory; a context is used everywhere."""
    if isinstance(value, str) and value and is_path(name):
        return os.path.abspath(os.path.expanduser(value))
    return value
