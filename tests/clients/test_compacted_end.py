"""A consumer reaches the log end although no records are left before it."""

from __future__ import annotations

from pathlib import Path

import pytest

from broker.storage.segments.partition import SegmentPartition
from tests.harness.running import RunningBroker, until
from tests.harness.stores import append, open_log, topic_log


@pytest.mark.parametrize("is_compacted", [True, False], ids=["compacted now", "compacted by an earlier version"])
def test_a_consumer_reaches_the_log_end_before_an_empty_active_segment(tmp_path: Path, is_compacted: bool) -> None:
    confluent_kafka = pytest.importorskip("confluent_kafka")
    log = open_log(tmp_path)
    partition = topic_log(log, cleanup_policy="compact", min_cleanable_dirty_ratio="0")
    assert isinstance(partition, SegmentPartition)
    append(partition, (b"k", b"v"))
    if is_compacted:
        partition.start_segment(1)
        log.alter_topic_configs("t", {"cleanup.policy": "delete"})
        append(partition, *[b"no key"] * 19)
        log.alter_topic_configs("t", {"cleanup.policy": "compact"})
    partition.start_segment(20)
    log.flush()
    log.close()
    with RunningBroker(tmp_path, log_cleaner_backoff_ms="0") as running:
        if is_compacted:
            found = running.log.partition("t", 0)
            assert isinstance(found, SegmentPartition)
            until(lambda: [segment.compacted_at_ms < 0 for segment in found.segments] == [False, False, True])
        host, port = running.address
        consumer = confluent_kafka.Consumer(
            {"bootstrap.servers": f"{host}:{port}", "group.id": "g", "enable.partition.eof": True}
        )
        consumer.assign([confluent_kafka.TopicPartition("t", 0, 0)])
        try:
            record, end = consumer.poll(10), consumer.poll(10)
            assert record is not None
            assert record.value() == b"v"
            assert end is not None, "the consumer does not reach the log end"
            assert end.error().code() == confluent_kafka.KafkaError._PARTITION_EOF
            assert end.offset() == 20
        finally:
            consumer.close()
