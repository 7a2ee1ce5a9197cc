"""The rows of __kgctl_group_events: durable with the flush, read as a topic, dropped by age and size; migration."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

from broker.protocol.errors import ErrorCode
from broker.storage import EVENTS_TOPIC, OFFSETS_TOPIC, TRANSACTIONS_TOPIC, DamageError, Log, PartitionLog, TopicRow
from broker.storage.rows.retained_tables import SLICE_ROWS
from tests.broker.storage.test_stored_groups import group_key, offset_key
from tests.harness.stores import NOW, batch, open_log, stored, sweep

FORMAT_1 = Path(__file__).with_name("format_1.tar.xz")


def events(log: Log) -> PartitionLog:
    found = log.partition(EVENTS_TOPIC, 0)
    assert found is not None
    return found


def row(number: int, at_ms: int = NOW) -> TopicRow:
    return TopicRow(0, b"group-%d" % (number % 3), b"event %06d" % number, at_ms)


def values(log: Log) -> list[bytes | None]:
    return [record.value for record in stored(events(log))]


def test_the_events_topic_is_internal_bounded_and_read_only(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    topic = log.topics[EVENTS_TOPIC]
    assert (topic.internal, topic.partition_count, topic.configs["cleanup.policy"]) == (True, 1, "delete")
    assert (topic.configs["retention.ms"], topic.configs["retention.bytes"]) == ("604800000", "16777216")
    assert events(log).append(batch(b"x"), wall_ms=NOW) == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert log.partition(EVENTS_TOPIC, 1) is None
    log.close()


@pytest.mark.parametrize("clean", [True, False])
def test_flushed_events_are_visible_and_survive_a_restart(tmp_path: Path, clean: bool) -> None:
    log = open_log(tmp_path)
    log.append_rows(EVENTS_TOPIC, [row(0), row(1, NOW + 1)])
    assert log.dirty
    assert (events(log).high_watermark, events(log).log_end_offset) == (0, 2)
    assert values(log) == []
    log.append_rows(OFFSETS_TOPIC, [TopicRow(1, group_key("g"), b"metadata", NOW)])
    log.flush()
    assert events(log).high_watermark == 2
    assert values(log) == [b"event 000000", b"event 000001"]
    log.append_rows(EVENTS_TOPIC, [row(2)])
    log.close(clean=clean)
    log = open_log(tmp_path)
    expected = [b"event 000000", b"event 000001", *([b"event 000002"] if clean else [])]
    assert values(log) == expected
    assert events(log).high_watermark == len(expected)
    assert events(log).offset_for_timestamp(NOW + 1) == (1, NOW + 1)
    assert events(log).offset_of_max_timestamp() == (1, NOW + 1)
    first = next(stored(events(log)))
    assert (first.key, first.timestamp) == (b"group-0", NOW)
    log.close()


def test_old_events_are_dropped_and_offsets_continue(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.alter_topic_configs(EVENTS_TOPIC, {"retention.ms": "1000"})
    log.append_rows(EVENTS_TOPIC, [row(n, NOW + (0 if n < SLICE_ROWS + 7 else 1)) for n in range(SLICE_ROWS + 9)])
    log.flush()
    sweep(log, NOW + 1001)
    assert values(log) == [row(n).value for n in (SLICE_ROWS + 7, SLICE_ROWS + 8)]
    assert events(log).log_start_offset == SLICE_ROWS + 7
    assert events(log).read(SLICE_ROWS + 6, 1000, at_least_one=True) is None
    sweep(log, NOW + 10**6)
    assert (events(log).log_start_offset, events(log).log_end_offset) == (SLICE_ROWS + 9, SLICE_ROWS + 9)
    assert events(log).size_bytes == 0
    log.close()
    log = open_log(tmp_path)
    assert (events(log).log_start_offset, events(log).high_watermark) == (SLICE_ROWS + 9, SLICE_ROWS + 9)
    log.append_rows(EVENTS_TOPIC, [row(1)])
    log.flush()
    assert [record.offset for record in stored(events(log))] == [SLICE_ROWS + 9]
    log.close()


@pytest.mark.parametrize(("limit", "kept"), [(95, 5), (58, 4), (57, 3), (39, 3), (38, 2), (1, 1), (0, 0)])
def test_events_beyond_retention_bytes_are_dropped_oldest_first(tmp_path: Path, limit: int, kept: int) -> None:
    log = open_log(tmp_path)
    log.alter_topic_configs(EVENTS_TOPIC, {"retention.bytes": str(limit)})
    log.append_rows(EVENTS_TOPIC, [row(n) for n in range(5)])  # 19 bytes each
    log.flush()
    assert events(log).size_bytes == 5 * 19
    sweep(log, NOW)
    # As with segments, the oldest is dropped while the others alone fill the limit.
    assert len(values(log)) == kept
    log.close()


def test_a_damaged_event_is_detected_and_not_served(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.append_rows(EVENTS_TOPIC, [row(0), row(1)])
    log.flush()
    log._store.execute('UPDATE group_events SET value = ? WHERE "offset" = 1', (b"another thing",))
    with pytest.raises(DamageError, match="__kgctl_group_events-0 at offset 1 fails its checksum"):
        values(log)
    log.close()


def test_a_store_of_format_1_is_migrated_and_keeps_its_data(tmp_path: Path) -> None:
    with tarfile.open(FORMAT_1) as archive:
        archive.extractall(tmp_path, filter="data")
    for _ in range(2):
        log = open_log(tmp_path / "store")
        assert log.losses == []
        assert sorted(log.topics) == ["__consumer_offsets", EVENTS_TOPIC, TRANSACTIONS_TOPIC, "t"]
        partition = log.partition("t", 0)
        assert partition is not None
        assert [record.value for record in stored(partition)] == [b"one", b"two"]
        assert [kept.key for kept in log.groups.offset_rows("g")] == [offset_key("g", "t", 0)]
        assert list(log.groups.ids_with_offsets()) == ["g"]
        assert log.groups.generation_floors() == {"g": 7}
        log.append_rows(EVENTS_TOPIC, [row(0)])
        log.flush()
        log.close()
    log = open_log(tmp_path / "store")
    assert values(log) == [row(0).value] * 2
    log.close()
    assert not (tmp_path / "store" / "watermark").exists()
    (tmp_path / "store" / "store.db").unlink()
    with pytest.raises(DamageError, match=r"store\.db is empty or missing; it held \d+ commits"):
        open_log(tmp_path / "store")
