"""A start detects missing and cut segment files; with accepted losses it keeps everything that can be read."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from broker.storage import DamageError, Log, StorageError
from broker.storage.settings import DAY_MS
from tests.harness.stores import (
    NOW,
    FaultyOps,
    append,
    open_log,
    segment_files,
    stored,
    sweep,
    topic_log,
    values,
)

QUICK = {"segment_bytes": 700, "durability": "process"}
COUNT = 24


def written(path: Path, *, clean: bool) -> None:
    log = open_log(path, segment_bytes=700)
    for number in range(COUNT):
        append(topic_log(log), b"value %03d" % number * 3)
        log.flush()
    log.close(clean=clean)


def base_offsets(files: list[Path]) -> list[int]:
    return [int(file.name[:20]) for file in files]


def flip(path: Path, position: int) -> None:
    content = bytearray(path.read_bytes())
    content[position] ^= 0x10
    path.write_bytes(content)


def cut(path: Path) -> None:
    os.truncate(path, 150)


def expect_recovered(path: Path, lost: set[int]) -> None:
    """All but `lost` is served at its offsets, appends continue at the old end, and the next start reports no loss."""
    log = open_log(path, accept_loss=True, **QUICK)
    assert len(log.losses) == (1 if lost else 0)
    check(log, lost)
    assert append(topic_log(log), b"new") == COUNT
    log.flush()
    log.close(clean=False)
    for accept_loss in (False, True):
        log = open_log(path, accept_loss=accept_loss, **QUICK)
        assert log.losses == []
        assert values(topic_log(log))[-1] == (COUNT, b"new")
        log.close()


def check(log: Log, lost: set[int]) -> None:
    partition = topic_log(log)
    assert partition.high_watermark == partition.log_end_offset == COUNT
    kept = [(offset, b"value %03d" % offset * 3) for offset in range(COUNT) if offset not in lost]
    assert values(partition) == kept
    for offset in range(COUNT):
        at_or_after = [record for record in kept if record[0] >= offset]
        found = [(record.offset, record.value) for record in stored(partition, offset)]
        assert found == at_or_after


@pytest.mark.parametrize("harm", [cut, Path.unlink])
@pytest.mark.parametrize("clean", [True, False])
def test_a_cut_or_missing_segment_is_detected_at_the_start(
    tmp_path: Path, harm: Callable[[Path], None], clean: bool
) -> None:
    written(tmp_path / "store", clean=clean)
    files = segment_files(tmp_path / "store")
    for file in files:
        path = tmp_path / "harmed"
        shutil.copytree(tmp_path / "store", path)
        harm(path / file.relative_to(tmp_path / "store"))
        for _ in range(2):
            with pytest.raises(DamageError, match=file.name):
                open_log(path, **QUICK)
        shutil.rmtree(path)


def test_several_losses_are_reported_in_one_line(tmp_path: Path) -> None:
    written(tmp_path, clean=True)
    files = segment_files(tmp_path)
    files[0].unlink()
    cut(files[2])
    with pytest.raises(
        DamageError, match=rf"{files[0].name} is missing \(offsets 0 to .*; 1 more segment file"
    ) as caught:
        open_log(tmp_path, **QUICK)
    assert "\n" not in str(caught.value)


def test_the_error_for_a_missing_active_segment_names_all_acknowledged_offsets(tmp_path: Path) -> None:
    written(tmp_path, clean=False)
    files = segment_files(tmp_path)
    files[-1].unlink()
    with pytest.raises(DamageError, match=rf"is missing \(offsets {base_offsets(files)[-1]} to {COUNT - 1} of "):
        open_log(tmp_path, **QUICK)


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("which", [0, 2, -1], ids=["the first", "one between", "the active"])
def test_a_missing_segment_costs_only_its_own_records(tmp_path: Path, which: int, clean: bool) -> None:
    written(tmp_path, clean=clean)
    files = segment_files(tmp_path)
    first, end = [*base_offsets(files), COUNT][which % len(files) :][:2]
    lost = set(range(first, end))
    assert len(lost) > 1
    files[which].unlink()
    expect_recovered(tmp_path, lost)


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize("which", [0, 2, -1], ids=["the first", "one between", "the active"])
def test_a_cut_segment_keeps_its_whole_batches(tmp_path: Path, which: int, clean: bool) -> None:
    written(tmp_path, clean=clean)
    file = segment_files(tmp_path)[which]
    starts = [*base_offsets(segment_files(tmp_path)), COUNT]
    first = base_offsets([file])[0]
    os.truncate(file, 150)  # one batch and a half
    expect_recovered(tmp_path, set(range(first + 1, starts[starts.index(first) + 1])))
    assert file.with_name(f"{file.name}.damaged").stat().st_size == 150


@pytest.mark.parametrize("clean", [True, False])
def test_a_flipped_bit_costs_one_batch(tmp_path: Path, clean: bool) -> None:
    written(tmp_path / "store", clean=clean)
    randomness = random.Random(3)
    files = segment_files(tmp_path / "store")
    for file in [files[0], files[-1]]:
        first = base_offsets([file])[0]
        batch_bytes = 12 + int.from_bytes(file.read_bytes()[8:12], "big")
        for _ in range(12):
            path = tmp_path / "flipped"
            shutil.copytree(tmp_path / "store", path)
            number = randomness.randrange(2)
            flip(path / file.relative_to(tmp_path / "store"), number * batch_bytes + randomness.randrange(batch_bytes))
            expect_recovered(path, {first + number})
            shutil.rmtree(path)


def test_a_loss_is_reported_with_its_offsets(tmp_path: Path) -> None:
    written(tmp_path, clean=True)
    file = segment_files(tmp_path)[1]
    first = base_offsets([file])[0]
    flip(file, 80)
    log = open_log(tmp_path, accept_loss=True, **QUICK)
    assert log.losses == [f"{file} is damaged: lost offsets {first} of t-0; it is kept as {file.name}.damaged"]
    log.close()


def test_accepting_losses_changes_nothing_in_an_undamaged_store(tmp_path: Path) -> None:
    written(tmp_path, clean=False)
    before = segment_files(tmp_path)
    log = open_log(tmp_path, accept_loss=True, **QUICK)
    assert log.losses == []
    check(log, set())
    log.close()
    assert segment_files(tmp_path) == before


def test_a_producer_continues_after_damage_to_the_tail(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    for number in range(4):
        append(topic_log(log), b"%d" % number, producer_id=7, producer_epoch=0, base_sequence=number)
        log.flush()
    log.close(clean=False)
    (file,) = segment_files(tmp_path)
    flip(file, 100)
    log = open_log(tmp_path, accept_loss=True)
    assert [offset for offset, _ in values(topic_log(log))] == [0, 2, 3]
    assert append(topic_log(log), b"4", producer_id=7, producer_epoch=0, base_sequence=4) == 4
    log.close()


def test_look_ups_by_time_work_across_a_loss(tmp_path: Path) -> None:
    log = open_log(tmp_path, segment_bytes=700)
    for number in range(COUNT):
        append(topic_log(log), b"value %03d" % number * 3, ts=1000 + number)
    log.close()
    file = segment_files(tmp_path)[1]
    first, end = base_offsets(segment_files(tmp_path))[1:3]
    file.unlink()
    log = open_log(tmp_path, accept_loss=True, segment_bytes=700)
    partition = topic_log(log)
    assert partition.offset_for_timestamp(1000 + first) == (end, 1000 + end)
    assert partition.offset_of_max_timestamp() == (COUNT - 1, 1000 + COUNT - 1)
    log.close()


def test_the_newest_record_is_one_that_is_left_after_a_loss(tmp_path: Path) -> None:
    log = open_log(tmp_path, segment_bytes=700)
    for number in range(COUNT):
        append(topic_log(log), b"value %03d" % number * 3, ts=1000 + number)
    log.close()
    files = segment_files(tmp_path)
    left = int(files[-2].name[:20]) - 1
    for file in files[-2:]:
        file.unlink()
    log = open_log(tmp_path, accept_loss=True, segment_bytes=700)
    assert topic_log(log).offset_of_max_timestamp() == (left, 1000 + left)
    assert topic_log(log).offset_for_timestamp(1000 + left + 1) is None
    log.close()


def test_compaction_continues_after_a_loss(tmp_path: Path) -> None:
    settings = QUICK | {"compaction_interval_ms": 0}
    log = open_log(tmp_path, **settings)
    partition = topic_log(log, cleanup_policy="compact", min_cleanable_dirty_ratio="0")
    for number in range(COUNT):
        append(partition, (b"k%d" % (number % 5), b"value %03d" % number * 3))
    log.close()
    files = segment_files(tmp_path)
    files[0].unlink()
    flip(files[1], 80)
    cut(files[2])
    log = open_log(tmp_path, accept_loss=True, **settings)
    assert len(log.losses) == 3
    before = {record.key: record.value for record in stored(topic_log(log))}
    sweep(log)
    assert {record.key: record.value for record in stored(topic_log(log))} == before
    assert len(list(stored(topic_log(log)))) < 10
    assert topic_log(log).log_end_offset == COUNT
    log.close()
    open_log(tmp_path, **settings).close()


def test_retention_drops_a_segment_that_lost_all_its_records(tmp_path: Path) -> None:
    written(tmp_path, clean=True)
    segment_files(tmp_path)[0].unlink()
    end = base_offsets(segment_files(tmp_path))[0]
    log = open_log(tmp_path, accept_loss=True, **QUICK)
    log.create_topic("other", 1, {})
    sweep(log)
    assert topic_log(log).log_start_offset == 0
    sweep(log, NOW + 8 * DAY_MS)
    assert topic_log(log).log_start_offset >= end
    log.close()


class RenamingFaultyOps(FaultyOps):
    def rename(self, path: str, new_path: str) -> None:
        self.step("rename")
        super().rename(path, new_path)


def test_a_failure_at_any_step_of_a_repair_loses_nothing_more(tmp_path: Path) -> None:
    written(tmp_path / "store", clean=False)
    files = segment_files(tmp_path / "store")
    first = base_offsets(files)[1]
    flip(files[1], 80)
    at = 0
    while True:
        at += 1
        path = tmp_path / "failing"
        shutil.copytree(tmp_path / "store", path)
        failed = True
        try:
            open_log(path, accept_loss=True, file_ops=RenamingFaultyOps(at), **QUICK).close(clean=False)
            failed = False
        except StorageError:
            pass
        log = open_log(path, accept_loss=True, **QUICK)
        check(log, {first})
        log.close()
        shutil.rmtree(path)
        if not failed:
            break
    assert at > 5


def test_batches_behind_a_large_damaged_batch_are_kept(tmp_path: Path) -> None:
    log = open_log(tmp_path, message_max_bytes=4 << 20)
    for value in (b"small", b"x" * (3 << 20), b"after"):
        append(topic_log(log), value)
    log.close()
    (file,) = segment_files(tmp_path)
    flip(file, file.read_bytes().index(b"x" * 100) - 60)
    log = open_log(tmp_path, accept_loss=True)
    assert values(topic_log(log)) == [(0, b"small"), (2, b"after")]
    log.close()
