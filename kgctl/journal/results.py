"""What became of a change, as a whole and row by row. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from broker.light_dataclasses import dataclass
from kgctl.client.net.errors import KgctlError
from kgctl.journal.items import Key, key_of
from kgctl.model.changes import DONE as ROW_DONE
from kgctl.model.changes import FAILED as ROW_FAILED
from kgctl.model.changes import SKIPPED
from kgctl.model.failure import RowError

DONE, PARTLY, FAILED, UNKNOWN, INTERRUPTED, RUNNING, UNFINISHED = (
    "done",
    "partly failed",
    "failed",
    "unknown",
    "interrupted",
    "running",
    "unfinished",
)
# Errors after which the cluster may have made the change all the same: no answer, or one that says as much.
_UNCERTAIN = {
    "COORDINATOR_NOT_AVAILABLE",
    "NETWORK_EXCEPTION",
    "NOT_ENOUGH_REPLICAS_AFTER_APPEND",
    "NO_ANSWER",
    "REQUEST_TIMED_OUT",
    "TIMED_OUT",
    "UNKNOWN_SERVER_ERROR",
    "UNREACHABLE",
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """The row of a change that has no model of its own."""

    key: Key
    error: RowError | None = None
    status: str = ROW_DONE

    @classmethod
    def of(cls, key: Key, error: KgctlError | None) -> Outcome:
        return cls(key, error.as_row() if error else None, ROW_FAILED if error else ROW_DONE)


@dataclass(frozen=True, slots=True)
class Results:
    """What became of the rows of one change. `exceptions` are those that were not done; None if that was not kept."""

    outcome: str
    message: str | None
    exceptions: Mapping[Key, str] | None

    def of(self, key: Key) -> str:
        """done, failed: ..., skipped, unknown or running."""
        if self.outcome in (DONE, RUNNING):
            return self.outcome
        if self.outcome in (INTERRUPTED, UNFINISHED):
            return UNKNOWN
        if self.exceptions:
            # An error of a group as a whole is that of each of its rows.
            whole = (key[0], None, None, None)
            return self.exceptions.get(key) or self.exceptions.get(whole) or ROW_DONE
        if self.outcome == FAILED:
            return failed(self.message)
        return UNKNOWN if self.exceptions is None or self.outcome == UNKNOWN else ROW_DONE


def row_key(row: Any) -> Key:
    if isinstance(row, Outcome):
        return row.key
    if not hasattr(row, "group"):
        return key_of(row)
    # The rows of a rebalance are members, and the group is what was rebalanced.
    member = None if hasattr(row, "method") else getattr(row, "group_instance_id", None)
    member = member or (None if hasattr(row, "method") else getattr(row, "consumer_id", None))
    return (
        row.group,
        getattr(row, "topic", None),
        getattr(row, "partition", None),
        member or getattr(row, "member", None),
    )


def is_uncertain(name: str) -> bool:
    """Whether the error leaves open if the change was made."""
    return name in _UNCERTAIN


def outcome_of(rows: Sequence[Any]) -> tuple[str, str | None]:
    errors: list[RowError] = [row.error for row in rows if row.error is not None]
    if not errors:
        return DONE, None
    uncertain = next((error for error in errors if is_uncertain(error.name)), None)
    if uncertain is not None:
        return UNKNOWN, uncertain.message
    done = any(row.error is None and row.status == ROW_DONE for row in rows)
    return (PARTLY if done else FAILED), errors[0].message


def exceptions_of(rows: Sequence[Any]) -> list[tuple[Key, str]]:
    """The rows that were not done, with what became of them."""
    found: list[tuple[Key, str]] = []
    for row in rows:
        if row.error is not None:
            text = f"{UNKNOWN}: {row.error.message}" if is_uncertain(row.error.name) else failed(row.error.message)
            found.append((row_key(row), text))
        elif row.status == SKIPPED:
            found.append((row_key(row), SKIPPED))
    return found


def failed(message: str | None) -> str:
    return f"{FAILED}: {message}" if message else FAILED
