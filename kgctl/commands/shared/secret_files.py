"""Reads a secret from a file or stdin, because other users can read command lines."""

from __future__ import annotations

import os
import stat
import sys

import typer

from kgctl.render import note

STDIN = "-"


def secret_text(file: str, option: str, most_characters: int) -> str:
    """The text of the file, or of stdin for -, up to one character more than `most_characters`. Raises BadParameter."""
    try:
        if file == STDIN:
            return sys.stdin.read(most_characters + 1) if sys.stdin is not None else ""
        with open(file, encoding="utf-8") as opened:
            status = os.fstat(opened.fileno())
            if stat.S_ISREG(status.st_mode) and status.st_mode & 0o077:
                note(f"Warning: other users may read {file}: run `chmod 600` on it.")
            return opened.read(most_characters + 1)
    except OSError as error:
        raise typer.BadParameter(f"cannot read {file}: {error.strerror}.", param_hint=f"'{option}'") from None
    except UnicodeDecodeError:
        what = "stdin" if file == STDIN else file
        raise typer.BadParameter(f"{what} is not UTF-8.", param_hint=f"'{option}'") from None
