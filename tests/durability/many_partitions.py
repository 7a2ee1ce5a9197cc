"""Starts after kill -9 with many partitions that were being written to."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

from broker.local import LocalBroker
from tests.durability.parts import Violation
from tests.harness.stores import append, open_log, topic_log

PARTITIONS, PER_TOPIC = 20_000, 1000
START_WITHIN_S = 5.0


def run(directory: Path, seed: int, rounds: int, report: Callable[[str], None]) -> dict[str, object]:
    """Each round starts a broker on a copy of one directory."""
    written(directory / "written")
    random, durations = Random(seed), []
    for number in range(rounds):
        copy = directory / f"round{number}"
        shutil.copytree(directory / "written", copy)
        broker = LocalBroker(data_dir=copy)
        started = time.monotonic()
        with broker:
            durations.append(time.monotonic() - started)
            broker.kill()
        report(f"round {number}: started in {durations[-1]:.1f} s")
        check(copy, random)
        shutil.rmtree(copy)
    if min(durations) > START_WITHIN_S:
        raise Violation(f"round 0: the fastest of {rounds} starts took {min(durations):.1f} s")
    return {"partitions": PARTITIONS, "fastest start (s)": round(min(durations), 2), "rounds": rounds}


def written(path: Path) -> None:
    log = open_log(path, max_open_segments=256)
    for topic in range(PARTITIONS // PER_TOPIC):
        log.create_topic(f"t{topic}", PER_TOPIC, {})
        for index in range(PER_TOPIC):
            append(topic_log(log, f"t{topic}", index), b"x" * 100)
        log.flush()
    log.close(clean=False)


def check(path: Path, random: Random) -> None:
    log = open_log(path)
    for _ in range(500):
        name, index = f"t{random.randrange(PARTITIONS // PER_TOPIC)}", random.randrange(PER_TOPIC)
        if topic_log(log, name, index).log_end_offset != 1:
            raise Violation(f"round 0: {name}-{index} ends at {topic_log(log, name, index).log_end_offset}")
    log.close(clean=False)
