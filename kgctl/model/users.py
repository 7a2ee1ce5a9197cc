"""Rows about SCRAM users."""

from __future__ import annotations

from broker.light_dataclasses import dataclass
from kgctl.model.changes import PLANNED
from kgctl.model.failure import RowError


@dataclass(frozen=True, slots=True)
class UserRow:
    """One SCRAM credential of a user. Without a mechanism, a user that does not exist."""

    user: str
    mechanism: str | None
    iterations: int | None = None
    error: RowError | None = None


@dataclass(frozen=True, slots=True)
class UserChange:
    """A credential to set or delete, set or deleted."""

    user: str
    mechanism: str | None
    iterations: int | None = None
    status: str = PLANNED
    error: RowError | None = None
