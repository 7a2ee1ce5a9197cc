"""One flush for all that wait for it: sync the touched segments, commit one transaction, then move high watermarks.

The first failure is final (see failure.py): what reached the disk is unknown, so no later success may be reported.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from broker.storage.errors import StorageError
from broker.storage.failure import Failure
from broker.storage.files import Files
from broker.storage.rows.row_topic import RowTopic
from broker.storage.segments.pending import Pending
from broker.storage.segments.synced_ends import SyncedEnds
from broker.storage.store.database import Store

ENDS_SYNC_SECONDS = 1.0


class Flush:
    """The only code that makes appends and changes durable."""

    def __init__(
        self,
        store: Store,
        files: Files,
        row_topics: Sequence[RowTopic],
        pending: Pending,
        ends: SyncedEnds,
        failure: Failure,
    ) -> None:
        self._store = store
        self._files = files
        self._row_topics = row_topics
        self._pending = pending
        self._ends = ends
        self._failure = failure
        self._ends_synced_at = time.monotonic()
        self.count = 0  # of flushes so far

    @property
    def dirty(self) -> bool:
        # Asked for every answer that leaves, hence attributes rather than calls.
        pending = self._pending
        if self._store.dirty or pending.written or pending.doomed or pending.doomed_trees:
            return True
        for topic in self._row_topics:  # noqa: SIM110 (half the time of any())
            if topic.pending:
                return True
        return False

    def run(self) -> None:
        """Make everything that was appended or changed durable."""
        self._failure.check()
        if not self.dirty:
            return
        spares = self._files.spares
        spares.lent = True
        try:
            for topic in self._row_topics:
                topic.before_flush()
            self._pending.sync()
            written = list(self._pending.written)
            for partition in written:
                partition.synced()
            if self._ends.must_sync:
                self._ends.sync_slots()
            self._store.commit()
            # Before any high watermark moves: nothing is visible or acknowledged once the directory is gone.
            self._files.ops.check_directory()
            self._pending.written.clear()
            for partition in written:
                self._ends.write(*partition.flushed())
            for partition_id in self._pending.dropped_partitions:
                self._ends.clear(partition_id)
            self._pending.dropped_partitions.clear()
            if time.monotonic() - self._ends_synced_at >= ENDS_SYNC_SECONDS:
                self.sync_ends()
            self._pending.remove_doomed()
        except StorageError as error:
            self._failure.remember(error)
            raise
        finally:
            spares.lent = False
        for topic in self._row_topics:
            topic.after_flush()
        self.count += 1

    def sync_ends(self) -> None:
        """Sync the synced ends, which each flush only writes."""
        self._ends_synced_at = time.monotonic()
        if self._ends.unsynced:
            evidence = self._store.evidence
            evidence.ends_synced(self._ends.sync(evidence.last_commit))
