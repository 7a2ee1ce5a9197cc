"""How far readers of one partition see: all that the last flush made durable, or committed records only."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from broker.storage.errors import StorageError
from broker.storage.segments.segment import Segment


class Visible:
    """Offsets, and their positions in the segments that hold them."""

    def __init__(self) -> None:
        self.high_watermark = 0
        self.last_stable_offset = 0
        self._base_offset = 0  # of the segment with the high watermark
        self._position = 0
        self._newest = (-1, -1)
        self._unstable: int | None = None  # where the oldest open transaction begins
        self._stable_position: int | None = None  # None: not looked up yet

    def advance(self, segments: Sequence[Segment], unstable: int | None, log_start: int) -> None:
        """Everything that was appended is durable. `unstable`: where the oldest open transaction begins, if there is one."""
        active = segments[-1]
        self.high_watermark = active.end_offset
        self._base_offset = active.base_offset
        self._position = active.size_bytes
        self._newest = (active.max_timestamp, active.max_timestamp_offset)
        self._unstable = unstable
        if unstable is None:
            self.last_stable_offset = self.high_watermark
            self._stable_position = None
        else:
            self.stabilize(segments, log_start)

    def stabilize(self, segments: Sequence[Segment], log_start: int) -> None:
        """Look for the last stable offset: an open transaction begins or ends, or the log start has moved."""
        stable = self.high_watermark if self._unstable is None else self._unstable
        if stable < log_start:
            stable = self._batch_at(segments, log_start)
        if stable != self.last_stable_offset:
            self.last_stable_offset = stable
            self._stable_position = None

    def _batch_at(self, segments: Sequence[Segment], offset: int) -> int:
        """The base offset of the batch with this offset; DeleteRecords moved the log start past an open transaction."""
        for segment in segments:
            if segment.end_offset > offset:
                with suppress(StorageError):  # readers meet it, a flush must not
                    spot = segment.find_offset(offset, self.end_in(segment))
                    return offset if spot is None else spot.base_offset
                return offset
        return self.high_watermark

    def end_in(self, segment: Segment) -> int:
        """The position up to which readers may see this segment."""
        if segment.base_offset < self._base_offset:
            return segment.size_bytes
        return self._position if segment.base_offset == self._base_offset else 0

    def stable_end_in(self, segment: Segment) -> int:
        """The position up to which readers of committed records may see this segment."""
        stable, visible = self.last_stable_offset, self.end_in(segment)
        if stable >= segment.end_offset or stable == self.high_watermark:
            return visible
        if stable <= segment.base_offset:
            return 0
        if self._stable_position is None:
            spot = segment.find_offset(stable, visible)
            self._stable_position = visible if spot is None else spot.position
        return self._stable_position

    def newest_in(self, segment: Segment) -> tuple[int, int]:
        """(max timestamp, base offset of its batch) of what readers may see of this segment."""
        if segment.base_offset == self._base_offset:
            return self._newest
        return segment.max_timestamp, segment.max_timestamp_offset
