"""`python -m tests.kgctl.pipelines.replay.dying STEP WHEN COUNT ARGUMENT...`: kgctl, which dies by SIGKILL in a replay.

It dies right before or after (WHEN) its COUNT-th call of STEP, a method such as `Target.send`. Transactions are short.
"""

from __future__ import annotations

import functools
import os
import signal
import sys
from collections.abc import Callable
from typing import Any

from kgctl.__main__ import main
from kgctl.client.producer.counting import CountingProducer
from kgctl.client.producer.producer import Producer
from kgctl.pipelines.replay import running
from kgctl.pipelines.replay.log import ReplayLog
from kgctl.pipelines.replay.sending import Replay, Target

OWNERS = {one.__name__: one for one in (Target, ReplayLog, Producer, CountingProducer)}


def die_at(owner: type[Any], name: str, when: str, count: int) -> None:
    original: Callable[..., Any] = getattr(owner, name)
    calls = 0

    def called(*arguments: Any, **options: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == count and when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        found = original(*arguments, **options)
        if calls == count:
            if isinstance(arguments[0], Target):
                # The records of the open transaction are at the broker.
                arguments[0].producer.flush()
            os.kill(os.getpid(), signal.SIGKILL)
        return found

    setattr(owner, name, called)


if __name__ == "__main__":
    step, when, count, *sys.argv[1:] = sys.argv[1:]
    owner, _, name = step.partition(".")
    die_at(OWNERS[owner], name, when, int(count))
    running.Replay = functools.partial(Replay, most_records=10)
    main()
