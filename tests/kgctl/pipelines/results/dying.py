"""A program whose children deliver verdicts to a sink, and die by SIGKILL at a step of the delivery.

It forks one child for each line of its standard input, and prints when the child has ended. A line is a JSON list: folder,
sink, address of the broker, step, "before" or "after", and which call of the step.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import traceback
from pathlib import Path
from typing import Any

# Also what only a delivery imports: children need not.
from kgctl.client.producer.counting import CountingProducer
from kgctl.pipelines.results import delivery, kafka, notices, prometheus, webhook
from kgctl.pipelines.settings import RunSettings
from tests.kgctl.pipelines.killing import die_at

STEPS: dict[str, tuple[Any, str]] = {
    "note": (notices, "replace_file"),
    "record": (kafka.CountingProducer, "send"),
    "flush": (kafka.CountingProducer, "flush"),
    "request": (webhook, "_send"),
    "file": (prometheus, "replace_file"),
    "rename": (os, "replace"),
}


def complete(arguments: tuple[Any, ...]) -> None:
    """Bring the records up to this one to the broker."""
    if isinstance(arguments[0], CountingProducer):
        CountingProducer.flush(arguments[0])


def deliver(out: Path, sink: str, bootstrap: str) -> None:
    settings = RunSettings(("evaluate",), bootstrap, str(out), sinks=(sink,), timeout_s=60.0)
    one = delivery.Delivery(settings, "cluster-1", lambda event: print(event.text, file=sys.stderr), threading.Event())
    one.after_round()
    one.conclude()


def main() -> None:
    for line in sys.stdin:
        out, sink, bootstrap, step, when, nth = json.loads(line)
        child = os.fork()
        if not child:
            try:
                if step:
                    die_at(*STEPS[step], when, nth, complete)
                deliver(Path(out), sink, bootstrap)
                os._exit(0)
            except BaseException:  # noqa: BLE001  (shown, and the child must end here)
                traceback.print_exc()
                os._exit(1)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    main()
