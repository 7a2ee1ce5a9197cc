"""The acknowledged ends of all partitions, from the file synced-ends."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from broker.light_named_tuples import NamedTuple
from broker.storage.file_ops import FileOps
from broker.storage.files import Files
from broker.storage.rescue.salvage import StoredPartition
from broker.storage.segments.old_synced_ends import read_old_ends
from broker.storage.segments.synced_ends import SyncedEnd, SyncedEnds


class AcknowledgedEnds(NamedTuple):
    """By (topic id, partition). Without evidence of its ends, a log ends with its last whole batch."""

    ends: dict[tuple[bytes, int], SyncedEnd]
    warning: str | None


def read_acknowledged_ends(data_dir: Path, partitions: Mapping[int, StoredPartition]) -> AcknowledgedEnds:
    """Read the largest end of each partition, whether the file is of this format or of an older one."""
    file = SyncedEnds(Files(FileOps()), str(data_dir))
    file.load()
    stored = list(file.at_start.values())
    warning = None
    if not file.is_valid:
        # Slots of an older format have a partition's number, and only the store knows whose it is.
        stored += read_old_ends(file.content(), partitions).values()
        warning = f"{file.path} is missing or damaged" if not stored else f"{file.path} is of an older format"
        warning += ": records lost at the end of a partition may go unnoticed"
    found: dict[tuple[bytes, int], SyncedEnd] = {}
    for end in stored:
        key = end.topic_id, end.partition
        if key not in found or found[key].end_offset < end.end_offset:
            found[key] = end
    return AcknowledgedEnds(found, warning)
