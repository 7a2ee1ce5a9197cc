"""A start after a kill, on a store with a million committed offsets."""

from __future__ import annotations

import time
from pathlib import Path

from bench import wire
from bench.wire import Refused
from broker.cores.groups.records import OffsetCommitRecord, to_row
from broker.protocol.messages.offset_fetch import OffsetFetchRequest
from broker.storage import OFFSETS_TOPIC, Log, LogSettings

TOPIC = "bench-recovery"
GROUPS, PARTITIONS = 10_000, 100
COMMITS = GROUPS * PARTITIONS
AT_ONCE = 50


def fill(data_dir: Path, groups: int = GROUPS) -> None:
    """Write a commit of each group for each partition, and leave the store as a kill would."""
    now_ms = time.time_ns() // 1_000_000
    log = Log.open(data_dir, LogSettings(), wall_ms=now_ms)
    log.create_topic(TOPIC, PARTITIONS, {})
    for first in range(0, groups, AT_ONCE):
        log.append_rows(
            OFFSETS_TOPIC,
            [
                to_row(OffsetCommitRecord(_name(number), TOPIC, partition, number, -1, "", now_ms))
                for number in range(first, first + AT_ONCE)
                for partition in range(PARTITIONS)
            ],
        )
        log.flush()
        log.sweep(now_ms)
    log.close(clean=False)


def fetch_one(address: tuple[str, int], number: int = GROUPS // 2) -> None:
    """Fetch all offsets of one group, and check them."""
    group = OffsetFetchRequest.Group(group_id=_name(number), topics=None)
    with wire.connect(address) as sock:
        (found,) = wire.ask(sock, OffsetFetchRequest(groups=[group])).groups
    offsets = {p.partition_index: p.committed_offset for topic in found.topics for p in topic.partitions}
    if offsets != dict.fromkeys(range(PARTITIONS), number):
        raise Refused(f"{len(offsets)} of {PARTITIONS} offsets are equal to the committed ones")


def _name(number: int) -> str:
    return f"bench-group-{number:05}"
