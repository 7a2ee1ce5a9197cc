"""A start loads the same from `__consumer_offsets` before and after compaction, with tombstones and kills."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from broker.cores.groups.hard_state import HardState
from broker.cores.groups.records import (
    GroupMetadataRecord,
    GroupMetadataTombstone,
    OffsetCommitRecord,
    OffsetsRecord,
    OffsetTombstone,
    from_row,
    to_row,
)
from broker.storage import OFFSETS_TOPIC, Log, TopicRow
from broker.storage.rows.compacted_tables import CompactedTables
from tests.harness.stores import NOW, open_log, stored

# "a" and "f" share one of three partitions; the name of one group is a prefix of another.
GROUPS = ("a", "aa", "f", "é")
PARTITIONS = 3
groups, topics, indexes = st.sampled_from(GROUPS), st.sampled_from(["t", "tt"]), st.integers(0, 1)
numbers = st.integers(0, 99)
records: st.SearchStrategy[OffsetsRecord] = st.one_of(
    st.builds(OffsetCommitRecord, groups, topics, indexes, numbers, st.just(-1), st.just("m"), st.just(NOW), st.none()),
    st.builds(OffsetTombstone, groups, topics, indexes, st.just(NOW)),
    st.builds(
        GroupMetadataRecord,
        groups,
        st.just("consumer"),
        numbers,
        st.just("range"),
        st.none(),
        st.just(NOW),
        st.just(()),
        st.just(NOW),
    ),
    st.builds(GroupMetadataTombstone, groups, st.just(NOW)),
)
flushes = st.lists(st.lists(records, min_size=1, max_size=8), max_size=12)


def loaded(log: Log) -> dict[str, Any]:
    """The hard state as a start loads it."""
    state = HardState()
    rows: list[TopicRow] = list(log.groups.metadata_rows())
    for group_id in list(log.groups.ids_with_offsets()):
        found = log.groups.offset_rows(group_id)
        assert found, f"{group_id} has no live offset"
        rows += found
    for row in rows:
        record = from_row(row.key, row.value, row.timestamp_ms)
        assert record is not None
        state.apply(record)
    return {group_id: (group.metadata, group.offsets) for group_id, group in state.groups.items()}


def expected(written: list[TopicRow]) -> dict[str, Any]:
    """The hard state from everything written: the last record of each key."""
    state = HardState()
    for key, value in {row.key: row.value for row in written}.items():
        record = from_row(key, value, NOW) if value is not None else None
        if record is not None:
            state.apply(record)
    return {group_id: (group.metadata, group.offsets) for group_id, group in state.groups.items()}


def rows_left(log: Log) -> list[list[tuple[int, bytes | None, bytes | None]]]:
    """The rows of each partition, as readers see them."""
    return [
        [(row.offset, row.key, row.value) for row in stored(partition)]
        for index in range(PARTITIONS)
        if (partition := log.partition(OFFSETS_TOPIC, index)) is not None
    ]


def what_should_be_left(written: list[TopicRow]) -> list[list[tuple[int, bytes | None, bytes | None]]]:
    """The last record of each key, without tombstones except one at the end of a partition."""
    left: list[list[tuple[int, bytes | None, bytes | None]]] = []
    for index in range(PARTITIONS):
        rows = [row for row in written if row.partition == index]
        last = {row.key: offset for offset, row in enumerate(rows)}
        kept = [(o, row) for o, row in enumerate(rows) if last[row.key] == o and row.value is not None]
        if rows and (not kept or kept[-1][0] != len(rows) - 1):
            kept.append((len(rows) - 1, rows[-1]))
        left.append([(offset, row.key, row.value) for offset, row in kept])
    return left


class Walk:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.written: list[TopicRow] = []
        self.open()

    def open(self) -> None:
        self.log = open_log(self.path, durability="process", offsets_topic_partitions=PARTITIONS)

    def append(self, records: list[OffsetsRecord]) -> None:
        rows = [TopicRow(*to_row(record, PARTITIONS)) for record in records]
        self.log.append_rows(OFFSETS_TOPIC, rows)
        self.written += rows

    def write(self, records: list[OffsetsRecord]) -> None:
        self.append(records)
        self.log.flush()

    def compact(
        self, between: list[list[OffsetsRecord]], oldest_tombstone_ms: int, *, uncompacted_rows: int = 0
    ) -> None:
        """Run one pass. After each slice, flush and append the next batch of `between`, which the next slice finds unflushed."""
        waiting = iter(between)
        topic = self.log._row_topics[OFFSETS_TOPIC]
        assert isinstance(topic.tables, CompactedTables)
        for _ in topic.tables.compact(
            oldest_tombstone_ms, topic.next_offsets, uncompacted_rows=uncompacted_rows, slice_rows=3
        ):
            self.log.flush()
            self.append(next(waiting, []))
        self.log.flush()

    def kill(self) -> None:
        self.log.close(clean=False)
        self.open()


@settings(max_examples=60, deadline=None)
@given(before=flushes, between=flushes, after=flushes, uncompacted=st.integers(0, 5), kills=st.booleans())
def test_a_start_loads_the_same_before_and_after_compaction(
    before: list[list[OffsetsRecord]],
    between: list[list[OffsetsRecord]],
    after: list[list[OffsetsRecord]],
    uncompacted: int,
    kills: bool,
) -> None:
    with tempfile.TemporaryDirectory() as path:
        walk = Walk(Path(path))
        for batch in before:
            walk.write(batch)
        state = loaded(walk.log)
        assert state == expected(walk.written)
        # Tombstones are not old enough, and rows are appended between the slices of the pass.
        walk.compact(between, NOW, uncompacted_rows=uncompacted)
        for batch in after:
            walk.write(batch)
        if kills:
            walk.kill()
        state = loaded(walk.log)
        assert state == expected(walk.written)
        walk.compact([], NOW + 1)
        assert loaded(walk.log) == state
        assert rows_left(walk.log) == what_should_be_left(walk.written)
        walk.kill()
        assert loaded(walk.log) == state
        assert rows_left(walk.log) == what_should_be_left(walk.written)
        walk.log.close()
