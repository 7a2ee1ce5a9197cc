"""`kgctl users`: list SCRAM users, set their passwords, delete them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kgctl.commands.shared.arguments import Execute, not_empty
from kgctl.commands.shared.effects import changes, reads, shows
from kgctl.commands.shared.help import examples
from kgctl.commands.shared.journaling import journaled, keep
from kgctl.commands.shared.outcome import conclude, note_dry_run
from kgctl.commands.shared.secret_files import STDIN, secret_text
from kgctl.commands.shared.settings import settings
from kgctl.journal.items import passwords_set, users_deleted
from kgctl.render import note

if TYPE_CHECKING:
    from broker.security.secret import Secret

MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512")
# Those of broker.security.sasl.scram, which --help does not load.
MIN_ITERATIONS, MAX_ITERATIONS = 4096, 16384
# A password is one line of at most this length.
MAX_PASSWORD_CHARACTERS = 4096

users_app = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="List SCRAM users, set passwords, delete users."
)


def _known_mechanisms(value: str | list[str] | None) -> str | list[str] | None:
    for name in [value] if isinstance(value, str) else value or []:
        if name not in MECHANISMS:
            raise typer.BadParameter(f"{name!r} is not one of {', '.join(MECHANISMS)}.")
    return value


@users_app.command("list", epilog=examples("kgctl users list", "kgctl users list alice bob -o json"))
@shows("users")
@reads
def list_users(
    ctx: typer.Context,
    users: Annotated[list[str] | None, typer.Argument(metavar="[USER...]", show_default=False)] = None,
) -> None:
    """List SCRAM users with their mechanisms.

    Without USER, all users.
    """
    one = ("--entity-name", users[0]) if users and len(users) == 1 else ()
    settings(ctx).explain_as("kafka-configs.sh", "--describe", "--entity-type", "users", *one)
    with settings(ctx).admin() as admin:
        rows = admin.list_users(users or ())
    settings(ctx).show(rows, kind="users")
    conclude((row.error for row in rows), len(rows))


@users_app.command(
    "set-password",
    epilog=examples(
        "kgctl users set-password alice",
        "kgctl users set-password alice --password-file alice.txt",
        "pass kafka/alice | kgctl users set-password alice",
    ),
)
@shows("user-changes")
@journaled
@changes(names="user")
def set_password(
    ctx: typer.Context,
    user: Annotated[str, typer.Argument(metavar="USER", show_default=False, callback=not_empty)],
    mechanism: Annotated[
        list[str] | None,
        typer.Option(
            "--mechanism",
            metavar="NAME",
            callback=_known_mechanisms,
            help=f"{' or '.join(MECHANISMS)}; repeatable. [default: SCRAM-SHA-512]",
        ),
    ] = None,
    iterations: Annotated[
        int,
        typer.Option("--iterations", metavar="N", min=MIN_ITERATIONS, max=MAX_ITERATIONS, help="Rounds of the hash."),
    ] = MIN_ITERATIONS,
    password_file: Annotated[
        Path | None,
        typer.Option("--password-file", metavar="FILE", help="Read the password from the first line; - is stdin."),
    ] = None,
) -> None:
    """Create a SCRAM user, or replace its password.

    Asks for the password on a terminal, otherwise reads the first line of stdin. The password is not sent to the cluster:
    only its salted hash is. Connected clients stay connected.
    """
    import secrets

    from kgctl.client.admin.users import SALT_BYTES

    password = _password(user, password_file)
    names = list(dict.fromkeys(mechanism or ["SCRAM-SHA-512"]))
    values = ",".join(f"{name}=[iterations={iterations},password=...]" for name in names)
    words = ("--alter", "--entity-type", "users", "--entity-name", user, "--add-config", values)
    settings(ctx).explain_as("kafka-configs.sh", *words)
    with settings(ctx).admin() as admin:
        rows = keep(
            settings(ctx),
            admin,
            "users set-password",
            lambda: passwords_set(admin, user, names, iterations),
            lambda: [
                admin.set_password(user, name, password, iterations=iterations, salt=secrets.token_bytes(SALT_BYTES))
                for name in names
            ],
        )
    settings(ctx).show(rows, kind="user-changes")
    conclude((row.error for row in rows), len(rows))


@users_app.command(epilog=examples("kgctl users delete alice", "kgctl users delete alice bob --execute"))
@shows("user-changes")
@journaled
@changes(names="users", when="execute")
def delete(
    ctx: typer.Context,
    users: Annotated[list[str], typer.Argument(metavar="USER...", show_default=False, callback=not_empty)],
    mechanism: Annotated[
        str | None,
        typer.Option(
            "--mechanism",
            metavar="NAME",
            callback=_known_mechanisms,
            help="Delete only this credential. [default: all credentials of the user]",
        ),
    ] = None,
    execute: Execute = False,
) -> None:
    """Delete SCRAM users. Connected clients stay connected."""
    _warn_of_own_account(ctx, users)
    with settings(ctx).admin() as admin:
        rows = admin.plan_user_deletion(users, mechanism)
        for row in rows:
            if row.mechanism is not None:
                words = ("--alter", "--entity-type", "users", "--entity-name", row.user)
                settings(ctx).explain_as("kafka-configs.sh", *words, "--delete-config", row.mechanism)
        if execute:
            plan = rows
            rows = keep(
                settings(ctx), admin, "users delete", lambda: users_deleted(plan), lambda: admin.delete_users(plan)
            )
    settings(ctx).show(rows, kind="user-changes")
    note_dry_run(execute, [row.error for row in rows])
    conclude((row.error for row in rows), len(rows))


def _warn_of_own_account(ctx: typer.Context, users: list[str]) -> None:
    sasl = settings(ctx).connection().security.sasl
    if sasl is not None and sasl.username in users:
        note(f"Warning: this command connects as {sasl.username!r}, who then cannot connect again.")


def _password(user: str, file: Path | None) -> Secret:
    from broker.security.secret import Secret

    if file is None and sys.stdin is not None and sys.stdin.isatty():
        return _typed_password(user)
    text = secret_text(STDIN if file is None else str(file), "--password-file", MAX_PASSWORD_CHARACTERS + 1)
    password = text.split("\n", 1)[0].removesuffix("\r")
    source = "stdin" if file is None else f"{file}"
    if not password:
        raise typer.BadParameter(f"the first line of {source} is empty: it must be the password.")
    if len(password) > MAX_PASSWORD_CHARACTERS:
        raise typer.BadParameter(f"the first line of {source} has more than {MAX_PASSWORD_CHARACTERS} characters.")
    return Secret(password)


def _typed_password(user: str) -> Secret:
    from broker.security.secret import Secret
    from kgctl.commands.shared.secret_prompt import typed_secret

    password = typed_secret(f"Password of {user}: ")
    if not password:
        raise typer.BadParameter("the password is empty.")
    if typed_secret("Again: ") != password:
        raise typer.BadParameter("the passwords differ.")
    return Secret(password)
