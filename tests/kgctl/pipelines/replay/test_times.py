"""Times of archived records, from manifests and files."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kgctl.model.topic_partition import TopicPartition
from kgctl.pipelines.archive.manifest import read_archive
from kgctl.pipelines.replay.records import RecordFilter
from kgctl.pipelines.replay.times import RecordTimes
from kgctl.pipelines.tables.errors import Damaged
from tests.kgctl.pipelines.archive.making import NOON_MS, Row, add, facts

HALF_DAY_MS = 43_200_000
FILTERS = [
    RecordFilter(),
    RecordFilter(keys=frozenset({b"k1"})),
    RecordFilter(pattern=re.compile(b"k[12]"), since_ms=NOON_MS),
    RecordFilter(since_ms=NOON_MS - 1, until_ms=NOON_MS + HALF_DAY_MS),
]
KEY = TopicPartition("orders", 0)


def archived(folder: Path, commits: Sequence[Sequence[Row]]) -> None:
    end = 0
    for rows in commits:
        after = rows[-1].offset + 2
        add(folder, {KEY: rows}, {KEY: (end, after)}, topics=[facts("orders")])
        end = after


@settings(max_examples=25, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.integers(1, 3), st.integers(0, 2), st.sampled_from([-1, 0, HALF_DAY_MS, -HALF_DAY_MS]), st.booleans()
        ),
        min_size=1,
        max_size=12,
    ),
    st.sampled_from(FILTERS),
)
def test_times_are_those_of_the_records_that_pass(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[int, int, int, bool]], chosen: RecordFilter
) -> None:
    """Over several days and commits. `steps`: gap, key, time, whether a commit ends before."""
    commits: list[list[Row]] = [[]]
    offset = 0
    for number, (gap, key, shift, begins) in enumerate(steps):
        if begins and commits[-1]:
            offset += 1
            commits.append([])
        offset += gap
        commits[-1].append(Row(offset, b"k%d" % key, timestamp_ms=-1 if shift == -1 else NOON_MS + shift + number))
    folder = tmp_path_factory.mktemp("archive")
    archived(folder, commits)
    times = RecordTimes(read_archive(folder), "orders", chosen)
    passing = [row for rows in commits for row in rows if chosen.passes(row.key, row.timestamp_ms)]
    for at in range(offset + 2):
        left = [row.timestamp_ms for row in passing if row.offset >= at]
        assert times.next(0, at) == next(iter(left), None)
        assert times.oldest(0, at) == min(left, default=None)
    newest = times.newest(0)
    assert newest in ([row.timestamp_ms for row in passing] or [None])
    assert not chosen.is_empty or newest == max(row.timestamp_ms for row in passing)
    assert times.newest(1) is times.next(1, 0) is times.oldest(1, 0) is None


def test_a_damaged_file_gives_no_times(tmp_path: Path) -> None:
    archived(tmp_path, [[Row(0), Row(1)]])
    (file,) = tmp_path.glob("records/**/*.parquet")
    file.write_bytes(file.read_bytes()[:-1] + b"?")
    with pytest.raises(Damaged, match="the checksum is not that of the manifest"):
        RecordTimes(read_archive(tmp_path), "orders", RecordFilter()).next(0, 1)
