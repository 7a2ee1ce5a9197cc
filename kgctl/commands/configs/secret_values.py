"""Values of configs that must not be seen: where they come from, and rows that do not show them."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import typer

from broker.light_dataclasses import replace
from broker.secret_names import is_secret
from kgctl.commands.shared.secret_files import STDIN, secret_text
from kgctl.model.configs import HIDDEN, ConfigChange
from kgctl.render import note

OPTION = "--value-file"
# A certificate chain or a trust store in PEM fits.
MOST_CHARACTERS = 1 << 20


def values_of_files(texts: Sequence[str], given: Collection[str]) -> dict[str, str]:
    """The values of CONFIG=FILE, without the end of the last line. `given`: configs that have a value already."""
    found: dict[str, str] = {}
    stdin_is_read = False
    for text in texts:
        name, equals, file = text.partition("=")
        if not equals or not name or not file:
            raise _bad(f"{text!r} is not CONFIG=FILE.")
        if name in found or name in given:
            raise _bad(f"{name} has two values.")
        if file == STDIN and stdin_is_read:
            raise _bad("stdin can be the value of one config only.")
        stdin_is_read |= file == STDIN
        value = secret_text(file, OPTION, MOST_CHARACTERS)
        if len(value) > MOST_CHARACTERS:
            raise _bad(f"{file} has more than {MOST_CHARACTERS} characters.")
        found[name] = value.removesuffix("\n").removesuffix("\r")
    return found


def marked(rows: Sequence[ConfigChange], from_files: Collection[str] = ()) -> list[ConfigChange]:
    """The rows, with those marked as sensitive that have the name of a secret or a value from a file."""
    return [replace(row, sensitive=True) if row.config in from_files or is_secret(row.config) else row for row in rows]


def without_secrets(rows: Sequence[ConfigChange]) -> list[ConfigChange]:
    """The rows as they may be shown."""
    return [
        replace(row, old_value=None, new_value=None if row.new_value is None else HIDDEN) if row.sensitive else row
        for row in rows
    ]


def warn_of_readers(rows: Sequence[ConfigChange], from_files: Collection[str]) -> None:
    """Say which secrets stood on the command line."""
    visible = [row.config for row in rows if row.sensitive and row.new_value and row.config not in from_files]
    for config in dict.fromkeys(visible):
        note(
            f"Warning: other users of this machine can see {config} in the list of processes; "
            f"give its value with {OPTION} {config}=FILE, or - for stdin."
        )


def _bad(message: str) -> typer.BadParameter:
    return typer.BadParameter(message, param_hint=f"'{OPTION}'")
