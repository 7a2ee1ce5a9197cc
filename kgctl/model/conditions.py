"""Rows about conditions."""

from __future__ import annotations

from collections.abc import Mapping

from broker.light_dataclasses import dataclass
from kgctl.model.failure import RowError


@dataclass(frozen=True, slots=True)
class ConditionRow:
    """Whether a condition about a group holds.

    `failed` has the smallest parts that do not hold, each with its last values. `values` has the last value of each variable,
    durations in milliseconds, None if not known. After a wait, `waited_ms` is how long it took and `held_ms` how long the
    condition has held at the end.
    """

    group: str
    is_met: bool
    condition: str
    failed: tuple[str, ...] = ()
    values: Mapping[str, int | str | None] | None = None
    waited_ms: int | None = None
    held_ms: int | None = None
    error: RowError | None = None
