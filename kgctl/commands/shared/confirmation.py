"""Asks for the names of what a command would change, if the context says so."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from kgctl.contexts.consequences import NotConfirmed
from kgctl.render import note
from kgctl.render.table import printable

if TYPE_CHECKING:
    from kgctl.contexts.target import Target


def confirm(target: Target, names: Sequence[str], given: Sequence[str]) -> None:
    """Return once each name, or without names the context's, is given or typed. Raises NotConfirmed."""
    assert target.name is not None
    missing = [name for name in names or [target.name] if name not in given]
    if not missing:
        return
    if not (_is_terminal(sys.stdin) and _is_terminal(sys.stderr)):
        options = " ".join(f"--yes {shlex.quote(name)}" for name in missing)
        raise NotConfirmed(f"context {target.name!r} asks for confirmation: add {options}")
    note(f"Context {target.name!r} asks for confirmation.")
    for name in missing:
        sys.stderr.write(f"Type {printable(name)} to confirm: ")
        sys.stderr.flush()
        if sys.stdin.readline().rstrip("\r\n") != name:
            raise NotConfirmed(f"{name!r} was not confirmed; nothing was changed")


def _is_terminal(stream: object) -> bool:
    return stream is not None and bool(getattr(stream, "isatty", bool)())
