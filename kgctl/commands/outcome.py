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


def note_dry_run(execute: bool, errors: Iterable[RowError | None] = (None,), *, all_or_nothing: bool = False) -> None:
    """What a plan that was shown asks for. `errors` has an entry per row of the plan."""
    if execute:
        return
    rows = list(errors)
    failed = sum(error is not None for error in rows)
    stand = "1 error stands" if failed == 1 else f"{failed} errors stand"
    if not rows:
        advice = "There is nothing to do."
    elif not failed:
        advice = "Add --execute to do it."
    elif failed < len(rows) and not all_or_nothing:
        advice = f"Add --execute to do the rest of it: {stand} in the way of all."
    else:
        advice = f"{stand[0].upper()}{stand[1:]} in the way."
    note(f"Dry run: nothing was changed. {advice}")
