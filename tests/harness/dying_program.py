"""`python -m tests.harness.dying_program OPTIONS PROGRAM [METHOD WHEN COUNT]`: run a program that dies by SIGKILL in its work.

OPTIONS are JSON, and come before the program's own options of consumers. The program dies right before or after (WHEN) its COUNT-th
call of METHOD, such as `Consumer.commit`, that follows a poll with records.
"""

from __future__ import annotations

import json
import os
import runpy
import signal
import sys
from collections.abc import Callable, Mapping
from typing import Any

import kgctl


class _Consumer(kgctl.Consumer):
    has_records = False
    given: Mapping[str, Any] = {}

    def __init__(self, **options: Any) -> None:
        super().__init__(**{**options, **self.given})

    def poll(self, timeout: float = 1.0) -> list[kgctl.ConsumerRecord]:
        records = super().poll(timeout)
        _Consumer.has_records = bool(records)
        return records


class _Producer(kgctl.Producer):
    pass


def _die_at(owner: type[Any], name: str, when: str, count: int) -> None:
    original: Callable[..., Any] = getattr(owner, name)
    calls = 0

    def called(*arguments: Any, **options: Any) -> Any:
        nonlocal calls
        calls += _Consumer.has_records
        is_last = _Consumer.has_records and calls == count
        if is_last and when == "before":
            _die(arguments[0])
        found = original(*arguments, **options)
        if is_last:
            _die(arguments[0])
        return found

    setattr(owner, name, called)


def _die(client: object) -> None:
    if isinstance(client, kgctl.Producer):
        client.flush()  # the open transaction has its records at the broker
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    options, program, *death = sys.argv[1:]
    _Consumer.given = json.loads(options)
    if death:
        method, when, count = death
        kind, _, name = method.partition(".")
        _die_at({"Consumer": _Consumer, "Producer": _Producer}[kind], name, when, int(count))
    kgctl.Consumer, kgctl.Producer = _Consumer, _Producer  # type: ignore[misc]
    runpy.run_path(program, run_name="__main__")
