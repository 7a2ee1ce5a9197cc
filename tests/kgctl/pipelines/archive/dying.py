"""A program whose children archive the second half of known logs or join commits, and die before their Nth change of the file
system.

It forks one child for each line of its standard input, "N step|join|join-no-exchange FOLDER", and prints the child's exit code: 9: it died;
0: it finished.
"""

from __future__ import annotations

import copy
import os
import sys
import tempfile
import traceback
from pathlib import Path

from kgctl.model.topic_partition import TopicPartition
from kgctl.pipelines.tables import durable
from tests.kgctl.pipelines.archive.making import NOON_MS, Row
from tests.kgctl.pipelines.archive.model import LogModel, Logs, join, step
from tests.kgctl.pipelines.tables.dying import CHANGES, DIED, TO_WRITE

DAY_MS = 86_400_000


def later(logs: Logs) -> Logs:
    """The same logs with more records."""
    more = copy.deepcopy(dict(logs))
    for one, log in more.items():
        for number in range(4):
            log.append(Row(0, b"k", f"{one} {number}".encode(), NOON_MS + number % 2 * DAY_MS), number % 3)
    return more


LOGS = later({TopicPartition("orders", 0): LogModel(), TopicPartition("other", 0): LogModel()})


def act(folder: Path, nth: int, action: str) -> None:
    left = nth

    def count(event: str, arguments: tuple[object, ...]) -> None:
        nonlocal left
        # Beside a call that only reads, the disk is as it was before.
        if event in CHANGES or (event == "open" and int(str(arguments[2])) & TO_WRITE):
            left -= 1
            if left == 0:
                os._exit(DIED)

    sys.addaudithook(count)
    if "no-exchange" in action:
        durable._renameat2 = lambda *_: False
    if action.startswith("join"):
        join(folder)
    else:
        step(folder, later(LOGS))


def main() -> None:
    # What pyarrow imports at its first use would count as calls.
    with tempfile.TemporaryDirectory() as folder:
        step(Path(folder), LOGS)
        step(Path(folder), later(LOGS))
        join(Path(folder))
    for line in sys.stdin:
        nth, action, folder = line.rstrip("\n").split(" ", 2)
        child = os.fork()
        if not child:
            try:
                act(Path(folder), int(nth), action)
                os._exit(0)
            except BaseException:  # noqa: BLE001  a child must not continue with the loop
                traceback.print_exc()
                os._exit(1)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


if __name__ == "__main__":
    main()
