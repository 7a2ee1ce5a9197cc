"""Waiting for what a dashboard shows, with a bound."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable


async def until(condition: Callable[[], object], within_s: float = 10.0) -> None:
    """Give the event loop to others until the condition holds; AssertionError if it does not in time."""
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline, "it did not come to that"
        await asyncio.sleep(0.01)
