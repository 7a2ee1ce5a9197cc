"""`verify --against`: what differs is named, and what retention or compaction has removed is no fault."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.protocol.record_batch import Record, build_batch
from kgctl.model.topic_partition import TopicPartition
from kgctl.pipelines.archive.files import FILE_SCHEMA
from kgctl.pipelines.archive.manifest import read_archive
from kgctl.pipelines.archive.side_by_side import LostRecords
from tests.harness.clusters import Cluster
from tests.harness.commandline import Kgctl, append
from tests.harness.running import RunningBroker, until
from tests.kgctl.pipelines.archive.clusters import against
from tests.kgctl.pipelines.archive.making import NOON_MS, Row, add, facts, raw
from tests.kgctl.pipelines.source.topics import Topics

Findings = set[tuple[str, int | None, int | None, bool | None]]
# The archives of these tests are of another cluster, and nothing was replayed.
NO_REPLAY = ("no replay", None, None, None)


@pytest.fixture
def topics(our_cluster: Cluster) -> Topics:
    return Topics(our_cluster.bootstrap_servers)


def write(topics: Topics, topic: str, rows: Iterable[Row]) -> None:
    """One record per offset from 0; an archive of the rows then equals the topic."""
    with Kgctl(topics.bootstrap_servers).admin() as admin:
        records = [Record(row.offset, row.timestamp_ms, row.key, row.value) for row in rows]
        append(admin, topic, 0, build_batch(records))


def compared(topics: Topics, folder: Path) -> Findings:
    rows = against(topics, read_archive(folder))
    return {(row.finding, row.first_offset, row.last_offset, row.ok) for row in rows}


ROWS = [Row(at, b"k%d" % (at % 3), b"v%d" % at) for at in range(8)]


def test_each_difference_is_named(topics: Topics, tmp_path: Path) -> None:
    name = topics.make(retention_ms="-1")
    write(topics, name, ROWS)
    wrong = {
        2: Row(2, b"k2", b"other"),
        3: Row(3, b"k0", b"v3", NOON_MS + 1),
        4: Row(4, b"k1", b"v4", headers=(("a", b"b"),)),
        6: Row(6, None, b"v6"),
    }
    add(
        tmp_path,
        {TopicPartition(name, 0): [wrong.get(row.offset, row) for row in ROWS if row.offset not in (1, 7)]},
        {TopicPartition(name, 0): (0, 8)},
        topics=[facts(name, id="")],
    )
    assert compared(topics, tmp_path) == {("different", 2, 6, False), ("not archived", 1, 7, False), NO_REPLAY}
    *rows, last = against(topics, read_archive(tmp_path))
    assert (last.topic, last.detail) == (
        name,
        f"{tmp_path}/_replays has no replay of this topic, so its offsets should be those of the archive",
    )
    details = {row.finding: row.detail for row in rows}
    assert details == {
        "different": "4 records are not the same on the cluster",
        "not archived": "2 records are on the cluster but not in the archive",
    }


def test_a_log_that_ends_early_has_lost_records(topics: Topics, tmp_path: Path) -> None:
    name = topics.make(retention_ms="-1")
    write(topics, name, ROWS[:5])
    add(tmp_path, {TopicPartition(name, 0): ROWS}, {TopicPartition(name, 0): (0, 8)}, topics=[facts(name, id="")])
    assert compared(topics, tmp_path) == {("log ends early", 5, 7, False), NO_REPLAY}


@pytest.mark.parametrize("damage", ["missing", "truncated"])
def test_a_damaged_partition_is_not_compared_but_others_are(topics: Topics, tmp_path: Path, damage: str) -> None:
    name = topics.make(2, retention_ms="-1")
    zero, one = (TopicPartition(name, number) for number in range(2))
    write(topics, name, ROWS)
    add(tmp_path, {zero: ROWS, one: ROWS}, {zero: (0, 8), one: (0, 8)}, topics=[facts(name, 2, id="")])
    (file,) = (read_archive(tmp_path).path_of(file) for file in read_archive(tmp_path).files(zero))
    if damage == "missing":
        file.unlink()
    else:
        file.write_bytes(file.read_bytes()[:-50])
    done = Kgctl()("pipeline", "verify", tmp_path, "--against", topics.bootstrap_servers, "-o", "json")
    assert done.exit_code == 1
    found = [(row["finding"], row["partition"]) for row in json.loads(done.stdout)["rows"]]
    assert found == [
        ("missing file" if damage == "missing" else "checksum", 0),
        ("not compared", 0),
        ("log ends early", 1),
        ("no replay", None),
    ]


def test_a_file_that_vanishes_while_it_is_compared_is_a_fault(topics: Topics, tmp_path: Path) -> None:
    name = topics.make(retention_ms="-1")
    write(topics, name, ROWS)
    add(tmp_path, {TopicPartition(name, 0): ROWS}, {TopicPartition(name, 0): (0, 8)}, topics=[facts(name, id="")])
    archive = read_archive(tmp_path)
    archive.path_of(archive.files()[0]).unlink()
    (row,) = against(topics, archive)
    assert (row.finding, row.partition, row.ok) == ("content", 0, False)
    assert "a file cannot be read" in row.detail


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_compaction_explains_what_it_removes_and_nothing_else(data: st.DataObject) -> None:
    keys = st.none() | st.sampled_from([b"a", b"b", b"c", b"d"])
    drawn = data.draw(st.lists(st.tuples(keys, st.none() | st.just(b"v")), min_size=1, max_size=20))
    log = [Row(at, key, value) for at, (key, value) in enumerate(drawn)]
    newest = {row.key: row.offset for row in log}
    end = data.draw(st.integers(1, len(log)), "end of the archive")
    cleaned = data.draw(st.integers(0, len(log)), "how far the log is cleaned")
    has_tombstones = data.draw(st.booleans(), "tombstones are kept")
    kept = [
        row
        for row in log
        if row.offset >= cleaned
        or row.key is None
        or (row.offset == newest[row.key] and (row.value is not None or has_tombstones))
    ]
    ours = [row for row in log if row.offset < end]
    removed = [row for row in ours if row not in kept]
    # The newest record of a key, and one without a key, are never compacted away.
    candidates = [row for row in kept if row in ours and (row.key is None or row.offset == newest[row.key])]
    stolen = (
        data.draw(st.sets(st.sampled_from([row.offset for row in candidates if row.value is not None]), max_size=3))
        if (any(row.value is not None for row in candidates))
        else set()
    )
    theirs = [row for row in kept if row.offset not in stolen]

    lost = LostRecords(is_compacted=True)
    cut = data.draw(st.integers(0, end), "batches")
    for start, stop in ((0, cut), (cut, end)):
        lost.pass_over(batch(ours, start, stop), batch(theirs, start, stop))
    later = [row for row in theirs if row.offset >= end]
    lost.search(iter([batch(theirs, end, len(log))]), len(log) - end)
    found = lost.offsets()
    assert found.count + lost.deleted.count + lost.compacted == len(stolen) + len(removed)
    # A tombstone behind the archive that is gone too explains any key.
    certain = stolen if len(later) == len(log) - end else {at for at in stolen if log[at].key is None}
    assert (found.count, found.first, found.last) == (
        (len(certain), min(certain), max(certain)) if certain else (0, -1, -1)
    )


def batch(rows: list[Row], start: int, stop: int) -> pa.RecordBatch:
    some = [row for row in rows if start <= row.offset < stop]
    return raw(TopicPartition("any", 0), some).select(FILE_SCHEMA.names)


def test_what_a_broker_compacts_away_is_no_fault(tmp_path: Path) -> None:
    with RunningBroker(tmp_path / "data", log_cleaner_backoff_ms="20") as running:
        topics = Topics("{}:{}".format(*running.address))
        configs = {"cleanup_policy": "compact", "segment_ms": "100", "min_cleanable_dirty_ratio": "0.01"}
        name = topics.make(name="latest", **configs)
        rows = [Row(at, b"k", b"v%d" % at, NOON_MS + 1000 * at) for at in range(6)]
        for row in rows:
            topics.fill(name, [{"key": row.key, "value": row.value, "timestamp": row.timestamp_ms}])
        partition = TopicPartition(name, 0)
        add(tmp_path / "archive", {partition: rows[:5]}, {partition: (0, 5)}, topics=[facts(name, id="")])
        until(lambda: ("compacted away", 0, 4, None) in compared(topics, tmp_path / "archive"))
        assert compared(topics, tmp_path / "archive") == {("compacted away", 0, 4, None)}
