"""What a consumer does step by step, without waiting: a face carries out the steps, with threads or with await."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TypeAlias, TypeVar

from broker.light_named_tuples import NamedTuple
from kgctl.client.consumer.group.calls import Call

R = TypeVar("R")


class Wait(NamedTuple):
    """Wait without the lock until the condition holds, at the latest until the time; None: without an end."""

    condition: Callable[[], bool]
    until_ms: int | None


# A step is a wait, or code of the application to run without the lock. It is resumed with the time.
Operation: TypeAlias = Generator[Wait | Call, int, R]
