"""Pauses between attempts, which grow and differ between clients (KIP-144, KIP-580)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from random import Random

JITTER = 0.2
_MOST_DOUBLINGS = 30


def backoff_ms(initial_ms: int, max_ms: int, failures: int, random: Random) -> int:
    """The pause after `failures` earlier failures: doubled for each of them, up to `max_ms`, and up to 20 % more or less."""
    longest = max(initial_ms, max_ms)
    term = min(initial_ms << min(failures, _MOST_DOUBLINGS), longest)
    return min(longest, int(term * random.uniform(1 - JITTER, 1 + JITTER)))
