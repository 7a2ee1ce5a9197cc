"""Offsets of deleted topics and groups: gone at once, tombstones in slices, and new commits stay."""

from __future__ import annotations

from pathlib import Path

import pytest

from broker.storage import OFFSETS_TOPIC, Log, TopicRow
from broker.storage.rows.offset_removals import SCANNED_KEYS
from tests.broker.storage.test_stored_groups import group_key, offset_key
from tests.harness.stores import NOW, open_log, stored

LATER = NOW + 1000


def commit(log: Log, group: str, topic: str, partitions: int = 1, value: bytes = b"old") -> None:
    rows = [TopicRow(len(group) % 50, offset_key(group, topic, n), value, NOW) for n in range(partitions)]
    log.append_rows(OFFSETS_TOPIC, rows)


def offsets(log: Log, group: str) -> list[tuple[bytes, bytes | None]]:
    return [(row.key, row.value) for row in log.groups.offset_rows(group)]


def bury(log: Log) -> list[TopicRow]:
    """Append all tombstones that are due."""
    appended = []
    for rows in log.groups.tombstones(LATER):
        log.append_rows(OFFSETS_TOPIC, rows)
        log.flush()
        appended += rows
    for _ in log.groups.resolve_doubts():
        pass
    return appended


def killed(path: Path, log: Log) -> Log:
    log.close(clean=False)
    return open_log(path)


@pytest.mark.parametrize("how", ["pending", "committed", "killed"])
def test_a_removed_topic_has_no_offsets_although_its_rows_are_still_there(tmp_path: Path, how: str) -> None:
    log = open_log(tmp_path)
    for group in ("g", "tricky\0\1t", "ß" * 40):
        commit(log, group, "t", 3)
    commit(log, "g", "tt")
    commit(log, "t", "u")
    log.groups.remove_topic("t")
    if how != "pending":
        log.flush()
    if how == "killed":
        log = killed(tmp_path, log)
    assert offsets(log, "g") == [(offset_key("g", "tt", 0), b"old")]
    assert offsets(log, "tricky\0\1t") == offsets(log, "ß" * 40) == []
    assert offsets(log, "t") == [(offset_key("t", "u", 0), b"old")]
    log.flush()
    rows = bury(log)
    assert sorted(row.key for row in rows) == sorted(
        offset_key(group, "t", n) for group in ("g", "tricky\0\1t", "ß" * 40) for n in range(3)
    )
    assert {(row.value, row.timestamp_ms) for row in rows} == {(None, LATER)}
    assert {row.partition for row in rows} == {len(group) % 50 for group in ("g", "tricky\0\1t", "ß" * 40)}
    assert sorted(log.groups.ids_with_offsets()) == ["g", "t"]
    log = killed(tmp_path, log)
    assert not log.groups.has_removals
    assert bury(log) == []
    assert offsets(log, "g") == [(offset_key("g", "tt", 0), b"old")]
    log.close()


@pytest.mark.parametrize("kill", [False, True])
def test_commits_after_a_removal_stay(tmp_path: Path, kill: bool) -> None:
    log = open_log(tmp_path)
    commit(log, "g", "t", 3)
    commit(log, "h", "t", 3)
    log.groups.remove_topic("t")
    log.groups.remove_group("h")
    commit(log, "g", "t", 1, b"new")
    commit(log, "h", "t", 2, b"new")
    log.flush()
    if kill:
        log = killed(tmp_path, log)
    expected = [(offset_key("g", "t", 0), b"new")], [(offset_key("h", "t", n), b"new") for n in range(2)]
    assert (offsets(log, "g"), offsets(log, "h")) == expected
    assert sorted(row.key for row in bury(log)) == [
        offset_key("g", "t", 1),
        offset_key("g", "t", 2),
        offset_key("h", "t", 2),
    ]
    assert (offsets(log, "g"), offsets(log, "h")) == expected
    log = killed(tmp_path, log)
    assert (offsets(log, "g"), offsets(log, "h")) == expected
    assert sorted(log.groups.ids_with_offsets()) == ["g", "h"]
    log.close()


def test_a_kill_between_any_two_slices_is_continued(tmp_path: Path) -> None:
    count = 3 * SCANNED_KEYS
    log = open_log(tmp_path, durability="process")
    commit(log, "g", "t", count)
    commit(log, "g", "u", 1)
    log.groups.remove_topic("t")
    log.flush()
    turn = 0
    while log.groups.has_removals:
        turn += 1
        for rows, _ in zip(log.groups.tombstones(LATER), range(turn), strict=False):
            assert len(rows) <= SCANNED_KEYS
            log.append_rows(OFFSETS_TOPIC, rows)
            log.flush()
        log.close(clean=False)
        log = open_log(tmp_path, durability="process")
        assert offsets(log, "g") == [(offset_key("g", "u", 0), b"old")]
    assert turn > 3
    partition = log.partition(OFFSETS_TOPIC, 1)
    assert partition is not None
    assert sum(record.value is None for record in stored(partition)) == count
    log.close()


def test_a_topic_that_is_deleted_again_during_its_removal_loses_the_new_offsets_too(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    commit(log, "g", "t", SCANNED_KEYS + 1)
    log.groups.remove_topic("t")
    slices = log.groups.tombstones(LATER)
    log.append_rows(OFFSETS_TOPIC, next(slices))
    commit(log, "g", "t", 2, b"new")
    log.groups.remove_topic("t")
    for rows in slices:
        log.append_rows(OFFSETS_TOPIC, rows)
        log.flush()
    assert offsets(log, "g") == []
    log = killed(tmp_path, log)
    assert offsets(log, "g") == []
    assert list(log.groups.ids_with_offsets()) == []
    log.close()


@pytest.mark.parametrize("kill", [False, True])
def test_a_removed_group_is_not_listed(tmp_path: Path, kill: bool) -> None:
    log = open_log(tmp_path)
    commit(log, "g", "t", 2)
    commit(log, "gg", "t", 2)
    log.groups.remove_group("g")
    log.append_rows(OFFSETS_TOPIC, [TopicRow(1, group_key("g"), None, NOW)])
    log.flush()
    if kill:
        log = killed(tmp_path, log)
    assert list(log.groups.ids_with_offsets()) == ["gg"]
    assert len(bury(log)) == 2
    assert list(log.groups.ids_with_offsets()) == ["gg"]
    log.close()


def test_a_commit_while_doubts_are_resolved_keeps_its_group(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    keys = [offset_key("g", "t", n) for n in range(SCANNED_KEYS + 1)]
    for value in (b"old", None):
        log.append_rows(OFFSETS_TOPIC, [TopicRow(1, key, value, NOW) for key in keys])
        log.flush()
        log.groups.offset_rows("g")
    slices = log.groups.resolve_doubts()
    next(slices)
    log.append_rows(OFFSETS_TOPIC, [TopicRow(1, keys[0], b"new", NOW)])
    log.append_rows(OFFSETS_TOPIC, [TopicRow(1, keys[1], None, NOW)])
    log.groups.offset_rows("other")
    for _ in slices:
        pass
    log.flush()
    log = killed(tmp_path, log)
    assert list(log.groups.ids_with_offsets()) == ["g"]
    log.close()
