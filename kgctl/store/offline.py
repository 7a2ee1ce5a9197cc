"""An open data directory, with what several tables need."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

from broker.inspection import ROW_TOPICS, DataDirectory, StoredPartition
from broker.light_named_tuples import NamedTuple
from broker.protocol.offsets_topic import (
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
    decode_group_value,
    decode_key,
    decode_offset_value,
)
from broker.protocol.share_state import SharePartitionKey
from kgctl.store.newer_groups import NewerGroup, NewerGroups, SharePartition, is_newer, share_partitions

SHARE_STATE = "__share_group_state"


class RowBounds(NamedTuple):
    """What an internal topic holds in one partition."""

    log_start_offset: int
    log_end_offset: int
    size_bytes: int
    first_timestamp: int
    last_timestamp: int


class Offline:
    """What is read once is kept."""

    def __init__(self, directory: DataDirectory) -> None:
        self.directory = directory

    @property
    def path(self) -> Path:
        return self.directory.path

    @cached_property
    def partitions(self) -> list[StoredPartition]:
        return self.directory.partitions()

    @cached_property
    def row_partitions(self) -> dict[tuple[str, int], RowBounds]:
        """The partitions of internal topics, which are kept in the store."""
        known = {topic.name for topic in self.directory.topics}
        return {
            (topic, partition): RowBounds(*bounds)
            for topic in ROW_TOPICS
            if topic in known
            for partition, bounds in self.directory.row_bounds(topic).items()
        }

    @cached_property
    def log_ends(self) -> dict[tuple[str, int], int]:
        """The log end of every partition; 0 where nothing was written."""
        ends = {(topic.name, index): 0 for topic in self.directory.topics for index in range(topic.partition_count)}
        ends.update({(one.topic, one.partition): one.log_end_offset for one in self.partitions})
        ends.update({key: one.log_end_offset for key, one in self.row_partitions.items()})
        return ends

    @cached_property
    def topic_names(self) -> dict[bytes, str]:
        return {topic.topic_id: topic.name for topic in self.directory.topics}

    @cached_property
    def _group_rows(
        self,
    ) -> tuple[list[tuple[OffsetCommitKey, OffsetCommitValue]], dict[str, GroupMetadataValue], dict[str, NewerGroup]]:
        offsets, groups, newer = [], {}, NewerGroups()
        for row in self.directory.newest_rows("__consumer_offsets"):
            key = decode_key(row.key)
            assert row.value is not None
            if isinstance(key, OffsetCommitKey):
                offsets.append((key, decode_offset_value(row.value)))
            elif isinstance(key, GroupMetadataKey):
                groups[key.group] = decode_group_value(row.value)
            elif is_newer(row.key):
                newer.add(row.key, row.value)
        return offsets, groups, newer.found

    @property
    def committed(self) -> list[tuple[OffsetCommitKey, OffsetCommitValue]]:
        return self._group_rows[0]

    @property
    def newer_groups(self) -> dict[str, NewerGroup]:
        """Consumer groups of the newer protocol, and share groups."""
        return self._group_rows[2]

    @cached_property
    def share_partitions(self) -> dict[SharePartitionKey, SharePartition]:
        if SHARE_STATE not in self.topic_names.values():
            return {}
        rows = self.directory.rows_by_offset(SHARE_STATE)
        return dict(share_partitions((row.key, row.value) for _, row in rows))

    @property
    def groups(self) -> dict[str, GroupMetadataValue]:
        """Classic groups."""
        return self._group_rows[1]
