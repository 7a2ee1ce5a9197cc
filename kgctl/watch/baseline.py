"""A moment to compare with: how lags and commits have changed since then."""

from __future__ import annotations

from collections.abc import Mapping

from kgctl.model.groups import GroupDescription, PartitionLag
from kgctl.model.topic_partition import TopicPartition
from kgctl.model.watched import WatchedGroup
from kgctl.watch.cluster import ClusterView
from kgctl.watch.rows import key_of


class Baseline:
    """`wall_ms` is its time in ms since 1970. Differences are None where either value is not known."""

    def __init__(self, view: ClusterView) -> None:
        self.wall_ms = view.snapshot.wall_ms
        self._groups = view.snapshot.groups
        self._lags = {row.group: row.lag for row in view.rows}

    def lag_since(self, row: WatchedGroup) -> int | None:
        """By how much the lag of a group has grown."""
        then = self._lags.get(row.group)
        return None if row.lag is None or then is None else row.lag - then

    def read_since(self, group: GroupDescription) -> int | None:
        """By how many records the commits of a group have moved, in all partitions that have one now and had one then."""
        moved, before = 0, self.partitions(group.group)
        known = False
        for now in group.partitions:
            then = before.get(key_of(now))
            if now.current_offset is not None and then is not None and then.current_offset is not None:
                moved, known = moved + now.current_offset - then.current_offset, True
        return moved if known else None

    def partitions(self, group: str) -> Mapping[TopicPartition, PartitionLag]:
        """What was known about the partitions of a group."""
        found = self._groups.get(group)
        return {key_of(row): row for row in found.partitions} if found is not None else {}
