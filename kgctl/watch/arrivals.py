"""When records arrived in partitions, from their log ends in earlier snapshots."""

from __future__ import annotations

from broker.light_named_tuples import NamedTuple
from kgctl.model.groups import GroupDescription, PartitionLag
from kgctl.model.topic_partition import TopicPartition
from kgctl.watch.rates import WINDOW_S
from kgctl.watch.rows import key_of


class _Ends(NamedTuple):
    """The log end of a partition at two earlier moments: up to two windows ago, and up to one."""

    older_s: float
    older: int
    newer_s: float
    newer: int


class Arrivals:
    """The log ends of the partitions with lag at earlier moments: they show when records arrived."""

    __slots__ = ("_ends",)

    def __init__(self) -> None:
        self._ends: dict[TopicPartition, _Ends] = {}

    def add(self, before_s: float, before: GroupDescription | None, at_s: float, group: GroupDescription) -> None:
        """Add a snapshot, and the one before it."""
        known, self._ends = self._ends, {}
        if before is None:
            return
        earlier: dict[TopicPartition, int | None] | None = None
        for row in group.partitions:
            if not row.lag or row.lag < 0 or row.log_end_offset is None:
                continue
            key, end = key_of(row), row.log_end_offset
            ends = known.get(key)
            if ends is None:
                if earlier is None:
                    earlier = {key_of(was): was.log_end_offset for was in before.partitions}
                was_end = earlier.get(key)
                if was_end is None:
                    continue
                ends = _Ends(before_s, was_end, before_s, was_end)
            if end < ends.newer:
                # The topic was created again.
                continue
            if at_s - ends.newer_s > WINDOW_S:
                ends = _Ends(ends.newer_s, ends.newer, at_s, end)
            self._ends[key] = ends

    def waited_s(self, row: PartitionLag, at_s: float) -> float | None:
        """For how long the oldest unread record has waited, if records arrive evenly between the moments that are known.

        None if no record has arrived since the first of them.
        """
        ends, offset, end = self._ends.get(key_of(row)), row.current_offset, row.log_end_offset
        if ends is None or offset is None or end is None or end <= ends.older:
            return None
        for from_s, start, to_s, stop in (
            (ends.newer_s, ends.newer, at_s, end),
            (ends.older_s, ends.older, ends.newer_s, ends.newer),
        ):
            if start <= offset < stop:
                return at_s - from_s - (to_s - from_s) * (offset - start) / (stop - start)
        return (end - offset) * (at_s - ends.older_s) / (end - ends.older)
