"""Rows about changes of features."""

from __future__ import annotations

from broker.light_dataclasses import dataclass
from kgctl.model.changes import PLANNED
from kgctl.model.failure import RowError


@dataclass(frozen=True, slots=True)
class FeatureChange:
    """A feature that gets another finalized level; level 0 disables it. `old_level` is None if no broker supports it."""

    feature: str
    old_level: int | None
    new_level: int
    status: str = PLANNED
    error: RowError | None = None
