"""Archives of our own broker and of a real Kafka: the records are those that a consumer sees, byte by byte."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kgctl.model.topic_partition import TopicPartition
from kgctl.pipelines.archive.groups import read_groups
from kgctl.pipelines.archive.manifest import read_archive
from kgctl.pipelines.archive.planning import NotTheSame
from kgctl.pipelines.archive.verifying import verify
from tests.harness.clusters import Cluster
from tests.harness.commandline import Kgctl
from tests.kgctl.pipelines.archive.clusters import (
    MIDNIGHT_MS,
    against,
    archive,
    archived,
    consumed,
    fill,
    transact,
    transactional,
)
from tests.kgctl.pipelines.source.topics import Topics

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def topics(cluster: Cluster) -> Topics:
    return Topics(cluster.bootstrap_servers)


def test_an_archive_holds_what_a_consumer_sees(spark: SparkSession, topics: Topics, tmp_path: Path) -> None:
    names = fill(topics)
    codecs, _, transactions, empty = names
    Kgctl(topics.bootstrap_servers).commit("readers", codecs, p0=3, p1=100)
    archive(spark, topics, tmp_path, *names, max_offsets_per_trigger=77)
    assert archived(tmp_path, *names) == consumed(topics, *names)
    found = read_archive(tmp_path)
    assert len(found.commits) > 2
    assert {len(rows) for partition, rows in archived(tmp_path, *names).items() if partition.topic == transactions} == {
        6
    }
    assert found.spans[TopicPartition(empty, 1)] == (0, 0)
    assert found.topics[codecs].configs["retention.ms"] == "-1"
    assert verify(tmp_path).findings == ()
    assert against(topics, found) == []

    # More records, one aborted transaction, and one that is still open.
    transact(topics, transactions, "abort", "commit")
    producer = transactional(topics, transactions)
    producer.begin_transaction()
    producer.produce(transactions, b"open", partition=0)
    producer.flush(20)
    topics.fill(empty, [{"value": b"first", "partition": 1}])
    archive(spark, topics, tmp_path, *names)
    producer.commit_transaction(20)
    before = len(archived(tmp_path, transactions)[TopicPartition(transactions, 0)])
    archive(spark, topics, tmp_path, *names)
    assert len(archived(tmp_path, transactions)[TopicPartition(transactions, 0)]) == before + 1
    assert archived(tmp_path, *names) == consumed(topics, *names)
    assert verify(tmp_path).findings == ()
    assert against(topics, read_archive(tmp_path)) == []

    groups = read_groups(tmp_path)
    assert groups is not None
    offsets = {(one.group, one.partition): (one.offset, one.timestamp_ms, one.log_end) for one in groups.offsets}
    fourth = archived(tmp_path, codecs)[TopicPartition(codecs, 0)][3]
    assert offsets == {("readers", 0): (3, fourth.timestamp_ms, 100), ("readers", 1): (100, None, 100)}
    assert fourth.timestamp_ms > MIDNIGHT_MS


def test_what_the_cluster_has_lost_or_changed_since(spark: SparkSession, topics: Topics, tmp_path: Path) -> None:
    kept, gone = topics.make(1), topics.make(1)
    topics.count(kept, 20)
    topics.count(gone, 5)
    archive(spark, topics, tmp_path, kept, gone)
    delete_before(topics, kept, 8)
    (row,) = against(topics, read_archive(tmp_path))
    assert (row.finding, row.first_offset, row.last_offset, row.ok) == ("deleted by retention", 0, 7, None)
    assert row.detail == "8 archived records are no longer on the cluster"

    # Retention overtakes the archive.
    topics.count(kept, 10)
    delete_before(topics, kept, 25)
    notes = [one.text for one in archive(spark, topics, tmp_path, kept) if one.kind == "note"]
    assert notes == [
        f"{kept}-0: offsets 20 to 24 are missing: they were deleted from the log before they were archived"
    ]
    assert [(row.finding, row.first_offset, row.last_offset) for row in verify(tmp_path).findings] == [("hole", 20, 24)]

    topics.delete(gone)
    assert findings(topics, tmp_path) == {"missing topic", "deleted by retention"}
    topics.make(1, name=gone)
    topics.count(gone, 9)
    assert findings(topics, tmp_path) == {"other topic", "deleted by retention"}
    with pytest.raises(NotTheSame, match="was deleted and created again since it was archived"):
        archive(spark, topics, tmp_path, gone)
    assert len(archived(tmp_path, gone)[TopicPartition(gone, 0)]) == 5


def findings(topics: Topics, out: Path) -> set[str]:
    return {row.finding for row in against(topics, read_archive(out))}


def delete_before(topics: Topics, topic: str, offset: int) -> None:
    result = Kgctl(topics.bootstrap_servers)("topics", "delete-records", f"{topic}:0:{offset}", "--execute")
    assert result.exit_code == 0, result.stderr
