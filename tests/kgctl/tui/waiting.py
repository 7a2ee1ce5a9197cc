"""Waits for a condition, with a time limit."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable


async def until(condition: Callable[[], object], within_s: float = 10.0) -> None:
    """Yield to the event loop until the condition holds; AssertionError if it does not hold in time."""
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline, "the condition did not hold in time"
        await asyncio.sleep(0.01)
