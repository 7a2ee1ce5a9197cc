"""The rows of __share_group_state: made at first use, and kept from the newest snapshot of each share partition on."""

from __future__ import annotations

from pathlib import Path

from broker.inspection import DataDirectory
from broker.storage import FileOps, TopicRow
from broker.storage.failure import Failure
from broker.storage.files import Files
from broker.storage.inspection.store_checks import check_rows
from broker.storage.log import Log
from broker.storage.rows.compacted_tables import CompactedTables
from broker.storage.rows.declarations import SHARE_STATE_TOPIC, row_topics
from broker.storage.rows.row_topic import RowTopic
from broker.storage.settings import LogSettings
from broker.storage.store.database import Store
from tests.harness.stores import NOW, open_log

SNAPSHOT, UPDATE = b"\0\0", b"\0\1"


def opened(path: Path) -> tuple[Store, CompactedTables, RowTopic]:
    store = Store(Files(FileOps(), durable=False), str(path), Failure(), accept_loss=False)
    declared = next(each for each in row_topics(LogSettings()) if each.name == SHARE_STATE_TOPIC)
    tables = declared.tables(store, 2)
    assert isinstance(tables, CompactedTables)
    return store, tables, RowTopic(SHARE_STATE_TOPIC, tables, store)


def test_compaction_keeps_all_updates_behind_the_newest_snapshot(tmp_path: Path) -> None:
    store, tables, topic = opened(tmp_path)
    keys = [
        SNAPSHOT + b"a",
        UPDATE + b"a",
        UPDATE + b"a",
        SNAPSHOT + b"b",
        SNAPSHOT + b"a",
        UPDATE + b"a",
        UPDATE + b"b",
    ]
    keys += [UPDATE + b"a", SNAPSHOT + b"c", UPDATE + b"c"]
    topic.append([TopicRow(0, key, b"%d" % number, NOW) for number, key in enumerate(keys)])
    topic.append([TopicRow(0, SNAPSHOT + b"c", None, NOW), TopicRow(0, SNAPSHOT + b"d", b"last", NOW)])
    topic.settle()
    for _ in tables.compact(NOW, topic.next_offsets, uncompacted_rows=0, slice_rows=3):
        pass
    # The tombstone stays for delete.retention.ms, the row of its update is gone.
    assert [row.value for row in tables.all_rows()] == [b"3", b"4", b"5", b"6", b"7", None, b"last"]
    for _ in tables.compact(NOW + 1, topic.next_offsets, uncompacted_rows=0):
        pass
    assert [row.value for row in tables.all_rows()] == [b"3", b"4", b"5", b"6", b"7", b"last"]
    # No index entry is left of what is gone.
    orphans = (
        "SELECT l.key FROM share_state_latest AS l LEFT JOIN share_state_log AS o ON o.seq = l.seq WHERE o.seq IS NULL"
    )
    assert store.query(orphans) == []
    store.close()


def test_the_topic_is_created_at_first_use_and_stays(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    assert SHARE_STATE_TOPIC not in log.topics
    assert log.is_reserved(SHARE_STATE_TOPIC)
    assert list(log.share_state_rows()) == []
    log.append_rows(SHARE_STATE_TOPIC, [TopicRow(1, SNAPSHOT + b"a", b"one", NOW)])
    log.flush()
    assert _high_watermark(log) == 1
    log.append_rows(SHARE_STATE_TOPIC, [TopicRow(1, UPDATE + b"a", b"two", NOW)])
    log.flush()
    log.close(clean=False)

    log = open_log(tmp_path)
    assert [row.value for row in log.share_state_rows()] == [b"one", b"two"]
    assert log.topics[SHARE_STATE_TOPIC].internal
    assert not log.is_reserved(SHARE_STATE_TOPIC)
    assert _high_watermark(log) == 2
    log.close()
    with DataDirectory(tmp_path, is_in_use=False) as directory:
        assert check_rows(directory, SHARE_STATE_TOPIC) == (2, 12, [])


def _high_watermark(log: Log) -> int:
    partition = log.partition(SHARE_STATE_TOPIC, 1)
    assert partition is not None
    return partition.high_watermark
