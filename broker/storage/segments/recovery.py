"""Recovery at the start: compare segment files with what the store lists, and read the tails that it does not list.

Whole valid batches beyond the checkpoint of a partition are kept, as they may have been acknowledged; they are synced
and listed. What follows them is a torn write and is cut, unless the synced end proves that it was acknowledged. A batch
that begins or ends a transaction is cut, too: its commit, which would have moved the checkpoint past it, never was.

Nothing on disk changes before all partitions of a batch are checked, so a start that is refused leaves the evidence.
Each batch of partitions is committed, so the next start continues where one was killed.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable

from broker.protocol.record_batch import HEADER_BYTES, BatchHeader, parse_header
from broker.storage.errors import DamageError
from broker.storage.segments.attempt import Attempt
from broker.storage.segments.end_checks import CheckedEnds
from broker.storage.segments.leftovers import DAMAGED_SUFFIX, damaged_files, note_damaged_file
from broker.storage.segments.partition import SegmentPartition
from broker.storage.segments.partition_table import mark_beyond_checkpoint
from broker.storage.segments.put_back import PutBack
from broker.storage.segments.rebuild import SEGMENT_NAME, Rebuild
from broker.storage.segments.repair import refuse, short_segments
from broker.storage.segments.restore import Restoration, skip_producer_ids
from broker.storage.segments.shared import Shared
from broker.storage.segments.split_transactions import commit_alike
from broker.storage.segments.survey import Source, whole_batches
from broker.storage.segments.synced_ends import SyncedEnd
from broker.storage.store.catalog import Catalog, Topic

# A sign of life for whoever waits for the start (see log_file.py).
progress = logging.getLogger("broker.progress")

logger = logging.getLogger(__name__)

PARTITIONS_PER_COMMIT = 500
PROGRESS_SECONDS = 1.0


class Recovery:
    """One start. `begin` runs before the first change, `commit` after each batch of partitions."""

    def __init__(
        self,
        shared: Shared,
        catalog: Catalog,
        open_partition: Callable[[Topic, int], SegmentPartition],
        commit: Callable[[], None],
    ) -> None:
        self._shared = shared
        self._catalog = catalog
        self._topics = catalog.topics
        self._open_partition = open_partition
        self._commit = commit
        self._ends = CheckedEnds(shared, catalog.topics)
        self._shown_at = time.monotonic()
        self._has_begun = False
        self._attempt: Attempt | None = None

    def run(self) -> list[str]:
        """Check all partitions; describe those that were being written to when the last run ended.

        DamageError: a segment file is missing or truncated, or acknowledged records are damaged, and losses are not
        accepted.
        """
        shared = self._shared
        shared.policies = {}
        short = short_segments(shared, self._topics, self._ends)
        if short and shared.store.evidence.binding and not shared.accept_loss:
            raise refuse(short)
        evidence = shared.store.evidence
        if shared.accept_loss or short or evidence.losses:
            recovered = self._rebuild(short=bool(short))
        else:
            try:
                self._check_sealed_ends()
                recovered = self._recover_tails()
            except DamageError:
                if evidence.binding:
                    raise
                recovered = self._rebuild(short=True)
        if self._attempt is None:
            self._begin()
        return recovered

    def _begin(self) -> None:
        """All checks passed: the files of an older format are replaced, and those that are missing are written."""
        if not self._has_begun:
            self._has_begun = True
            self._shared.store.evidence.begin()
            self._ends.begin()

    def end(self) -> None:
        """Everything is committed. What was rebuilt has its evidence only now: until then, it counts as damaged."""
        self._shared.policies = None
        if self._attempt is not None:
            self._ends.begin()
            self._attempt.end()
        self._shared.store.evidence.end()
        self._shared.ends.forget_start()

    def _open(self, number: int) -> SegmentPartition | None:
        listed = self._ends.listed[number]
        topic = self._topics.by_id(listed.topic_id)
        return self._open_partition(topic, listed.partition) if topic is not None else None

    # -- with accepted losses

    def _rebuild(self, *, short: bool) -> list[str]:
        """Read all segments, and list every whole batch that is on disk, in one commit."""
        shared = self._shared
        shared.store.evidence.begin()
        self._ends.begin_early()
        self._attempt = attempt = Attempt(shared)
        PutBack(shared, self._topics).run()
        Restoration(shared, self._catalog, self._ends).run()
        rebuilt: list[str] = []
        rebuilds: list[Rebuild] = []
        is_short = short and bool(short_segments(shared, self._topics, self._ends))
        owners, is_exact = self._ends.owners, self._ends.are_exact and not is_short
        for number, listed in list(self._ends.listed.items()):
            partition = self._open(number)
            if partition is None:
                continue
            rebuild = Rebuild(
                partition,
                shared,
                self._ends.of(number),
                self._ends.slots_of(number),
                owners,
                attempt,
                self._show,
                is_exact=is_exact,
                has_all_commits=self._ends.has_all_commits,
            )
            changed = rebuild.run()
            if changed:
                rebuilds.append(rebuild)
            if listed.is_beyond_checkpoint:
                mark_beyond_checkpoint(shared.store, number, False)
            if changed or listed.is_beyond_checkpoint:
                rebuilt.append(f"{partition.name} up to offset {partition.log_end_offset}")
        if shared.store.evidence.lost_commits:
            skip_producer_ids(shared.store)
        for rebuild in rebuilds:
            rebuild.announce()
        commit_alike(partition for number in self._ends.listed if (partition := self._open(number)) is not None)
        return rebuilt

    def _show(self, path: str) -> None:
        if time.monotonic() - self._shown_at >= PROGRESS_SECONDS:
            self._shown_at = time.monotonic()
            progress.info("reading all segments: now %s", path)

    # -- active segments

    def _check_sealed_ends(self) -> None:
        """Active segments that the store lists completely end with the batch that their synced end names."""
        for number, listed in self._ends.listed.items():
            if not listed.is_beyond_checkpoint and not listed.has_trailer:
                partition, end = self._open(number), self._ends.of(number)
                if partition is not None and end is not None:
                    _check_listed(partition, end, self._shared)
                    _check_last_batch(partition, end)

    def _recover_tails(self) -> list[str]:
        recovered: list[str] = []
        damaged = damaged_files(self._shared)
        numbers = self._ends.to_scan()
        for first in range(0, len(numbers), PARTITIONS_PER_COMMIT):
            partitions = []
            for number in numbers[first : first + PARTITIONS_PER_COMMIT]:
                partition = self._open(number)
                if partition is not None:
                    end = self._ends.of(number)
                    partitions.append((partition, end, _scan(partition, end, self._shared)))
            self._begin()
            for partition, end, headers in partitions:
                for header in headers:
                    partition.transactions.note(header)
                _settle(partition, end, self._shared, damaged)
                recovered.append(f"{partition.name} up to offset {partition.log_end_offset}")
            self._commit()
            if len(numbers) > PARTITIONS_PER_COMMIT:
                progress.info("recovered %d of %d partitions", len(recovered), len(numbers))
        return recovered


def _scan(partition: SegmentPartition, end: SyncedEnd | None, shared: Shared) -> list[BatchHeader]:
    """Find the end of one partition that was being written to; return the batches of producers that it has there.

    Nothing changes on disk.
    """
    if end is not None:
        _check_listed(partition, end, shared)
    if not partition.segments:
        return []
    active = partition.active
    transactions = partition.transactions
    tail = active.scan_tail(transactions.changes_open_transactions)
    headers = [batch.header for batch in tail if batch.header.producer_id >= 0]
    if end is None:
        return headers
    if end.end_offset > active.end_offset:
        raise DamageError(
            f"{active.path} is damaged or truncated at position {active.size_bytes}: not all acknowledged records of"
            f" {partition.name}, offsets {active.end_offset} to {end.end_offset - 1}, are there"
        )
    _check_last_batch(partition, end)
    return headers


def _check_listed(partition: SegmentPartition, end: SyncedEnd, shared: Shared) -> None:
    if not partition.segments and end.end_offset > 0:
        raise DamageError(
            f"{shared.store.path} lists no segment of {partition.name}: offsets up to {end.end_offset - 1} are lost"
        )


def _check_last_batch(partition: SegmentPartition, end: SyncedEnd) -> None:
    """The active segment must have the batch that the synced end names: else it is another file, or an older one."""
    if not end.last_size or not partition.segments:
        return
    active = partition.active
    if end.base_offset != active.base_offset or end.position > active.size_bytes:
        return
    head = active.file().read(HEADER_BYTES, end.position - end.last_size)
    if len(head) == HEADER_BYTES:
        header = parse_header(head)
        if (header.size_bytes, header.next_offset, header.crc) == (end.last_size, end.end_offset, end.last_crc):
            return
    raise DamageError(
        f"{active.path} is damaged or was replaced: it does not have the acknowledged batch of {partition.name} that"
        f" ends at offset {end.end_offset - 1}"
    )


def _settle(partition: SegmentPartition, end: SyncedEnd | None, shared: Shared, damaged: set[str]) -> None:
    """Cut what is torn, sync the rest, and write the checkpoint of one scanned partition to the transaction."""
    if not partition.segments:
        # Its first append was never flushed.
        mark_beyond_checkpoint(shared.store, partition.partition_id, False)
        return
    active = partition.active
    is_cut = active.cut_remains()
    is_synced = shared.store.evidence.was_synced and end is not None and end.end_offset == active.end_offset
    if is_cut or not is_synced:
        shared.files.sync(active.file())
    _remove_unlisted(partition, shared, damaged)
    partition.checkpoint(complete=True)
    partition.advance()


def _remove_unlisted(partition: SegmentPartition, shared: Shared, damaged: set[str]) -> None:
    """Remove files that the store does not list: leftovers of a roll or a compaction that was never flushed."""
    known = {os.path.basename(path) for s in partition.segments for path in (s.path, s.index_path)}
    for name in os.listdir(partition.directory):
        path = os.path.join(partition.directory, name)
        if name in known or name.endswith(DAMAGED_SUFFIX) or path in damaged:
            continue
        if _has_records_behind(partition, shared, name):
            # Never acknowledged, unless all files but the segments are older copies.
            note_damaged_file(shared, path)
            logger.warning("%s is not listed by the store; it is kept as %s%s", path, name, DAMAGED_SUFFIX)
        else:
            shared.files.unlink(path)


def _has_records_behind(partition: SegmentPartition, shared: Shared, name: str) -> bool:
    """Whether this is a segment file behind the active one that has a whole batch."""
    match = SEGMENT_NAME.fullmatch(name)
    if match is None or int(match[1]) <= partition.active.base_offset:
        return False
    source = Source(partition.place, int(match[1]), int(match[2] or 0), acknowledged_until=0)
    return next(whole_batches(shared.files, source), None) is not None
