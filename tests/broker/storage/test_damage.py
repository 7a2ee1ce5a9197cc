"""Damage is detected and named, a torn tail is cut, and acknowledged data is never dropped silently."""

from __future__ import annotations

import os
import random
import shutil
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from broker.protocol.record_batch import batches
from broker.storage import OFFSETS_TOPIC, DamageError, Log, PartitionLog, TopicRow
from tests.harness.stores import (
    NOW,
    append,
    batch,
    open_log,
    raw,
    segment_files,
    stored,
    sweep,
    topic_log,
    used,
    values,
)

SMALL: dict[str, Any] = {"segment_bytes": 700}
# For opening damaged copies: acknowledged syncs stay binding, and no sync slows the tests down.
QUICK: dict[str, Any] = SMALL | {"durability": "process"}


def flip(path: Path, position: int, bit: int | None = None) -> None:
    content = bytearray(path.read_bytes())
    content[position] ^= 1 << (position % 8 if bit is None else bit)
    path.write_bytes(content)


def written(path: Path, count: int, *, clean: bool) -> Log:
    log = open_log(path, **SMALL)
    for number in range(count):
        append(topic_log(log), b"value %03d" % number * 3)
        log.flush()
    log.close(clean=clean)
    return log


def read_all(path: Path) -> None:
    log = open_log(path, **QUICK)
    try:
        list(stored(topic_log(log), max_bytes=1))
    finally:
        log.close(clean=False)


def torn(path: Path, extra: bytes) -> None:
    """Write these bytes behind the last batch, like an interrupted write."""
    file = segment_files(path)[-1]
    content = file.read_bytes()
    end = used(file)
    file.write_bytes(content[:end] + extra + content[end + len(extra) :])


def test_a_torn_batch_of_any_length_is_cut(tmp_path: Path) -> None:
    written(tmp_path / "store", 5, clean=False)
    half = bytearray(batch(b"never acknowledged"))
    half[7] = 5
    for length in range(len(half)):
        path = tmp_path / f"cut{length}"
        shutil.copytree(tmp_path / "store", path)
        torn(path, bytes(half[:length]))
        log = open_log(path, **QUICK)
        assert log.losses == []
        assert len(values(topic_log(log))) == 5
        assert append(topic_log(log), b"next") == 5
        log.flush()
        log.close(clean=False)
        log = open_log(path, **QUICK)
        assert values(topic_log(log))[5:] == [(5, b"next")]
        log.close()
        shutil.rmtree(path)


def test_a_whole_batch_behind_the_synced_end_is_kept(tmp_path: Path) -> None:
    written(tmp_path, 5, clean=False)
    whole = bytearray(batch(b"written, not acknowledged"))
    whole[:16] = (5).to_bytes(8, "big") + whole[8:12] + bytes(4)
    torn(tmp_path, bytes(whole))
    log = open_log(tmp_path, **QUICK)
    assert values(topic_log(log))[5:] == [(5, b"written, not acknowledged")]
    log.close()


def test_stale_bytes_behind_a_torn_batch_stay_hidden(tmp_path: Path) -> None:
    written(tmp_path, 5, clean=False)
    torn_batch = batch(b"same length")
    stale = bytearray(batch(b"stale"))
    stale[:16] = (6).to_bytes(8, "big") + stale[8:12] + bytes(4)
    torn(tmp_path, bytes(len(torn_batch)) + bytes(stale))
    log = open_log(tmp_path, **QUICK)
    assert append(topic_log(log), b"SAME LENGTH") == 5
    log.flush()
    log.close(clean=False)
    log = open_log(tmp_path, **QUICK)
    assert values(topic_log(log))[5:] == [(5, b"SAME LENGTH")]
    log.close()


@pytest.mark.parametrize("clean", [True, False])
def test_every_truncation_of_acknowledged_bytes_is_detected(tmp_path: Path, clean: bool) -> None:
    written(tmp_path / "store", 4, clean=clean)
    (file,) = segment_files(tmp_path / "store")
    size = used(file)
    for length in range(0, size, 7):
        path = tmp_path / "cut"
        shutil.copytree(tmp_path / "store", path)
        os.truncate(segment_files(path)[0], length)
        with pytest.raises(DamageError, match=rf"{file.name}.*(truncated|damaged)"):
            read_all(path)
        shutil.rmtree(path)


@pytest.mark.parametrize("clean", [True, False])
def test_a_flipped_bit_anywhere_in_a_segment_is_detected(tmp_path: Path, clean: bool) -> None:
    written(tmp_path / "store", 12, clean=clean)
    files = segment_files(tmp_path / "store")
    assert len(files) > 1
    for file in files:
        size = used(file)
        # Batches are alike: over all of them every byte of a batch is hit.
        for position in range(0, size, 7):
            path = tmp_path / "flipped"
            shutil.copytree(tmp_path / "store", path)
            flip(path / file.relative_to(tmp_path / "store"), position)
            with pytest.raises(DamageError, match=file.name):
                read_all(path)
            shutil.rmtree(path)


def test_a_flipped_bit_is_detected_without_an_index_file(tmp_path: Path) -> None:
    written(tmp_path / "store", 12, clean=True)
    for file in (tmp_path / "store").rglob("*.index"):
        file.unlink()
    file = segment_files(tmp_path / "store")[0]
    for position in range(0, used(file), 11):
        path = tmp_path / "flipped"
        shutil.copytree(tmp_path / "store", path)
        flip(path / file.relative_to(tmp_path / "store"), position)
        with pytest.raises(DamageError, match=file.name):
            read_all(path)
        shutil.rmtree(path)


def test_a_damaged_or_missing_index_is_rebuilt(tmp_path: Path) -> None:
    written(tmp_path / "store", 30, clean=True)
    indexes = sorted((tmp_path / "store").rglob("*.index"))
    for position in range(0, indexes[0].stat().st_size, 5):
        path = tmp_path / "flipped"
        shutil.copytree(tmp_path / "store", path)
        flip(path / indexes[0].relative_to(tmp_path / "store"), position)
        (path / indexes[1].relative_to(tmp_path / "store")).unlink()
        log = open_log(path, **QUICK)
        assert len(values(topic_log(log))) == 30
        for offset in range(30):
            assert next(stored(topic_log(log), offset)).offset == offset
        log.close()
        shutil.rmtree(path)


def three_hundred(path: Path) -> tuple[Log, PartitionLog, Path, list[int]]:
    """A log with 300 batches in one segment, its file and the positions of the batches."""
    log = open_log(path, durability="process")
    partition = topic_log(log)
    for number in range(300):
        append(partition, b"value %03d" % number, ts=NOW + number)
    log.flush()
    (file,) = segment_files(path)
    return log, partition, file, [position for position, _ in batches(file.read_bytes()[: used(file)])]


@pytest.mark.parametrize("index", [True, False])
@pytest.mark.parametrize("reopened", [True, False])
def test_whole_batches_before_a_bad_one_are_served(tmp_path: Path, index: bool, reopened: bool) -> None:
    log, partition, file, positions = three_hundred(tmp_path)
    if reopened:
        log.close()
        if not index:
            file.with_suffix(".index").unlink()
        log = open_log(tmp_path)
        partition = topic_log(log)
    flip(file, positions[150] + 65)
    assert [header.base_offset for _, header in batches(raw(partition.read(0, 1 << 20, at_least_one=True)))] == [
        *range(150)
    ]
    with pytest.raises(DamageError, match=rf"{file.name} is damaged: the batch at position {positions[150]} "):
        partition.read(150, 1 << 20, at_least_one=True)
    assert [header.base_offset for _, header in batches(raw(partition.read(151, 1 << 20, at_least_one=True)))] == [
        *range(151, 300)
    ]
    log.close(clean=False)


def test_a_segment_cut_under_an_open_log_is_an_error(tmp_path: Path) -> None:
    log, partition, file, positions = three_hundred(tmp_path)
    os.truncate(file, positions[199] + 20)
    served = [header.base_offset for _, header in batches(raw(partition.read(0, 1 << 20, at_least_one=True)))]
    assert served == [*range(199)]
    for offset in (199, 250, 299):
        with pytest.raises(DamageError, match=rf"{file.name} is truncated"):
            partition.read(offset, 1 << 20, at_least_one=True)
    log.close(clean=False)


def test_a_slice_that_is_written_late_is_checked_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("broker.storage.files.CHECKED_FOR_S", -1.0)
    log, partition, file, positions = three_hundred(tmp_path)
    found = partition.read(0, 1 << 20, at_least_one=True)
    assert len(raw(found)) == used(file)
    flip(file, positions[100])  # a byte of the base offset: no client would notice
    with pytest.raises(DamageError, match=rf"{file.name}.* {positions[100]} "):
        raw(found)
    log.close(clean=False)


def test_damage_anywhere_in_a_large_batch_is_an_error(tmp_path: Path) -> None:
    log = open_log(tmp_path, durability="process")
    partition = topic_log(log)
    for value in (b"small", bytes(700_000), b"after"):
        append(partition, value)
    log.flush()
    (file,) = segment_files(tmp_path)
    first, large, last = (position for position, _ in batches(file.read_bytes()[: used(file)]))
    assert len(raw(partition.read(0, 1 << 20, at_least_one=True))) == used(file)
    for position in (large + 30, large + 200_000, last - 1):
        flip(file, position)
        assert len(raw(partition.read(0, 1 << 20, at_least_one=True))) == large - first
        with pytest.raises(DamageError, match=rf"{file.name} is damaged: the batch at position {large} "):
            partition.read(1, 1 << 20, at_least_one=True)
        flip(file, position)
    os.truncate(file, large + 300_000)
    with pytest.raises(DamageError, match=rf"{file.name} is truncated"):
        partition.read(1, 1 << 20, at_least_one=True)
    log.close(clean=False)


def test_a_changed_timestamp_does_not_decide_a_look_up(tmp_path: Path) -> None:
    log, partition, file, positions = three_hundred(tmp_path)
    for number in range(0, 300, 17):
        flip(file, positions[number] + 40)  # a byte of its max timestamp
        with pytest.raises(DamageError, match=rf"{file.name}.* {positions[number]} "):
            partition.offset_for_timestamp(NOW + number)
        flip(file, positions[number] + 40)
        assert partition.offset_for_timestamp(NOW + number) == (number, NOW + number)
    log.close(clean=False)


def test_a_changed_header_at_the_end_of_a_segment_skips_no_record(tmp_path: Path) -> None:
    log = open_log(tmp_path, segment_bytes=500, durability="process")
    partition = topic_log(log)
    for number in range(0, 30, 5):
        append(partition, *(b"value %03d" % (number + at) for at in range(5)))
    log.flush()
    for file in segment_files(tmp_path)[:-1]:
        last = max(position for position, _ in batches(file.read_bytes()[: used(file)]))
        end = int(segment_files(tmp_path)[segment_files(tmp_path).index(file) + 1].name[:20])
        for position, bit in product(range(last, last + 61), range(8)):
            flip(file, position, bit)
            with pytest.raises(DamageError, match=file.name):
                partition.read(end - 1, 1, at_least_one=True)
            flip(file, position, bit)
    assert [offset for offset, _ in values(partition)] == [*range(30)]
    log.close()


def test_an_accepted_loss_keeps_the_lost_offset_used(tmp_path: Path) -> None:
    written(tmp_path, 5, clean=False)
    (file,) = segment_files(tmp_path)
    size = used(file)
    flip(file, size - 3)
    with pytest.raises(DamageError, match="offsets 4 to 4, are there"):
        open_log(tmp_path, **QUICK)
    log = open_log(tmp_path, accept_loss=True, **QUICK)
    assert len(log.losses) == 1
    assert len(values(topic_log(log))) == 4
    assert append(topic_log(log), b"new") == 5
    log.flush()
    log.close(clean=False)
    log = open_log(tmp_path, **QUICK)
    assert log.losses == []
    assert values(topic_log(log))[4:] == [(5, b"new")]
    log.close()


# -- the store


def committed(path: Path, count: int, *, clean: bool, checkpoint: bool = False) -> None:
    log = open_log(path)
    log.create_topic("t", 3, {"retention.ms": "1000"})
    for number in range(count):
        key = b"\0\1\0\1g\0\1t" + (number % 7).to_bytes(4, "big")
        log.append_rows(OFFSETS_TOPIC, [TopicRow(number % 3, key, b"%d" % number, number)])
        log.groups.set_generation_floor("g", number)
        log.flush()
        if number == count // 2 and checkpoint:
            sweep(log)
    log.close(clean=clean)


def everything(path: Path) -> object:
    log = open_log(path)
    try:
        rows = [raw(log.partition("__consumer_offsets", p).read(0, 10**6, at_least_one=True)) for p in range(3)]  # type: ignore[union-attr]
        topics = [(t.name, t.topic_id, t.partition_count, t.configs) for t in log.topics.values()]
        return (
            rows,
            topics,
            log.groups.offset_rows("g"),
            log.groups.generation_floors(),
            list(log.groups.metadata_rows()),
        )
    finally:
        log.close(clean=False)


@pytest.mark.parametrize("name", ["store.db", "store.db-wal", "commit-marker"])
@pytest.mark.parametrize("clean", [True, False])
def test_damage_to_the_store_is_detected_or_harmless(tmp_path: Path, name: str, clean: bool) -> None:
    committed(tmp_path / "store", 40, clean=clean, checkpoint=True)
    shutil.copytree(tmp_path / "store", tmp_path / "good")
    expected = everything(tmp_path / "good")
    size = (tmp_path / "store" / name).stat().st_size
    if size == 0:
        pytest.skip("empty after a clean stop")
    randomness = random.Random(7)
    named: list[str] = []
    for attempt in range(60):
        path = tmp_path / "damaged"
        shutil.copytree(tmp_path / "store", path)
        if attempt % 4 == 3:
            os.truncate(path / name, randomness.randrange(size))
        else:
            flip(path / name, randomness.randrange(size))
        try:
            found = everything(path)
        except DamageError as error:
            named.append(str(error))
        else:
            assert found == expected
        shutil.rmtree(path)
    assert named
    assert all("store.db" in message or "commit-marker" in message for message in named)


@pytest.mark.parametrize("name", ["store.db", "store.db-wal", "commit-marker", "synced-ends"])
def test_a_missing_file_is_detected(tmp_path: Path, name: str) -> None:
    committed(tmp_path, 5, clean=False)
    (tmp_path / name).unlink()
    with pytest.raises(DamageError, match=name.removesuffix("-wal")):
        open_log(tmp_path)


def test_lost_commits_are_counted_and_may_be_accepted(tmp_path: Path) -> None:
    committed(tmp_path, 20, clean=False)
    wal = tmp_path / "store.db-wal"
    os.truncate(wal, 200_000)
    with pytest.raises(DamageError, match=r"acknowledged commits \d+ to 21 are lost"):
        open_log(tmp_path)
    log = open_log(tmp_path, accept_loss=True)
    assert len(log.losses) == 1
    floor = log.groups.generation_floors()["g"]
    assert floor < 19
    log.groups.set_generation_floor("g", 100)
    log.flush()
    log.close(clean=False)
    log = open_log(tmp_path)
    assert (log.losses, log.groups.generation_floors()) == ([], {"g": 100})
    log.close()


def test_an_accepted_loss_is_not_reported_again(tmp_path: Path) -> None:
    committed(tmp_path, 20, clean=False)
    os.truncate(tmp_path / "store.db-wal", 100_000)
    open_log(tmp_path, accept_loss=True).close(clean=False)
    log = open_log(tmp_path)
    assert log.losses == []
    log.close()


def test_an_older_copy_of_the_database_is_detected(tmp_path: Path) -> None:
    committed(tmp_path, 5, clean=True)
    old = (tmp_path / "store.db").read_bytes()
    committed_more = open_log(tmp_path)
    committed_more.groups.set_generation_floor("g", 77)
    committed_more.close()
    (tmp_path / "store.db").write_bytes(old)
    with pytest.raises(DamageError, match="are lost"):
        open_log(tmp_path)


def test_durability_process_accepts_losses_after_a_power_cut_but_not_after_a_kill(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = open_log(tmp_path, durability="process")
    for number in range(10):
        append(topic_log(log), b"%d" % number)
        log.groups.set_generation_floor("g", number)
        log.flush()
    log.close(clean=False)
    wal = tmp_path / "store.db-wal"
    os.truncate(wal, wal.stat().st_size - 5000)
    os.truncate(segment_files(tmp_path)[0], 400)
    with pytest.raises(DamageError):
        open_log(tmp_path, durability="process")
    monkeypatch.setattr("broker.storage.store.evidence.boot_id", lambda: b"another boot")
    log = open_log(tmp_path, durability="process")
    assert len(log.losses) == 2
    assert len(values(topic_log(log))) < 10
    log.close()
