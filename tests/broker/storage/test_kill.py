"""A process killed at any moment loses nothing that flush() acknowledged, and repeats nothing."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

from broker.storage import Appended, Log
from tests.broker.storage.killed_writer import SETTINGS, duplicate_of
from tests.harness.stores import NOW, open_log, stored, topic_log, values

CYCLES = 12


def run_and_kill(path: Path, after_s: float) -> int:
    """The last number that the child acknowledged; -1 if none."""
    child = subprocess.Popen(
        [sys.executable, "-m", "tests.broker.storage.killed_writer", str(path)], stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    with child, child.stdout:
        first = child.stdout.readline()
        time.sleep(after_s)
        child.kill()
        # A line that the kill cut short does not count.
        lines = [first, *child.stdout]
    finished = [int(line) for line in lines if line.endswith("\n")]
    return finished[-1] if finished else -1


def check(log: Log, acknowledged: int) -> None:
    assert log.losses == []
    plain = topic_log(log, "plain")
    found = values(plain)
    assert found == [(number, b"%d" % number) for number in range(len(found))]
    count = plain.high_watermark
    assert count > acknowledged
    newest = {record.key: record.value for record in stored(topic_log(log, "compacted"))}
    offset = topic_log(log, "compacted").high_watermark
    assert offset > acknowledged
    assert newest == {b"key %d" % (n % 5): b"%d" % n for n in range(max(0, offset - 5), offset)}
    assert log.groups.generation_floors()["g"] >= acknowledged
    assert int(log.groups.offset_rows("g")[0].value or b"") == log.groups.generation_floors()["g"]
    last = plain.append(duplicate_of(count - 1), wall_ms=NOW)
    assert isinstance(last, Appended)
    assert (last.duplicate, last.base_offset) == (True, count - 1)


def test_a_kill_loses_nothing_acknowledged(tmp_path: Path) -> None:
    randomness = random.Random(11)
    for _ in range(CYCLES):
        acknowledged = run_and_kill(tmp_path, randomness.uniform(0, 0.25))
        log = open_log(tmp_path, **SETTINGS)
        check(log, acknowledged)
        log.close(clean=False)
    assert acknowledged > 50
