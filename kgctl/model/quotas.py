"""Rows about client quotas, and about their changes."""

from __future__ import annotations

from broker.light_dataclasses import dataclass
from kgctl.model.changes import PLANNED
from kgctl.model.failure import RowError

# Kafka's name for the entity that has no quota of its own.
DEFAULT = "<default>"


@dataclass(frozen=True, slots=True)
class QuotaRow:
    """A quota of a user, a client id, both together, or an IP address. "<default>": of all that have none of their own."""

    user: str | None
    client_id: str | None
    ip: str | None
    quota: str
    value: float


@dataclass(frozen=True, slots=True)
class QuotaChange:
    """A quota to set, or to remove (`new_value` None)."""

    user: str | None
    client_id: str | None
    ip: str | None
    quota: str | None
    old_value: float | None
    new_value: float | None
    status: str = PLANNED
    error: RowError | None = None
