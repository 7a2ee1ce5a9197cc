"""After a loss of commits: a transaction that is open in some partitions and committed in others is committed in all.

The store no longer says what the coordinator decided, but markers do. Two partitions have the same transaction if its
epoch is the same and no other transaction has it, as with transaction.version 2. Any other one stays open: it is aborted
once the coordinator has started.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from broker.protocol.control_records import Marker
from broker.storage.segments.partition import SegmentPartition

logger = logging.getLogger(__name__)


def commit_alike(partitions: Iterable[SegmentPartition]) -> list[SegmentPartition]:
    """Write the missing markers of transactions whose commit was replayed; return the partitions, one for each marker."""
    commits: dict[int, tuple[int, int]] = {}
    opened: list[SegmentPartition] = []
    for partition in partitions:
        for producer_id, commit in partition.transactions.commits.items():
            commits[producer_id] = max(commit, commits.get(producer_id, commit))
        if partition.transactions.first_open_offset is not None:
            opened.append(partition)
    written = []
    for partition in opened:
        for producer_id in [producer_id for producer_id in partition.producers.open if producer_id in commits]:
            epoch, timestamp = commits[producer_id]
            if partition.has_open_transaction(producer_id, epoch):
                logger.warning("%s: committed a transaction of producer %d, as elsewhere", partition.name, producer_id)
                partition.append_marker(Marker(producer_id, epoch + 1, 0, True), wall_ms=timestamp)
                written.append(partition)
    return written
