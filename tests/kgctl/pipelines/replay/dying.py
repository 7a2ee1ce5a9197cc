"""`python -m tests.kgctl.pipelines.replay.dying STEP WHEN COUNT ARGUMENT...`: kgctl, which dies by SIGKILL in a replay.

It dies right before or after (WHEN) its COUNT-th call of STEP, a method such as `Target.send`. Transactions are short.
"""

from __future__ import annotations

import functools
import sys
from typing import Any

from kgctl.__main__ import main
from kgctl.client.producer.counting import CountingProducer
from kgctl.client.producer.producer import Producer
from kgctl.pipelines.replay import running
from kgctl.pipelines.replay.log import ReplayLog
from kgctl.pipelines.replay.sending import Replay, Target
from tests.kgctl.pipelines.killing import die_at

OWNERS = {one.__name__: one for one in (Target, ReplayLog, Producer, CountingProducer)}


def complete(arguments: tuple[Any, ...]) -> None:
    """Bring the records of the open transaction to the broker."""
    if isinstance(arguments[0], Target):
        arguments[0].producer.flush()


if __name__ == "__main__":
    step, when, count, *sys.argv[1:] = sys.argv[1:]
    owner, _, name = step.partition(".")
    die_at(OWNERS[owner], name, when, int(count), complete)
    running.Replay = functools.partial(Replay, most_records=10)
    main()
