"""A change with its entry in the journal: begun before, ended after it, whatever happens in between."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from kgctl.client.net.errors import KgctlError
from kgctl.journal.files import CannotKeep
from kgctl.journal.journal import DONE, FAILED, INTERRUPTED, PARTLY, Begun, Journal, Origin
from kgctl.model.changes import FAILED as ROW_FAILED
from kgctl.model.changes import SKIPPED
from kgctl.model.failure import RowError
from kgctl.model.plans import Plan, Snapshot

T = TypeVar("T")


def recorded(
    journal: Journal,
    plan: Plan,
    before: Snapshot,
    origin: Origin,
    act: Callable[[], T],
    rows_of: Callable[[T], Sequence[Any]],
    *,
    correct: Callable[[T, Begun], None] = lambda _, __: None,
    warn: Callable[[str], None],
) -> T:
    """The result of `act`. `rows_of` are its rows, with status and error; `correct` may keep a plan that was made again.

    Raises CannotKeep before anything is changed. If only the outcome cannot be kept, it warns.
    """
    begun = journal.begin(plan, before, origin)
    try:
        result = act()
    except KeyboardInterrupt:
        _end(begun, INTERRUPTED, None, warn)
        raise
    except KgctlError as error:
        _end(begun, FAILED, str(error), warn)
        raise
    except BaseException:
        begun.release()
        raise
    try:
        correct(result, begun)
    except CannotKeep as error:
        warn(str(error))
    outcome, message = outcome_of(rows_of(result))
    _end(begun, outcome, message, warn)
    return result


def outcome_of(rows: Sequence[Any]) -> tuple[str, str | None]:
    errors: list[RowError] = [row.error for row in rows if row.error is not None]
    done = sum(row.error is None and row.status not in (ROW_FAILED, SKIPPED) for row in rows)
    if not errors:
        return DONE, None
    return (PARTLY if done else FAILED), errors[0].message


def _end(begun: Begun, outcome: str, message: str | None, warn: Callable[[str], None]) -> None:
    try:
        begun.end(outcome, message)
    except CannotKeep as error:
        warn(f"{error}; the journal shows change {begun.id} as unfinished")
