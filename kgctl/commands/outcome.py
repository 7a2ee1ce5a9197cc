"""What failed rows mean for the person (stderr) and for the script (exit code)."""

from __future__ import annotations

from collections.abc import Iterable

import typer

from kgctl.model.failure import RowError
from kgctl.render import note

PARTIAL = 4
MOST_MESSAGES = 20


def conclude(errors: Iterable[RowError | None], total: int) -> None:
    """Say each error once; leave with its exit code, or with 4 where only some of `total` failed or for several reasons."""
    failed = [error for error in errors if error is not None]
    messages = list(dict.fromkeys(error.message for error in failed))
    for message in messages[:MOST_MESSAGES]:
        note(f"Error: {message}")
    if len(messages) > MOST_MESSAGES:
        note(f"Error: and {len(messages) - MOST_MESSAGES} more.")
    if not failed:
        return
    codes = {error.exit_code for error in failed}
    raise typer.Exit(codes.pop() if len(codes) == 1 and len(failed) >= total else PARTIAL)


def note_dry_run(execute: bool) -> None:
    if not execute:
        note("Dry run: nothing was changed. Add --execute to do it.")
