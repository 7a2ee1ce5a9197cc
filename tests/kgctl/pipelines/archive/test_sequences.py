"""Random logs and steps: an archive holds each record that was there to read exactly once, and names every hole."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from kgctl.model.topic_partition import TopicPartition
from kgctl.pipelines.archive.layout import partition_of
from kgctl.pipelines.archive.manifest import read_archive
from kgctl.pipelines.archive.verifying import HOLE, verify
from tests.kgctl.pipelines.archive.making import NOON_MS, Row
from tests.kgctl.pipelines.archive.model import LogModel, join, step
from tests.kgctl.pipelines.archive.reading import in_folder, rows_of

PARTITIONS = [TopicPartition("orders", 0), TopicPartition("orders", 1), TopicPartition("other", 0)]
DAY_MS = 86_400_000
ROWS = st.builds(
    Row,
    offset=st.just(0),
    key=st.none() | st.binary(max_size=3),
    value=st.none() | st.binary(max_size=5),
    timestamp_ms=st.sampled_from([NOON_MS, NOON_MS - DAY_MS, NOON_MS + 1, -1]),
)
APPEND = st.tuples(
    st.just("append"), st.sampled_from(PARTITIONS), st.lists(st.tuples(ROWS, st.integers(0, 3)), max_size=8)
)
DELETE = st.tuples(st.just("delete"), st.sampled_from(PARTITIONS), st.integers(0, 40))
STEP = st.tuples(st.just("step"), st.just(None), st.integers(1, 20))
# Of the commits from the nth on.
JOIN = st.tuples(st.just("join"), st.just(None), st.integers(0, 3))


@settings(max_examples=40, deadline=None)
@given(st.lists(APPEND | DELETE | STEP | JOIN, max_size=14), st.booleans())
def test_each_record_is_archived_once_and_each_hole_is_named(
    operations: list[tuple[str, object, object]], is_joined: bool
) -> None:
    logs = {one: LogModel() for one in PARTITIONS}
    expected: dict[TopicPartition, dict[int, Row]] = {one: {} for one in PARTITIONS}
    holes: list[tuple[TopicPartition, int, int]] = []
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as name:
        folder = Path(name)
        for kind, where, detail in [*operations, ("step", None, 1000)]:
            if kind == "append":
                for row, gap in detail:  # type: ignore[attr-defined]
                    logs[where].append(row, gap)  # type: ignore[index]
            elif kind == "delete":
                logs[where].delete_before(detail)  # type: ignore[index,arg-type]
            elif kind == "join":
                join(folder, detail)  # type: ignore[arg-type]
            else:
                plan = step(folder, logs, detail)  # type: ignore[arg-type]
                holes += [(partition_of(hole), hole.start, hole.end) for hole in plan.holes]
                for one in plan.ranges:
                    rows = logs[one.partition].rows
                    expected[one.partition] |= {at: row for at, row in rows.items() if one.start <= at < one.end}
        if is_joined:
            join(folder)
        archive = read_archive(folder)
        assert not is_joined or len(archive.commits) == 1
        assert archive.ends() == {one: log.end for one, log in logs.items()}
        assert {one: rows_of(archive, one) for one in PARTITIONS} == {
            one: [expected[one][at] for at in sorted(expected[one])] for one in PARTITIONS
        }
        assert in_folder(folder) == sorted((*one, at) for one, rows in expected.items() for at in rows)
        findings = verify(folder).findings
        assert [row for row in findings if row.finding != HOLE] == []
        assert sorted((row.topic, row.partition, row.first_offset, row.last_offset + 1) for row in findings) == sorted(
            (*one, start, end) for one, start, end in holes
        )
