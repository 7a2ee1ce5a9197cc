"""A program whose children archive the second half of known logs, and die before their Nth file system call.

It forks one child for each line of its standard input, "N FOLDER", and prints the child's exit code: 9: it died; 0: it
finished.
"""

from __future__ import annotations

import copy
import os
import sys
import tempfile
import traceback
from pathlib import Path

from kgctl.model.topic_partition import TopicPartition
from tests.kgctl.pipelines.archive.making import NOON_MS, Row
from tests.kgctl.pipelines.archive.model import LogModel, Logs, step

CALLS = ("open", "os.", "shutil.", "fcntl.")
DIED = 9
DAY_MS = 86_400_000


def later(logs: Logs) -> Logs:
    """The same logs with more records."""
    more = copy.deepcopy(dict(logs))
    for one, log in more.items():
        for number in range(4):
            log.append(Row(0, b"k", f"{one} {number}".encode(), NOON_MS + number % 2 * DAY_MS), number % 3)
    return more


LOGS = later({TopicPartition("orders", 0): LogModel(), TopicPartition("other", 0): LogModel()})


def archive(folder: Path, nth: int) -> None:
    left = nth

    def count(event: str, _: object) -> None:
        nonlocal left
        if event.startswith(CALLS):
            left -= 1
            if left == 0:
                os._exit(DIED)

    sys.addaudithook(count)
    step(folder, later(LOGS))


def main() -> None:
    # What pyarrow imports at its first use would count as calls.
    with tempfile.TemporaryDirectory() as folder:
        step(Path(folder), LOGS)
    for line in sys.stdin:
        nth, _, folder = line.rstrip("\n").partition(" ")
        child = os.fork()
        if not child:
            try:
                archive(Path(folder), int(nth))
                os._exit(0)
            except BaseException:  # noqa: BLE001  a child must not continue with the loop
                traceback.print_exc()
                os._exit(1)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


if __name__ == "__main__":
    main()
