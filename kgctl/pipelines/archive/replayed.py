"""Compares what a replay has written with the archive. Records have other offsets there, which the replay has kept."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from kgctl.client.admin.admin import Admin
from kgctl.client.net.errors import KgctlError, Precondition
from kgctl.model.items import StoredTopic
from kgctl.model.pipelines import ArchiveFindingRow
from kgctl.model.topic_partition import TopicPartition
from kgctl.pipelines.archive.files import FILE_SCHEMA, read_records
from kgctl.pipelines.archive.manifest import Archive
from kgctl.pipelines.archive.side_by_side import EXTRA, LOST, SHORT_LOG, Offsets, Partition
from kgctl.pipelines.archive.verifying import finding
from kgctl.pipelines.replay.kept import KeptReplay, kept_replays
from kgctl.pipelines.replay.log import FOLDER
from kgctl.pipelines.replay.offset_map import Stretch
from kgctl.watch.figures import counted, counted_are

_NO_TIME_US, _LOG_APPEND_TIME = -1000, 1
_TIMESTAMP, _TYPE, _OFFSET = (FILE_SCHEMA.get_field_index(name) for name in ("timestamp", "timestampType", "offset"))


class Replays:
    """The replays of an archive to a cluster."""

    def __init__(
        self, archive: Archive, state: Path | None, admin: Admin, topics: Mapping[str, StoredTopic | KgctlError | None]
    ) -> None:
        self._archive, self._admin = archive, admin
        self.folder = state or archive.folder / FOLDER
        self._counts = {name: one.partitions for name, one in topics.items() if isinstance(one, StoredTopic)}
        self._all = kept_replays(self.folder, archive.cluster_id, admin.cluster_id())
        self._settled: dict[str, KgctlError | None] = {}

    def of(self, topic: str) -> KeptReplay | None:
        """The replay that has written a topic under its own name; None if there is none.

        Raises Precondition if its records cannot be compared, or a transaction of the replay is open; KgctlError if the cluster
        cannot be asked how far the replay is.
        """
        some = [one for one in self._all if one.settings.sources.get(topic) == topic]
        whole = [one for one in some if one.settings.chosen.is_empty and not one.settings.by_key]
        if some and not whole:
            raise Precondition(
                f"topic {topic!r} cannot be compared: its replay {some[0].short_id} chose records, or their partitions, by key or "
                "time; only a replay of all records into the same partitions can be compared"
            )
        for one in whole:
            if one.id not in self._settled:
                self._settled[one.id] = None
                try:
                    one.settle(self._admin, self._archive, self._counts)
                except KgctlError as error:
                    self._settled[one.id] = error
            if (refused := self._settled[one.id]) is not None:
                # How far this replay is, is not known in any of its topics.
                raise refused
        # Of several, the one that the cluster still has, and that has ended.
        return max(whole, key=lambda one: (not one.lacks_positions(topic), one.log.is_finished), default=None)


class ReplayedPartition(Partition):
    """Offsets are those of the cluster, and in findings those of the archive."""

    def __init__(
        self,
        archive: Archive,
        partition: TopicPartition,
        topic: StoredTopic,
        connection: Any,
        admin: Admin,
        replay: KeptReplay,
    ) -> None:
        super().__init__(archive, partition, topic, connection, admin)
        # Aborted transactions of the replay are no records of the archive, whatever that has of the source.
        self._read_level(committed_only=True)
        self._settings = replay.settings
        found = replay.log.offset_map(partition)
        first = archive.spans[partition][0]
        self._replayed = (first, first) if found is None else (found.start, found.end)
        stretches: list[Stretch] = [] if found is None else found.stretches
        self._sources = np.array([one.source for one in stretches], np.int64)
        self._targets = np.array([one.target for one in stretches], np.int64)
        self._lengths = np.array([one.records for one in stretches], np.int64)
        self._start = int(self._targets[0]) if stretches else 0
        self._end = int(self._targets[-1] + self._lengths[-1]) if stretches else 0
        self._not_replayed = Offsets()

    def _compared(self, log_start: int, log_end: int) -> Iterator[ArchiveFindingRow]:
        first, last = self._archive.spans[self._partition]
        start, end = self._replayed
        after = sum(batch.num_rows for batch in read_records(self._archive, self._partition, end, last))
        if after:
            detail = f"the replay is at offset {end}: {counted_are(after, 'archived record')} not on the cluster"
            yield finding(SHORT_LOG, detail, self._partition, end, last)
        self._not_replayed = Offsets()
        for batch in read_records(self._archive, self._partition, first, start):
            self._not_replayed.add(batch.column("offset").to_numpy())
        if len(self._sources):
            yield from super()._compared(log_start, log_end)
        else:
            for batch in read_records(self._archive, self._partition, start, end):
                self._not_replayed.add(batch.column("offset").to_numpy())
        lost = self._not_replayed
        if lost.count:
            detail = f"the replay left out {counted(lost.count, 'archived record')}"
            yield finding(LOST, detail, self._partition, lost.first, lost.last + 1)

    def _archived(self, start: int, end: int) -> Iterator[pa.RecordBatch]:
        first = self._replayed[0] if start <= self._start else self._source_at(start)
        last = self._replayed[1] if end >= self._end else self._source_at(end)
        for batch in read_records(self._archive, self._partition, first, last):
            offsets = batch.column("offset").to_numpy()
            places = np.searchsorted(self._sources, offsets, side="right") - 1
            inside = offsets - self._sources[places]
            is_known = (places >= 0) & (inside < self._lengths[places])
            self._not_replayed.add(offsets[~is_known])
            moved = _with(batch, {_OFFSET: pa.array(self._targets[places] + inside, pa.int64())})
            known = moved if is_known.all() else moved.filter(pa.array(is_known))
            if known.num_rows:
                yield known

    def _comparable(self, ours: pa.RecordBatch, theirs: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.RecordBatch]:
        """The type of a timestamp is the target's; with LogAppendTime, and with --now, the time is new, too."""
        types = theirs.column("timestampType").to_numpy()
        if self._settings.is_now or (types == _LOG_APPEND_TIME).any():
            return _without_times(ours, _TIMESTAMP, _TYPE), _without_times(theirs, _TIMESTAMP, _TYPE)
        times = ours.column("timestamp").cast(pa.int64()).to_numpy()
        shifted = np.where(times == _NO_TIME_US, times, times + 1000 * self._settings.shift_ms)
        moved = _with(ours, {_TIMESTAMP: pa.array(shifted, pa.int64()).cast(FILE_SCHEMA.field("timestamp").type)})
        return _without_times(moved, _TYPE), _without_times(theirs, _TYPE)

    def _fault(self, name: str, detail: str, start: int, end: int) -> ArchiveFindingRow:
        return finding(name, detail, self._partition, self._source_at(start), self._source_before(end))

    def _not_archived(self, detail: str, start: int, end: int) -> ArchiveFindingRow:
        return finding(EXTRA, f"{detail}; the offsets are those of the cluster", self._partition, start, end)

    def _source_at(self, offset: int) -> int:
        """Where the archive has the first replayed record at or after an offset of the cluster."""
        place = max(0, int(np.searchsorted(self._targets, offset, side="right")) - 1)
        inside = max(0, offset - int(self._targets[place]))
        if inside < self._lengths[place]:
            return int(self._sources[place]) + inside
        return int(self._sources[place + 1]) if place + 1 < len(self._sources) else self._replayed[1]

    def _source_before(self, end: int) -> int:
        """The offset after the last replayed record that is below an offset of the cluster."""
        place = max(0, int(np.searchsorted(self._targets, end, side="left")) - 1)
        return int(self._sources[place]) + min(end - int(self._targets[place]), int(self._lengths[place]))


def _with(batch: pa.RecordBatch, columns: Mapping[int, pa.Array]) -> pa.RecordBatch:
    arrays = [columns.get(at, array) for at, array in enumerate(batch.columns)]
    return pa.RecordBatch.from_arrays(arrays, schema=batch.schema)


def _without_times(batch: pa.RecordBatch, *columns: int) -> pa.RecordBatch:
    """With the same value in all rows of these columns."""
    zeros = pa.array(np.zeros(batch.num_rows, np.int64))
    return _with(batch, {at: zeros.cast(batch.schema.field(at).type) for at in columns})
