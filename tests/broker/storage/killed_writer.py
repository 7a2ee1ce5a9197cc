"""A child that appends, flushes and prints each flush until it is killed: python -m tests.broker.storage.killed_writer DIR."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from broker.storage import OFFSETS_TOPIC, TopicRow
from tests.harness.stores import NOW, append, batch, open_log, sweep, topic_log

PRODUCER: dict[str, Any] = {"producer_id": 7, "producer_epoch": 0}
SETTINGS: dict[str, Any] = {"segment_bytes": 6000, "compaction_interval_ms": 0}
KEY = b"\0\1\0\1g\0\1t\0\0\0\0"


def main() -> None:
    log = open_log(Path(sys.argv[1]), **SETTINGS)
    plain, compacted = topic_log(log, "plain"), topic_log(log, "compacted", cleanup_policy="compact")
    number = plain.high_watermark
    # A kill between the two appends leaves one log ahead of the other; each continues at its own end.
    ahead = compacted.high_watermark - number
    while True:
        text, other = b"%d" % number, number + ahead
        append(plain, text, base_sequence=number, **PRODUCER)
        append(compacted, (b"key %d" % (other % 5), b"%d" % other))
        log.append_rows(OFFSETS_TOPIC, [TopicRow(number % 50, KEY, text, NOW)])
        log.groups.set_generation_floor("g", number)
        log.flush()
        sys.stdout.write(f"{min(number, other)}\n")
        sys.stdout.flush()
        number += 1
        if number % 40 == 0:
            sweep(log)


def duplicate_of(number: int) -> bytes:
    return batch(b"%d" % number, base_sequence=number, **PRODUCER)


if __name__ == "__main__":
    main()
