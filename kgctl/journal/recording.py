"""A change with its entry in the journal: begun before, ended after it, whatever happens in between."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from kgctl.client.net.errors import KgctlError
from kgctl.journal.files import CannotKeep
from kgctl.journal.journal import Begun, Exceptions, Journal, Origin
from kgctl.journal.results import FAILED, INTERRUPTED, UNKNOWN, exceptions_of, is_uncertain, outcome_of
from kgctl.model.items import CONFIG, Item
from kgctl.model.plans import Plan, Snapshot

T = TypeVar("T")
# The journal is read as a whole, so it does not have the results of more rows than that.
_MOST_EXCEPTIONS = 2000


def recorded(
    journal: Journal,
    plan: Plan,
    before: Snapshot,
    origin: Origin,
    act: Callable[[], T],
    rows_of: Callable[[T], Sequence[Any]],
    *,
    items: Sequence[Item] = (),
    correct: Callable[[T, Begun], None] = lambda _, __: None,
    warn: Callable[[str], None],
) -> T:
    """The result of `act`. `rows_of` are its rows, with status and error; `correct` may keep a plan that was made again.

    Raises CannotKeep before anything is changed. If only the outcome cannot be kept, it warns.
    """
    begun = journal.begin(plan, before, origin, items)
    try:
        result = act()
    except KeyboardInterrupt:
        _end(begun, INTERRUPTED, None, (), warn)
        raise
    except Exception as error:
        # Also that of a tool of Kafka, which has a name, too.
        name = getattr(error, "name", None)
        if not isinstance(name, str):
            begun.release()
            raise
        _end(begun, UNKNOWN if is_uncertain(name) else FAILED, str(error), (), warn)
        raise
    except BaseException:
        begun.release()
        raise
    try:
        correct(result, begun)
    except KgctlError as error:
        warn(str(error))
    rows = rows_of(result)
    outcome, message = outcome_of(rows)
    _end(begun, outcome, message, exceptions_of(rows), warn)
    return result


def _end(begun: Begun, outcome: str, message: str | None, exceptions: Exceptions, warn: Callable[[str], None]) -> None:
    if any(item.kind == CONFIG and not item.is_kept for item in begun.entry.items):
        # Brokers quote the values that they refuse.
        message = None if message is None else "the message may quote a secret and is not kept"
        exceptions = [(key, text.partition(":")[0]) for key, text in exceptions]
    try:
        begun.end(outcome, message, exceptions if len(exceptions) <= _MOST_EXCEPTIONS else None)
    except CannotKeep as error:
        warn(f"{error}; the journal shows change {begun.id} as unfinished")
