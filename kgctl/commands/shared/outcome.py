"""What failed rows mean for a person (sentences on stderr) and for a script (the exit code)."""

from __future__ import annotations

from collections.abc import Iterable

import typer

from kgctl.exit_codes import PARTLY_FAILED, exit_code_of
from kgctl.model.failure import RowError
from kgctl.render import note

MOST_MESSAGES = 20


def conclude(errors: Iterable[RowError | None], total: int) -> None:
    """Print each error once and exit with its code, or with 4 if only some of `total` failed or the codes differ."""
    failed = [error for error in errors if error is not None]
    messages = list(dict.fromkeys(error.message for error in failed))
    for message in messages[:MOST_MESSAGES]:
        note(f"Error: {message}")
    if len(messages) > MOST_MESSAGES:
        note(f"Error: and {len(messages) - MOST_MESSAGES} more.")
    if not failed:
        return
    codes = {exit_code_of(error) for error in failed}
    raise typer.Exit(codes.pop() if len(codes) == 1 and len(failed) >= total else PARTLY_FAILED)


def note_dry_run(
    execute: bool,
    errors: Iterable[RowError | None] = (None,),
    *,
    all_or_nothing: bool = False,
    options: str = "--execute",
    noun: str = "row",
) -> None:
    """Say that a plan was only shown, and how to apply it: with which options. `errors` has an entry per row, or other noun."""
    if execute:
        return
    rows = list(errors)
    failed = sum(error is not None for error in rows)
    problems = f"1 {noun} has an error" if failed == 1 else f"{failed} {noun}s have errors"
    if not rows:
        advice = "There is nothing to do."
    elif not failed:
        advice = f"Add {options} to apply the plan."
    elif failed < len(rows) and not all_or_nothing:
        advice = f"{problems}; add {options} to apply the others."
    else:
        advice = f"{problems}; the plan cannot be applied."
    note(f"Dry run: nothing was changed. {advice}")
