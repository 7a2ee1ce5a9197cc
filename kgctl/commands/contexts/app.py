"""`kgctl context`: list and show contexts, choose one, trust a project's file. `context_edit` holds what changes them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from kgctl.client.net.errors import NotFound
from kgctl.commands.contexts import edit as context_edit
from kgctl.commands.contexts import files as context_files
from kgctl.commands.contexts import test as context_test
from kgctl.commands.shared.arguments import only_one
from kgctl.commands.shared.effects import local, shows
from kgctl.commands.shared.help import examples
from kgctl.commands.shared.options import complete_contexts
from kgctl.commands.shared.settings import settings
from kgctl.contexts import consent, store
from kgctl.contexts.book import existing, open_book, working_folder
from kgctl.contexts.names import TOKEN_COMMAND
from kgctl.contexts.rows import context_rows, setting_rows
from kgctl.contexts.target import CONTEXT_VARIABLE, Given, Target, choose
from kgctl.contexts.values import Reference
from kgctl.render import note

context_app = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Name clusters, and choose the one to work on."
)

Name = Annotated[str, typer.Argument(metavar="NAME", show_default=False, autocompletion=complete_contexts)]
OneName = Annotated[str | None, typer.Argument(metavar="[NAME]", show_default=False, autocompletion=complete_contexts)]


@context_app.command("list", epilog=examples("kgctl context list", "kgctl context list -o json"))
@shows("contexts")
@local
def list_contexts(ctx: typer.Context) -> None:
    """List contexts. An asterisk marks the current one.

    Reads files only: no secret is resolved and no connection is opened.
    """
    book = open_book(os.environ)
    rows = context_rows(book)
    settings(ctx).show(rows, kind="contexts")
    if book.note:
        note(f"Note: {book.note}.")
    if not rows:
        note("There is no context yet; see `kgctl context add --help`.")
    elif book.choice is not None and book.find(book.choice) is None:
        note(f"Warning: {book.chosen_in} names a context that does not exist: {book.choice}.")


@context_app.command(
    epilog=examples("kgctl context show", "kgctl context show --explain", "kgctl context show prod -o json")
)
@shows("context-settings")
@local
def show(
    ctx: typer.Context,
    name: OneName = None,
    explain: Annotated[bool, typer.Option("--explain", help="Show where each value comes from.")] = False,
) -> None:
    """Show what a command would use now.

    With NAME, what it would use with this context. Secrets are never shown, only where they come from.
    """
    chosen = settings(ctx)
    if name is not None:
        existing(name)
        target = choose(Given(context=name))
    else:
        target = chosen.target()
    chosen.show(
        setting_rows(target, chosen.timeout if chosen.is_timeout_given else None),
        kind="context-settings",
        verbose=explain,
    )
    if name is not None:
        return
    if target.name is not None:
        note(f"Context {target.name!r}, chosen by {target.chosen_by}.")
    elif explain:
        note(f"Chosen by: {target.chosen_by}.")
    if explain:
        for sentence in _outranked(target):
            note(sentence)


@context_app.command(epilog=examples("kgctl context use prod", "kgctl context use --none"))
@local
def use(
    name: OneName = None,
    none: Annotated[bool, typer.Option("--none", help="Have no current context: use the local broker.")] = False,
) -> None:
    """Make a context the current one.

    Commands use it unless an option, a variable or a project's file names another cluster.
    """
    only_one({"NAME": name, "--none": none})
    if name is None and not none:
        raise typer.BadParameter("Name a context, or give --none.", param_hint="'NAME'")
    book = open_book(os.environ)
    if name is not None and (book.user is None or name not in book.user.contexts):
        raise NotFound(book.missing(name))
    store.use(name)
    note("There is no current context now." if name is None else f"The current context is {name!r} now.")
    if book.project is not None and book.project.choice is not None:
        note(f"Warning: here, {book.project.path} chooses {book.project.choice!r}.")
    if os.environ.get(CONTEXT_VARIABLE):
        note(f"Warning: in this shell, {CONTEXT_VARIABLE} chooses {os.environ[CONTEXT_VARIABLE]!r}.")


@context_app.command(epilog=examples("kgctl context remove staging"))
@local
def remove(name: Name) -> None:
    """Remove a context from the user's file."""
    was_current = store.remove(name)
    note(f"Removed the context {name!r}." + (" There is no current context now." if was_current else ""))


@context_app.command(
    epilog=examples("kgctl context trust", "kgctl context trust ~/work/shop", "kgctl context trust --remove")
)
@local
def trust(
    path: Annotated[Path | None, typer.Argument(metavar="[PATH]", show_default=False)] = None,
    remove_it: Annotated[bool, typer.Option("--remove", help="Trust the file no longer.")] = False,
) -> None:
    """Honour the .kgctl.toml of a project, as it is now.

    Without PATH, the nearest file in this folder or above it. Read it first: it decides which clusters commands in this
    folder work on, and may name commands to run for secrets. After a change it needs consent again.
    """
    file = consent.named_project(path, working_folder() or Path.home())
    if remove_it:
        was_trusted = consent.distrust(file, os.environ)
        note(f"{file} is no longer trusted." if was_trusted else f"{file} was not trusted.")
        return
    found = consent.trust(file, os.environ)
    note(f"Trusted {file}.")
    for context in found.contexts.values():
        for name, value in context.settings.items():
            if name == TOKEN_COMMAND or (isinstance(value, Reference) and value.kind == "command"):
                note(f"Note: it runs a command for {name} of context {context.name!r}: {value}.")
    if found.choice is not None:
        note(f"It chooses the context {found.choice!r}.")


context_app.command("add", epilog=context_edit.ADD_EPILOG)(context_edit.add)
context_app.command("edit", epilog=context_edit.EDIT_EPILOG)(context_edit.edit)
context_app.command("test", epilog=context_test.EPILOG)(context_test.examine)
context_app.command("import", epilog=context_files.IMPORT_EPILOG)(context_files.import_file)
context_app.command("export", epilog=context_files.EXPORT_EPILOG)(context_files.export)


def _outranked(target: Target) -> list[str]:
    """What else names a cluster here and does not count."""
    from kgctl.contexts.target import VARIABLES

    used = {target.chosen_by, *(one.source for one in target.values.values())}
    found = [f"{name} is set, and does not count." for name in VARIABLES if os.environ.get(name) and name not in used]
    book = open_book(os.environ)
    if book.choice is not None and target.chosen_by != str(book.chosen_in):
        found.append(f"{book.chosen_in} chooses {book.choice!r}, and does not count.")
    return found
