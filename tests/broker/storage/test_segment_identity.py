"""A segment or index file of another partition, or another content, never passes for the one that was written."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from broker.storage import DamageError, Log, PartitionLog
from tests.harness.stores import append, open_log, segment_files, stored, sweep, topic_log, used, values

SMALL: dict[str, Any] = {"segment_bytes": 700, "index_interval_bytes": 150, "durability": "process"}
COUNT = 24


def name(topic: str, offset: int) -> bytes:
    return b"%s %03d" % (topic.encode(), offset) * 3


def written(path: Path, *topics: str, clean: bool = True) -> Log:
    """Topics with segments of equal shape: only the values differ."""
    log = open_log(path, **SMALL)
    for number in range(COUNT):
        for topic in topics:
            append(topic_log(log, topic), name(topic, number))
        log.flush()
    if clean:
        log.close()
    return log


def sealed(path: Path, log: Log, topic: str) -> list[Path]:
    return segment_files_of(path, log, topic)[:-1]


def segment_files_of(path: Path, log: Log, topic: str) -> list[Path]:
    return [file for file in segment_files(path) if file.parts[-3] == log.topics[topic].topic_id.hex()]


def swap(one: Path, other: Path) -> None:
    between = one.with_suffix(".swap")
    one.rename(between)
    other.rename(one)
    between.rename(other)


def overwrite(one: Path, other: Path) -> None:
    """Exchange the contents in place, as a copy does: open files see it."""
    first, second = one.read_bytes(), other.read_bytes()
    one.write_bytes(second)
    other.write_bytes(first)


def expect_refused_or_written(partition: PartitionLog, topic: str, files: list[Path]) -> None:
    refused = set()
    for offset in range(COUNT):
        try:
            record = next(stored(partition, offset, max_bytes=1))
        except DamageError as error:
            refused |= {file for file in files if str(file) in str(error)}
        else:
            assert (record.offset, record.value) == (offset, name(topic, offset))
    assert refused == set(files)


@pytest.mark.parametrize("exchange", [swap, overwrite])
def test_segments_swapped_between_topics_are_refused(tmp_path: Path, exchange: Callable[[Path, Path], None]) -> None:
    log = written(tmp_path, "a", "b")
    pair = sealed(tmp_path, log, "a")[1], sealed(tmp_path, log, "b")[1]
    exchange(*pair)
    log = open_log(tmp_path, **SMALL)
    for topic, file in zip("ab", pair, strict=True):
        expect_refused_or_written(topic_log(log, topic), topic, [file])
        with pytest.raises(DamageError, match="holds other records than were written: those of topic id"):
            topic_log(log, topic).read(int(file.name[:20]), 1, at_least_one=True)
        with pytest.raises(DamageError, match=str(file)):
            topic_log(log, topic).offset_for_timestamp(0 if file.name.startswith("0" * 20) else 1 << 60) or list(
                stored(topic_log(log, topic))
            )
    log.close()


@pytest.mark.parametrize("has_foreign_trailer", [True, False])
def test_a_segment_of_another_size_is_no_damaged_one(tmp_path: Path, has_foreign_trailer: bool) -> None:
    log = open_log(tmp_path, **SMALL)
    for number in range(COUNT):
        append(topic_log(log, "a"), name("a", number))
        append(topic_log(log, "b"), name("b", number)[:-8])
        log.flush()
    log.close()
    own, foreign = (sealed(tmp_path, log, topic)[0] for topic in "ab")
    content = foreign.read_bytes()
    assert len(content) > own.stat().st_size
    own.write_bytes(content if has_foreign_trailer else content[:-8])
    log = open_log(tmp_path, **SMALL)
    expect_refused_or_written(topic_log(log, "a"), "a", [own])
    log.close()


def test_segments_overwritten_by_others_under_an_open_log_are_refused(tmp_path: Path) -> None:
    log = written(tmp_path, "a", "b", clean=False)
    assert len(values(topic_log(log, "a"))) == COUNT
    pair = sealed(tmp_path, log, "a")[1], sealed(tmp_path, log, "b")[1]
    overwrite(*pair)
    for topic, file in zip("ab", pair, strict=True):
        expect_refused_or_written(topic_log(log, topic), topic, [file])
    log.close()


def test_segments_of_one_partition_cannot_take_the_place_of_others(tmp_path: Path) -> None:
    log = written(tmp_path, "a")
    files = sealed(tmp_path, log, "a")
    shutil.copy(files[1], files[0])
    log = open_log(tmp_path, **SMALL)
    expect_refused_or_written(topic_log(log, "a"), "a", [files[0]])
    log.close()


@pytest.mark.parametrize("live", [True, False])
def test_index_files_swapped_between_topics_are_rebuilt(tmp_path: Path, live: bool) -> None:
    log = written(tmp_path, "a", "b", clean=not live)
    # Batches of another size: a foreign index leads into the middle of one.
    for number in range(COUNT):
        if live:
            append(topic_log(log, "c"), name("c", number) * 2)
            log.flush()
    for one, other in zip(sealed(tmp_path, log, "a"), sealed(tmp_path, log, "b"), strict=True):
        swap(one.with_suffix(".index"), other.with_suffix(".index"))
        content = one.with_suffix(".index").read_bytes()
        if live:
            continue
        log = open_log(tmp_path, **SMALL)
        for topic in "ab":
            assert [(r.offset, r.value) for r in stored(topic_log(log, topic))] == [
                (offset, name(topic, offset)) for offset in range(COUNT)
            ]
        log.close()
        assert one.with_suffix(".index").read_bytes() != content
    log.close()


def test_a_segment_that_lost_its_trailer_keeps_its_records(tmp_path: Path) -> None:
    log = written(tmp_path, "a", clean=False)
    file = sealed(tmp_path, log, "a")[0]
    content = file.read_bytes()
    end = content.index(b"kgctlend")
    for position in range(end, len(content)):
        file.write_bytes(content[:position] + bytes([content[position] ^ 1]) + content[position + 1 :])
        assert values(topic_log(log, "a"))[0] == (0, name("a", 0))
        assert file.read_bytes() == content
    os.truncate(file, end)
    log.close()
    log = open_log(tmp_path, **SMALL)
    assert len(values(topic_log(log, "a"))) == COUNT
    assert file.read_bytes() == content
    log.close()


@pytest.mark.parametrize("reopened", [True, False])
def test_what_a_cut_left_of_a_sealed_segment_is_refused(tmp_path: Path, reopened: bool) -> None:
    log = written(tmp_path, "a", clean=reopened)
    if reopened:
        log = open_log(tmp_path, **SMALL)
    files = sealed(tmp_path, log, "a")
    for file in files:
        os.truncate(file, used(file) // 2)
    for file in files:
        with pytest.raises(DamageError, match=rf"{file.name} is truncated"):
            topic_log(log, "a").read(int(file.name[:20]), 1, at_least_one=True)
    expect_refused_or_written(topic_log(log, "a"), "a", files)
    log.close(clean=False)


@pytest.mark.parametrize("kept", [slice(None), slice(-68), slice(-400)], ids=["whole", "unsealed", "cut"])
@pytest.mark.parametrize("longer", ["a", "b"])
def test_segments_of_other_sizes_are_refused_in_the_place_of_each_other(
    tmp_path: Path, longer: str, kept: slice
) -> None:
    log = open_log(tmp_path, **SMALL)
    for number in range(COUNT):
        for topic in "ab":
            append(topic_log(log, topic), name(topic, number), name(topic, number) * (1 + 2 * (topic == longer)))
        log.flush()
    log.close()
    one, other = sealed(tmp_path, log, "a")[0], sealed(tmp_path, log, "b")[0]
    assert one.stat().st_size != other.stat().st_size
    content = other.read_bytes()[kept]
    log = open_log(tmp_path, **SMALL)
    one.write_bytes(content)
    for offset in (0, 1, 2):
        with pytest.raises(DamageError, match=str(one)):
            topic_log(log, "a").read(offset, 1, at_least_one=True)
    log.close(clean=False)


def test_an_unsealed_copy_with_other_batches_is_refused(tmp_path: Path) -> None:
    log = written(tmp_path, "a", "b")
    one, other = sealed(tmp_path, log, "a")[0], sealed(tmp_path, log, "b")[0]
    content = other.read_bytes()
    one.write_bytes(content[: content.index(b"kgctlend")])
    log = open_log(tmp_path, **SMALL)
    expect_refused_or_written(topic_log(log, "a"), "a", [one])
    log.close()
    log = open_log(tmp_path, accept_loss=True, **SMALL)
    assert len(log.losses) == 1
    assert f"{one} holds other records: lost offsets" in log.losses[0]
    assert {value for _, value in values(topic_log(log, "a"))} <= {name("a", offset) for offset in range(COUNT)}
    log.close()


def test_an_accepted_loss_brings_no_record_of_another_topic(tmp_path: Path) -> None:
    log = written(tmp_path, "a", "b")
    one, other = sealed(tmp_path, log, "a")[1], sealed(tmp_path, log, "b")[1]
    shutil.copy(other, one)
    log = open_log(tmp_path, accept_loss=True, **SMALL)
    (loss,) = log.losses
    assert f"{one} holds other records: lost offsets" in loss
    assert {value for _, value in values(topic_log(log, "a"))} <= {name("a", offset) for offset in range(COUNT)}
    assert topic_log(log, "a").log_end_offset == COUNT
    assert one.with_name(f"{one.name}.damaged").exists()
    assert len(values(topic_log(log, "b"))) == COUNT
    log.close()
    log = open_log(tmp_path, accept_loss=True, **SMALL)
    assert log.losses == []
    log.close()


def test_compacted_segments_are_bound_as_well(tmp_path: Path) -> None:
    settings = SMALL | {"compaction_interval_ms": 0}
    log = open_log(tmp_path, **settings)
    for topic in "ab":
        partition = topic_log(log, topic, cleanup_policy="compact", min_cleanable_dirty_ratio="0")
        for number in range(COUNT):
            append(partition, (b"%d" % (number % 5), name(topic, number)))
    sweep(log)
    pair = sealed(tmp_path, log, "a")[0], sealed(tmp_path, log, "b")[0]
    assert all(file.name.endswith(".1.log") for file in pair)
    swap(*pair)
    log.close()
    log = open_log(tmp_path, **settings)
    for topic in "ab":
        with pytest.raises(DamageError, match="holds other records"):
            values(topic_log(log, topic))
    log.close()
