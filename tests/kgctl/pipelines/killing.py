"""Kills this process at a call of its own."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from typing import Any


def die_at(
    owner: object, name: str, when: str, nth: int, complete: Callable[[tuple[Any, ...]], object] = lambda _: None
) -> None:
    """Die by SIGKILL before or after (`when`) the nth call of a function of `owner`.

    After a call, `complete` gets its arguments first.
    """
    original: Callable[..., Any] = getattr(owner, name)
    calls = 0

    def called(*arguments: Any, **options: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == nth and when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        found = original(*arguments, **options)
        if calls == nth:
            complete(arguments)
            os.kill(os.getpid(), signal.SIGKILL)
        return found

    setattr(owner, name, called)
