"""Compares one partition of an archive with one of a cluster, and says why records are gone that the cluster no longer has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as compute

from kgctl.client.admin.admin import Admin
from kgctl.client.admin.offsets import EARLIEST, LATEST, list_offsets
from kgctl.client.consumer.fetching.options import FetchOptions
from kgctl.client.net.connector import ConnectionSettings
from kgctl.client.net.errors import KgctlError
from kgctl.model.items import StoredTopic
from kgctl.model.pipelines import ArchiveFindingRow
from kgctl.model.topic_partition import TopicPartition
from kgctl.pipelines.archive.files import FILE_SCHEMA, read_records
from kgctl.pipelines.archive.manifest import Archive
from kgctl.pipelines.archive.verifying import finding
from kgctl.pipelines.source.losses import DataLoss
from kgctl.pipelines.source.options import SPARK_FETCH
from kgctl.pipelines.source.ranges import OffsetRange
from kgctl.pipelines.source.reading import ReadTask, read_range
from kgctl.pipelines.source.record_columns import record_batches
from kgctl.watch.figures import counted_are

MISSING_TOPIC, OTHER_TOPIC, SHORT_LOG = "missing topic", "other topic", "log ends early"
LOST, DIFFERENT, EXTRA = "lost", "different", "not archived"
DELETED, COMPACTED = "deleted by retention", "compacted away"
_COMMITTED = "read_committed"
_ARCHIVED = "archived record"
# How often retention may move the start of a log while it is read.
_ATTEMPTS = 5


class Partition:
    """One partition: its records in the archive and on the cluster, side by side in offset order."""

    def __init__(
        self,
        archive: Archive,
        partition: TopicPartition,
        topic: StoredTopic,
        connection: ConnectionSettings,
        admin: Admin,
    ) -> None:
        self._archive, self._partition, self._connection, self._admin = archive, partition, connection, admin
        self._start, self._end = archive.spans[partition]
        policies = {one.value for one in topic.configs or () if one.name == "cleanup.policy"}
        self._is_compacted = any("compact" in policy for policy in policies)
        self._exists = partition.partition < topic.partitions
        self._read_level(committed_only=archive.isolation_level == _COMMITTED)

    def _read_level(self, *, committed_only: bool) -> None:
        self._committed_only = committed_only
        self._fetch: FetchOptions = replace(SPARK_FETCH, committed_only=committed_only)

    def findings(self) -> Iterator[ArchiveFindingRow]:
        if not self._exists:
            yield finding(MISSING_TOPIC, "the cluster has no such partition", self._partition)
            return
        for attempt in range(_ATTEMPTS):
            log_start, log_end = self._bounds()
            try:
                rows = list(self._compared(log_start, log_end))
            except DataLoss:
                if attempt == _ATTEMPTS - 1:
                    raise
            else:
                yield from rows
                return

    def _compared(self, log_start: int, log_end: int) -> Iterator[ArchiveFindingRow]:
        start, end = max(self._start, min(log_start, self._end)), min(self._end, log_end)
        if start > self._start:
            gone = sum(batch.num_rows for batch in self._archived(self._start, start))
            if gone:
                yield self._info(
                    DELETED, f"{counted_are(gone, _ARCHIVED)} no longer on the cluster", self._start, start
                )
        if log_end < self._end:
            at = max(log_end, start)
            count = sum(batch.num_rows for batch in self._archived(at, self._end))
            detail = f"the log ends at {log_end}: {counted_are(count, _ARCHIVED)} not on the cluster"
            yield self._fault(SHORT_LOG, detail, at, self._end)
        if start < end:
            yield from self._both(start, end, log_end)

    def _both(self, start: int, end: int, log_end: int) -> Iterator[ArchiveFindingRow]:
        """Of the offsets that both may have."""
        lost, differences, extra = LostRecords(self._is_compacted), Offsets(), Offsets()
        for ours, theirs in _aligned(self._archived(start, end), self._stored(start, end)):
            lost.pass_over(ours, theirs)
            differences.add(_different(*self._comparable(ours, theirs)))
            extra.add(_only_in(theirs, ours))
        if lost.is_searching and end < log_end:
            lost.search(self._stored(end, log_end), log_end - end)
        if lost.compacted:
            detail = f"{counted_are(lost.compacted, _ARCHIVED)} no longer on the cluster, which has newer ones with their keys"
            yield self._info(COMPACTED, detail, start, end)
        if lost.deleted.count:
            detail = (
                f"{counted_are(lost.deleted.count, _ARCHIVED)} no longer on the cluster; tombstones may explain it, which are "
                "written after the archive and compacted away too"
            )
            yield self._info(COMPACTED, detail, lost.deleted.first, lost.deleted.last + 1)
        gone = lost.offsets()
        if gone.count:
            detail = f"{counted_are(gone.count, _ARCHIVED)} not on the cluster"
            yield self._fault(LOST, detail, gone.first, gone.last + 1)
        if differences.count:
            detail = f"{counted_are(differences.count, 'record')} not the same on the cluster"
            yield self._fault(DIFFERENT, detail, differences.first, differences.last + 1)
        if extra.count:
            detail = f"{counted_are(extra.count, 'record')} on the cluster but not in the archive"
            yield self._not_archived(detail, extra.first, extra.last + 1)

    # What a replay changes is here: the offsets below are those of the cluster.

    def _archived(self, start: int, end: int) -> Iterator[pa.RecordBatch]:
        """Records of the archive with the offsets that they should have on the cluster."""
        return read_records(self._archive, self._partition, start, end)

    def _comparable(self, ours: pa.RecordBatch, theirs: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.RecordBatch]:
        """Both with the columns that must be equal."""
        return ours, theirs

    def _fault(self, name: str, detail: str, start: int, end: int) -> ArchiveFindingRow:
        return finding(name, detail, self._partition, start, end)

    def _not_archived(self, detail: str, start: int, end: int) -> ArchiveFindingRow:
        return finding(EXTRA, detail, self._partition, start, end)

    def _info(self, name: str, detail: str, start: int, end: int) -> ArchiveFindingRow:
        return replace(self._fault(name, detail, start, end), ok=None)

    def _bounds(self) -> tuple[int, int]:
        """The start of the log, and its end for a reader like the one that wrote the archive."""
        found = []
        for where in (EARLIEST, LATEST):
            wanted = list_offsets(self._admin.cluster, {self._partition: where}, committed_only=self._committed_only)
            answer = self._admin.run(wanted)[self._partition]
            if isinstance(answer, KgctlError):
                raise answer
            found.append(answer.offset)
        return found[0], found[1]

    def _stored(self, start: int, end: int) -> Iterator[pa.RecordBatch]:
        task = ReadTask(
            self._connection, OffsetRange(self._partition, start, end), self._fetch, columns=tuple(FILE_SCHEMA.names)
        )
        for fetched in read_range(task):
            yield from record_batches(fetched, task.columns)


class Offsets:
    """How many offsets, and the first and the last of them."""

    def __init__(self) -> None:
        self.count, self.first, self.last = 0, -1, -1

    def add(self, offsets: np.ndarray | Sequence[int]) -> None:
        if len(offsets):
            self.first = int(min(offsets)) if not self.count else min(self.first, int(min(offsets)))
            self.last = max(self.last, int(max(offsets)))
            self.count += len(offsets)


class LostRecords:
    """Archived records that the cluster does not have. Compaction explains one if a later record has its key.

    A tombstone may go without a later record, and a record without a key never. `compacted` counts what is explained,
    `deleted` are records that may be.
    """

    def __init__(self, is_compacted: bool) -> None:
        self._is_compacted = is_compacted
        self._unexplained = Offsets()
        self._searching: dict[bytes | None, int] = {}
        self.compacted = 0
        self.deleted = Offsets()

    @property
    def is_searching(self) -> bool:
        return bool(self._searching)

    def pass_over(self, ours: pa.RecordBatch, theirs: pa.RecordBatch) -> None:
        """Note what is missing in `theirs`, and what later records explain. Batches come in offset order."""
        missing = np.isin(_offsets_of(ours), _offsets_of(theirs), invert=True)
        if not self._is_compacted:
            self._unexplained.add(_offsets_of(ours)[missing])
            return
        if not missing.any():
            self._explain(ours.column("key"))
            return
        rows = zip(ours.column("offset").to_pylist(), ours.column("key"), ours.column("value"), missing, strict=True)
        for offset, key_scalar, value, is_missing in rows:
            key = key_scalar.as_py()
            if key is not None:
                self._pop(key)
            if is_missing and key is None:
                self._unexplained.add([offset])
            elif is_missing and not value.is_valid:
                self.compacted += 1
            elif is_missing:
                self._searching[key] = offset

    def search(self, later: Iterator[pa.RecordBatch], offsets: int) -> None:
        """Explain the rest with the records behind the archive, which have this many offsets.

        If some of these have no record, a tombstone may have been there that removed what is still not explained.
        """
        for batch in later:
            offsets -= batch.num_rows
            self._explain(batch.column("key"))
            if not self._searching:
                return
        if offsets > 0:
            self.deleted.add(list(self._searching.values()))
            self._searching = {}

    def offsets(self) -> Offsets:
        """Those that nothing explains."""
        self._unexplained.add(list(self._searching.values()))
        self._searching = {}
        return self._unexplained

    def _explain(self, keys: pa.Array) -> None:
        if not self._searching:
            return
        if len(self._searching) < len(keys):
            wanted = pa.array(list(self._searching), pa.binary())
            keys = compute.filter(keys, compute.is_in(keys, value_set=wanted))
        for key in keys.unique().to_pylist():
            self._pop(key)

    def _pop(self, key: bytes | None) -> None:
        self.compacted += 1 if self._searching.pop(key, None) is not None else 0


def _aligned(
    ours: Iterator[pa.RecordBatch], theirs: Iterator[pa.RecordBatch]
) -> Iterator[tuple[pa.RecordBatch, pa.RecordBatch]]:
    """Pairs of batches that cover the same offsets; one of them may be empty."""
    empty = pa.RecordBatch.from_pylist([], schema=FILE_SCHEMA)
    left, right = next(ours, None), next(theirs, None)
    while left is not None or right is not None:
        ends = [int(_offsets_of(batch)[-1]) for batch in (left, right) if batch is not None]
        until = min(ends)
        parts = []
        for batch in (left, right):
            count = 0 if batch is None else int(np.searchsorted(_offsets_of(batch), until, side="right"))
            parts.append(empty if batch is None else batch.slice(0, count))
        if left is not None:
            left = _rest(left, parts[0].num_rows, ours)
        if right is not None:
            right = _rest(right, parts[1].num_rows, theirs)
        yield parts[0], parts[1]


def _rest(batch: pa.RecordBatch, used: int, source: Iterator[pa.RecordBatch]) -> pa.RecordBatch | None:
    return batch.slice(used) if used < batch.num_rows else next(source, None)


def _different(ours: pa.RecordBatch, theirs: pa.RecordBatch) -> list[int]:
    """The offsets that both have, with other content."""
    if not ours.num_rows or not theirs.num_rows:
        return []
    if _offsets_of(ours).shape != _offsets_of(theirs).shape or not (_offsets_of(ours) == _offsets_of(theirs)).all():
        common = np.intersect1d(_offsets_of(ours), _offsets_of(theirs), assume_unique=True)
        ours = ours.filter(pa.array(np.isin(_offsets_of(ours), common)))
        theirs = theirs.filter(pa.array(np.isin(_offsets_of(theirs), common)))
    if ours.equals(theirs):
        return []
    offsets = _offsets_of(ours).tolist()
    return [offset for at, offset in enumerate(offsets) if not ours.slice(at, 1).equals(theirs.slice(at, 1))]


def _only_in(some: pa.RecordBatch, others: pa.RecordBatch) -> np.ndarray:
    offsets = _offsets_of(some)
    return offsets[np.isin(offsets, _offsets_of(others), invert=True)]


def _offsets_of(batch: pa.RecordBatch) -> np.ndarray:
    return batch.column("offset").to_numpy()
