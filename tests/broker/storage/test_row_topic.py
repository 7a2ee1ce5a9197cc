"""A row topic that is not __consumer_offsets: its own tables and names in meta are all that it needs."""

from __future__ import annotations

from pathlib import Path

from broker.storage import FileOps, RowPartition, TopicRow
from broker.storage.failure import Failure
from broker.storage.files import Files
from broker.storage.rows.compacted_tables import CompactedTables
from broker.storage.rows.row_topic import RowTopic
from broker.storage.store.database import Store
from tests.harness.stores import NOW

NAME = "__transaction_state"


def opened(path: Path) -> tuple[Store, CompactedTables, RowTopic]:
    store = Store(Files(FileOps(), durable=False), str(path), Failure(), accept_loss=False)
    tables = CompactedTables(store, NAME, 2, prefix="transactions", meta="transactions_")
    return store, tables, RowTopic(NAME, tables, store)


def flush(store: Store, topic: RowTopic) -> None:
    topic.before_flush()
    store.commit()
    topic.after_flush()


def test_another_compacted_topic_is_read_compacted_and_reopened(tmp_path: Path) -> None:
    store, tables, topic = opened(tmp_path)
    topic.append([TopicRow(n % 2, b"id-%d" % (n % 3), b"state %d" % n, NOW + n) for n in range(12)])
    topic.append([TopicRow(0, b"id-0", None, NOW)])
    assert (topic.log_end(0), topic.high_watermark(0)) == (7, 0)
    flush(store, topic)
    assert (topic.high_watermark(0), topic.high_watermark(1)) == (7, 6)
    assert [row.offset for row in topic.read(1, 2, 3)] == [2, 3, 4]
    assert RowPartition(topic, 1).offset_for_timestamp(NOW + 4) == (2, NOW + 5)
    newest = {b"id-1": b"state 10", b"id-2": b"state 11"}
    assert {row.key: row.value for row in tables.newest(b"", b"\xff")} == newest
    for _ in tables.compact(NOW + 1, topic.next_offsets, uncompacted_rows=0, slice_rows=2):
        flush(store, topic)
    flush(store, topic)
    store.close()

    store, tables, topic = opened(tmp_path)
    assert {row.key: row.value for row in tables.newest(b"", b"\xff")} == newest
    # The last row of a partition stays, here a tombstone, as it defines the end.
    assert [(row.offset, row.value) for row in topic.read(0, 0, 10)] == [(5, b"state 10"), (6, None)]
    assert [row.offset for row in topic.read(1, 0, 10)] == [5]
    assert (topic.log_end(0), topic.log_end(1)) == (7, 6)
    assert (store.meta("transactions_settled_seq"), store.meta("settled_seq")) == ("13", None)
    store.close()
