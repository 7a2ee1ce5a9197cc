"""What the outcome of a change means, and how it is said."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from kgctl.client.admin.reset import MOVED
from kgctl.client.net.errors import BrokerError, KgctlError, NotFound, Precondition
from kgctl.journal.results import is_uncertain
from kgctl.model.failure import RowError
from kgctl.watch.figures import counted


class Changed(Protocol):
    """The row of a change."""

    @property
    def error(self) -> RowError | None: ...


class GroupChanged(Changed, Protocol):
    @property
    def group(self) -> str: ...


def may_have_changed(name: str) -> bool:
    """Whether the change may have happened in spite of this error."""
    return name == "READ_BACK_DIFFERS" or is_uncertain(name)


def is_refusal(error: KgctlError) -> bool:
    """Whether the error means that nothing was changed."""
    is_known = isinstance(error, Precondition | NotFound | BrokerError) or error.name == MOVED
    return error.changed_nothing or (is_known and not may_have_changed(error.name))


def unchanged(sentence: str) -> str:
    return sentence if "nothing was changed" in sentence.lower() else f"{ended(sentence)} Nothing was changed."


def ended(sentence: str) -> str:
    """The sentence with a full stop, so that another one can follow."""
    return sentence if sentence.endswith(".") else f"{sentence}."


def of_groups(rows: Sequence[GroupChanged], done: str) -> tuple[str, str]:
    """The outcome of a change of several groups as a sentence that says what was `done`, and its kind."""
    groups = dict.fromkeys(row.group for row in rows)
    failed = [row for row in rows if row.error]
    bad = dict.fromkeys(row.group for row in failed)
    if not failed:
        return f"Done: {counted(len(groups), 'group')} {done}.", "good"
    first = failed[0].error
    assert first is not None
    good = len(groups) - len(bad)
    return f"{good:,} of {len(groups):,} groups {done}; {len(bad):,} failed: {ended(first.message)}", "error"


def can_change(rows: Sequence[GroupChanged]) -> list[str]:
    """The groups of a plan that have at least one row without an error."""
    return list(dict.fromkeys(row.group for row in rows if row.error is None))
