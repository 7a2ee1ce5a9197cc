"""The order of health words in the report."""

from __future__ import annotations

from kgctl.model.health import EVALUATED, Health

RANKS = {str(status): rank for rank, status in enumerate(EVALUATED)}


def rank(status: str | None) -> int:
    """0 for the worst. A word that only a newer kgctl knows is as little as UNKNOWN; None, no verdict, comes last."""
    return len(RANKS) if status is None else RANKS.get(status, RANKS[Health.UNKNOWN])
