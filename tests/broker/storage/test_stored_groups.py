"""The rows of __consumer_offsets: by group, and as a topic whose bytes never change; generation floors."""

from __future__ import annotations

from pathlib import Path

import pytest

from broker.protocol.errors import ErrorCode
from broker.protocol.record_batch import batches
from broker.storage import OFFSETS_TOPIC, DamageError, FileOps, Log, PartitionLog, TopicRow
from broker.storage.failure import Failure
from broker.storage.files import Files
from broker.storage.store.database import Store
from tests.harness.stores import NOW, batch, open_log, raw, stored


def string(text: str) -> bytes:
    encoded = text.encode()
    return len(encoded).to_bytes(2, "big") + encoded


def offset_key(group: str, topic: str, partition: int) -> bytes:
    return b"\0\1" + string(group) + string(topic) + partition.to_bytes(4, "big")


def group_key(group: str) -> bytes:
    return b"\0\2" + string(group)


def offsets_partition(log: Log, index: int) -> PartitionLog:
    found = log.partition("__consumer_offsets", index)
    assert found is not None
    return found


def test_the_offsets_topic_is_there_from_the_start(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    topic = log.topics["__consumer_offsets"]
    assert (topic.partition_count, topic.internal, topic.configs["cleanup.policy"]) == (50, True, "compact")
    assert len(log.cluster_id) == 22
    cluster_id, topic_id = log.cluster_id, topic.topic_id
    log.close()
    log = open_log(tmp_path, offsets_topic_partitions=7)
    assert log.cluster_id == cluster_id
    assert log.topics["__consumer_offsets"].topic_id == topic_id
    assert log.topics["__consumer_offsets"].partition_count == 50
    log.close()


@pytest.mark.parametrize("how", ["pending", "committed", "killed", "stopped"])
def test_the_newest_row_of_each_key_is_found(tmp_path: Path, how: str) -> None:
    log = open_log(tmp_path)
    old = [TopicRow(1, offset_key("g", "t", n), b"old", NOW) for n in range(4)]
    new = [
        TopicRow(1, offset_key("g", "t", 1), b"new", NOW + 1),
        TopicRow(1, offset_key("g", "t", 2), None, NOW + 1),
        TopicRow(1, offset_key("gg", "t", 0), b"other group", NOW),
        TopicRow(1, group_key("g"), b"metadata", NOW),
        TopicRow(2, group_key("deleted"), b"metadata", NOW),
        TopicRow(2, group_key("deleted"), None, NOW),
    ]
    log.append_rows(OFFSETS_TOPIC, old)
    log.append_rows(OFFSETS_TOPIC, new)
    if how != "pending":
        log.flush()
    if how in ("killed", "stopped"):
        log.close(clean=how == "stopped")
        log = open_log(tmp_path)
    assert sorted(log.groups.offset_rows("g"), key=lambda row: row.key) == [old[0], new[0], old[3]]
    assert log.groups.offset_rows("nobody") == []
    assert list(log.groups.metadata_rows()) == [new[3]]
    assert list(log.groups.ids_with_offsets()) == ["g", "gg"]
    log.close()


def test_rows_read_as_a_topic_never_change_their_bytes(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    rows = [TopicRow(5, offset_key("g", "t", n % 3), None if n % 7 == 6 else b"%d" % n, NOW + n) for n in range(300)]
    for row in rows[:290]:
        log.append_rows(OFFSETS_TOPIC, [row])
    log.flush()
    log.append_rows(OFFSETS_TOPIC, rows[290:])
    partition = offsets_partition(log, 5)
    assert (partition.high_watermark, partition.log_end_offset, partition.log_start_offset) == (290, 300, 0)
    assert partition.read(290, 1000, at_least_one=True) == b""
    assert partition.read(301, 1000, at_least_one=True) is None
    log.flush()
    found = list(stored(partition))
    assert [(r.offset, r.key, r.value, r.timestamp) for r in found] == [
        (n, row.key, row.value, row.timestamp_ms) for n, row in enumerate(rows)
    ]
    whole = raw(partition.read(0, 10**6, at_least_one=True))
    log.close(clean=False)
    log = open_log(tmp_path)
    partition = offsets_partition(log, 5)
    assert raw(partition.read(0, 10**6, at_least_one=True)) == whole
    tail = raw(partition.read(123, 10**6, at_least_one=True))
    assert whole.endswith(tail)
    assert next(batches(tail))[1].base_offset == 123
    size = next(batches(whole))[1].size_bytes
    assert partition.read(0, size - 1, at_least_one=False) == b""
    assert len(raw(partition.read(0, size - 1, at_least_one=True))) == size
    assert partition.offset_for_timestamp(NOW + 17) == (17, NOW + 17)
    assert partition.offset_for_timestamp(NOW + 300) is None
    assert partition.offset_of_max_timestamp() == (299, NOW + 299)
    log.close()


def test_clients_cannot_write_to_the_offsets_topic(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    partition = offsets_partition(log, 0)
    assert partition.append(batch(b"x"), wall_ms=NOW) is ErrorCode.INVALID_TOPIC_EXCEPTION
    assert partition.delete_records(0) is ErrorCode.INVALID_TOPIC_EXCEPTION
    log.close()


def test_offsets_and_floors_of_one_flush_are_atomic(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.append_rows(OFFSETS_TOPIC, [TopicRow(1, group_key("g"), b"1", NOW)])
    log.groups.set_generation_floor("g", 1)
    log.flush()
    log.append_rows(OFFSETS_TOPIC, [TopicRow(1, group_key("g"), b"2", NOW)])
    log.groups.set_generation_floor("g", 2)
    log.close(clean=False)
    log = open_log(tmp_path)
    assert [row.value for row in log.groups.metadata_rows()] == [b"1"]
    assert log.groups.generation_floors() == {"g": 1}
    log.groups.set_generation_floor("g", None)
    log.flush()
    assert log.groups.generation_floors() == {}
    log.close()


def test_a_group_is_listed_as_long_as_it_has_a_live_offset(tmp_path: Path) -> None:
    log = open_log(tmp_path)

    def write(*rows: tuple[bytes, bytes | None]) -> list[str]:
        log.append_rows(OFFSETS_TOPIC, [TopicRow(1, key, value, NOW) for key, value in rows])
        log.flush()
        return sorted(log.groups.ids_with_offsets())

    first, second = offset_key("g", "t", 0), offset_key("g", "t", 1)
    assert write((first, b"1"), (second, b"1"), (offset_key("gg", "t", 0), b"1"), (group_key("h"), b"1")) == ["g", "gg"]
    assert write((first, None)) == ["g", "gg"]
    assert write((second, None)) == ["gg"]
    assert write((offset_key("never", "t", 0), None), (offset_key("gg", "t", 0), None)) == []
    assert write((second, b"2"), (first, b"2"), (first, None)) == ["g"]
    log.close(clean=False)
    log = open_log(tmp_path)
    assert list(log.groups.ids_with_offsets()) == ["g"]
    log.close()


def test_rows_of_several_index_updates_are_complete(tmp_path: Path) -> None:
    log = open_log(tmp_path, durability="process")
    for start in range(0, 7000, 100):
        log.append_rows(
            OFFSETS_TOPIC,
            [
                TopicRow(n % 50, offset_key(f"g{n % 90}", "t", n % 11), b"%d" % n, NOW)
                for n in range(start, start + 100)
            ],
        )
        log.flush()
    ends = [offsets_partition(log, index).high_watermark for index in range(50)]
    log.close(clean=False)
    log = open_log(tmp_path, durability="process")
    assert [offsets_partition(log, index).high_watermark for index in range(50)] == ends == [140] * 50
    newest = {offset_key(f"g{n % 90}", "t", n % 11): b"%d" % n for n in range(7000)}
    found = {row.key: row.value for group in log.groups.ids_with_offsets() for row in log.groups.offset_rows(group)}
    assert found == newest
    log.close()


@pytest.mark.parametrize("change", ["value = x'00ff'", "timestamp = timestamp + 1", "partition = partition + 1"])
def test_a_changed_row_is_detected_when_it_is_read(tmp_path: Path, change: str) -> None:
    """The checksums of pages cannot detect a row that is changed before it reaches its page."""
    log = open_log(tmp_path)
    log.append_rows(OFFSETS_TOPIC, [TopicRow(3, offset_key("g", "t", 0), b"\x00\x03", 5)])
    log.flush()
    log.close()
    store = Store(Files(FileOps(), durable=True, limit=8), str(tmp_path), Failure(), accept_loss=False)
    store.execute(f"UPDATE offsets_log SET {change}")
    store.close()
    log = open_log(tmp_path)
    with pytest.raises(DamageError, match=r"__consumer_offsets-. at offset 0 fails its checksum"):
        log.groups.offset_rows("g")
    log.close()
