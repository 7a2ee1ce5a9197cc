"""`kgctl context add` and `edit`: settings from options, secrets by reference, or the whole file in an editor."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from broker.secret_names import is_secret
from broker.security.secret import Secret
from kgctl.client.net.client_properties import MECHANISMS
from kgctl.client.net.errors import KgctlError
from kgctl.client.net.security import PROTOCOLS
from kgctl.commands.shared.effects import local
from kgctl.commands.shared.help import examples
from kgctl.commands.shared.options import complete_contexts
from kgctl.commands.shared.settings import settings
from kgctl.contexts import store
from kgctl.contexts.context_file import value_of
from kgctl.contexts.names import BOOTSTRAP, CONFIRM, OWN, READ_ONLY, TIMEOUT, BadContext
from kgctl.contexts.places import user_file, user_folder
from kgctl.contexts.private_files import read_bytes
from kgctl.contexts.values import KINDS, Value
from kgctl.render import note

SET_HELP = "Set a property under Kafka's name, or read-only, confirm, color, timeout; repeatable."
SECRET_HELP = (
    "Where a secret comes from: env:VAR, file:FILE, command:LINE, keyring:SERVICE/USER, or prompt; repeatable."
)
Set = Annotated[list[str] | None, typer.Option("--set", metavar="NAME=VALUE", help=SET_HELP)]
SecretFrom = Annotated[list[str] | None, typer.Option("--secret", metavar="NAME=SOURCE", help=SECRET_HELP)]
ADD_EPILOG = examples(
    "kgctl context add dev --bootstrap localhost:9092 --use",
    "kgctl context add prod --bootstrap kafka-1:9093 --read-only \\",
    "  --set security.protocol=SASL_SSL --set sasl.mechanism=SCRAM-SHA-512 \\",
    "  --set sasl.username=alice --secret sasl.password=env:PROD_PASSWORD",
    "kgctl context add staging --bootstrap kafka-9:9093 --set color=yellow \\",
    "  --secret 'sasl.jaas.config=command:pass kafka/staging'",
)
EDIT_EPILOG = examples(
    "kgctl context edit",
    "kgctl context edit prod --set timeout=10 --unset color",
    "kgctl context edit prod --secret sasl.password=prompt",
)


@local
def add(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", show_default=False)],
    set_: Set = None,
    secret: SecretFrom = None,
    read_only: Annotated[bool, typer.Option("--read-only", help="Refuse every change of this cluster.")] = False,
    confirm: Annotated[
        bool, typer.Option("--confirm", help="Ask for the group or topic name before every change.")
    ] = False,
    use: Annotated[bool, typer.Option("--use", help="Make it the current context.")] = False,
    replace: Annotated[bool, typer.Option("--replace", help="Replace a context of this name.")] = False,
) -> None:
    """Add a context to the user's file.

    The global options for address and time limit are stored in it. Secrets never stand on the command line: --secret says where to get them
    when a connection is opened. "prompt" asks once and stores the secret in the file, which only you can read.
    """
    values = {**_of_global_options(ctx), **_given(set_ or [], secret or [])}
    for setting, wanted in ((READ_ONLY, read_only), (CONFIRM, confirm)):
        values |= {setting: "true"} if wanted else {}
    path = store.put(name, values, replace=replace)
    note(f"Stored the context {name!r} in {path}.")
    if BOOTSTRAP not in values:
        note(f"Note: without {BOOTSTRAP}, the context is for the local broker.")
    _warn(values)
    if use:
        store.use(name)
        note(f"The current context is {name!r} now.")


@local
def edit(
    ctx: typer.Context,
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", show_default=False, autocompletion=complete_contexts)
    ] = None,
    set_: Set = None,
    secret: SecretFrom = None,
    unset: Annotated[
        list[str] | None, typer.Option("--unset", metavar="NAME", help="Remove a setting; repeatable.")
    ] = None,
) -> None:
    """Change settings of a context, or edit the whole file.

    Without settings to change, $VISUAL or $EDITOR gets the file. Comments are kept. An edited file that is not valid is refused, and your text is kept.
    """
    values = {**_of_global_options(ctx), **_given(set_ or [], secret or [])}
    if values or unset:
        if name is None:
            raise typer.BadParameter("Name the context to change.", param_hint="'NAME'")
        path = store.change(name, values, unset or [])
        note(f"Changed the context {name!r} in {path}.")
        _warn(values)
        return
    _edit_file()


def _of_global_options(ctx: typer.Context) -> dict[str, Value]:
    chosen = settings(ctx)
    found: dict[str, Value] = {} if chosen.bootstrap is None else {BOOTSTRAP: chosen.bootstrap}
    if chosen.bootstrap is not None:
        from kgctl.client.net.bootstrap import parse

        parse(chosen.bootstrap)
    return found | ({TIMEOUT: f"{chosen.timeout:g}"} if chosen.is_timeout_given else {})


def _given(sets: list[str], secrets: list[str]) -> dict[str, Value]:
    values: dict[str, Value] = {}
    for text in sets:
        name, value = _pair(text, "--set")
        if is_secret(name):
            raise typer.BadParameter(
                f"{name} is a secret, and other users can read command lines: use --secret {name}=env:VAR, "
                f"or --secret {name}=prompt.",
                param_hint="'--set'",
            )
        try:
            values[name] = _valid(name, value_of(name, _typed(name, value), Path()))
        except ValueError as error:
            raise typer.BadParameter(str(error), param_hint="'--set'") from None
    for text in secrets:
        name, source = _pair(text, "--secret")
        kind, colon, what = source.partition(":")
        if source == "prompt":
            values[name] = _asked(name)
        elif not colon or kind not in KINDS:
            # The text may be the secret itself: do not repeat it.
            raise typer.BadParameter(
                f"{name}: write env:VAR, file:FILE, command:LINE, keyring:SERVICE/USER, or prompt.",
                param_hint="'--secret'",
            )
        else:
            what = os.path.abspath(os.path.expanduser(what)) if kind == "file" and what else what
            try:
                values[name] = value_of(name, {kind: what}, user_folder(os.environ))
            except ValueError as error:
                raise typer.BadParameter(str(error), param_hint="'--secret'") from None
    return values


def _valid(name: str, value: Value) -> Value:
    """The value of a property that has few. Raises ValueError; a file may hold more, for other programs."""
    choices = {"security.protocol": PROTOCOLS, "sasl.mechanism": MECHANISMS, "sasl.mechanisms": MECHANISMS}.get(name)
    if choices and str(value).upper() not in choices:
        raise ValueError(f"{name}: {value!r} is not one of {', '.join(choices)}")
    return value


def _typed(name: str, text: str) -> object:
    """The value as TOML would have it."""
    if name in (READ_ONLY, CONFIRM):
        return {"true": True, "false": False}.get(text, text)
    if name == TIMEOUT:
        try:
            return float(text)
        except ValueError:
            return text
    return text


def _asked(name: str) -> Secret:
    from kgctl.commands.shared.secret_prompt import typed_secret

    if sys.stdin is None or not sys.stdin.isatty():
        raise typer.BadParameter("prompt needs a terminal.", param_hint="'--secret'")
    text = typed_secret(f"{name}: ")
    if not text:
        raise typer.BadParameter(f"{name}: nothing was typed.", param_hint="'--secret'")
    return Secret(text)


def _pair(text: str, option: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name or (not value and name in (BOOTSTRAP, *OWN)):
        shown = name if equals else "the text"
        raise typer.BadParameter(f"{shown} is not NAME=VALUE.", param_hint=f"'{option}'")
    return name, value


def _warn(values: dict[str, Value]) -> None:
    for name, value in values.items():
        if isinstance(value, Secret):
            note(
                f"Warning: {name} is stored as plain text in a file that only you can read; env, command or keyring is safer."
            )


def _edit_file() -> None:
    """Edit a private copy; the file is replaced only if the result is valid."""
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    if not editor:
        raise BadContext(f"set VISUAL or EDITOR, or edit {user_file(os.environ)} yourself")
    before = read_bytes(user_file(os.environ)) or b""
    user_folder(os.environ).mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor, copy = tempfile.mkstemp(prefix="edited-", suffix=".toml", dir=user_folder(os.environ))
    with open(descriptor, "wb") as file:
        file.write(before)
    try:
        code = subprocess.run([*shlex.split(editor), copy], check=False).returncode
    except (OSError, ValueError) as error:
        os.unlink(copy)
        raise BadContext(f"cannot run the editor {editor!r}: {getattr(error, 'strerror', None) or error}") from None
    after = Path(copy).read_bytes()
    if code or after == before:
        os.unlink(copy)
        note("Nothing was changed." if not code else f"The editor failed with exit code {code}; nothing was changed.")
        return
    try:
        store.replace_file(after)
    except KgctlError as error:
        raise BadContext(f"{error} (nothing was changed; your text is in {copy})") from None
    os.unlink(copy)
    note(f"Changed {user_file(os.environ)}.")
