"""Files that commands write: --out holds the answer, and is kept if it exists; reports beside it are replaced."""

from __future__ import annotations

import os
from typing import Annotated

import typer

Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace the file of --out if it exists.")]


def check_out(file: str | os.PathLike[str], option: str, *, overwrite: bool) -> None:
    """Find out early whether the file can be written. Raises BadParameter."""
    text = os.fspath(file)
    folder = os.path.dirname(os.path.realpath(text))
    if not text:
        reason = "an empty name."
    elif os.path.isdir(text):
        reason = f"{text} is a directory."
    elif not os.path.isdir(folder):
        reason = f"cannot write {text}: there is no directory {folder}."
    # A device or a pipe is written to, not replaced.
    elif os.path.isfile(text) and not overwrite:
        reason = f"{text} exists; --overwrite replaces it."
    else:
        return
    raise typer.BadParameter(reason, param_hint=f"'{option}'")
