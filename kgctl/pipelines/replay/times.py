"""The times of the archived records that a group had or had not read. Imports pyarrow only where manifests do not have them."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from functools import cache

from kgctl.pipelines.archive.layout import ArchivedFile
from kgctl.pipelines.archive.manifest import Archive
from kgctl.pipelines.replay.records import RecordFilter
from kgctl.pipelines.runner import PipelinesMissing


class RecordTimes:
    """Of the records of one topic that pass a filter, in ms since 1970; NO_TIMESTAMP of a record that has none.

    None where there is no such record. Raises Damaged, and PipelinesMissing if files have to be read without pyarrow.
    """

    def __init__(self, archive: Archive, topic: str, chosen: RecordFilter) -> None:
        self._archive, self._chosen = archive, chosen
        self._files: dict[int, list[ArchivedFile]] = {}
        for file in archive.files():
            if file.topic == topic and chosen.overlaps(file.min_timestamp_ms, file.max_timestamp_ms):
                self._files.setdefault(file.partition, []).append(file)
        self.next = cache(self._next)
        self.oldest = cache(self._oldest)
        self.newest = cache(self._newest)
        self._checked: set[str] = set()

    def _next(self, partition: int, offset: int) -> int | None:
        """Of the first record at or after an offset."""
        best: tuple[int, int] | None = None
        for file in self._at_or_after(partition, offset):
            if best is not None and file.first_offset > best[0]:
                break
            found = next(self._records(file, offset), None)
            best = found if best is None or (found is not None and found < best) else best
        return None if best is None else best[1]

    def _oldest(self, partition: int, offset: int) -> int | None:
        """The lowest of all records at or after an offset."""
        return min(
            (
                time
                for file in self._at_or_after(partition, offset)
                for time in (
                    (file.min_timestamp_ms,)
                    if self._chosen.is_empty and file.first_offset >= offset
                    else (time for _, time in self._records(file, offset))
                )
            ),
            default=None,
        )

    def _newest(self, partition: int) -> int | None:
        """The time of a record that is hardly older than any other: the highest, with a filter that of one of the last files."""
        files = self._files.get(partition, ())
        if self._chosen.is_empty:
            return max((file.max_timestamp_ms for file in files), default=None)
        found = (max((time for _, time in self._records(file, 0)), default=None) for file in reversed(files))
        return next((time for time in found if time is not None), None)

    def _at_or_after(self, partition: int, offset: int) -> Iterator[ArchivedFile]:
        return (file for file in self._files.get(partition, ()) if file.last_offset >= offset)

    def _records(self, file: ArchivedFile, offset: int) -> Iterator[tuple[int, int]]:
        """Offset and time of each record at or after an offset that passes."""
        if importlib.util.find_spec("pyarrow") is None:
            raise PipelinesMissing("to find offsets by time needs pyarrow: pip install 'kgctl[pipelines]'")
        from kgctl.pipelines.archive.files import check_content
        from kgctl.pipelines.replay.reading import read_times

        if file.path not in self._checked:
            check_content(self._archive, file)
            self._checked.add(file.path)
        needs_keys = bool(self._chosen.keys) or self._chosen.pattern is not None
        for at, key, time in read_times(self._archive, file, needs_keys=needs_keys):
            if at >= offset and self._chosen.passes(key, time):
                yield at, time
