"""With accepted losses, segment files that changed places are put back, and no record counts as lost."""

from __future__ import annotations

import gc
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from broker.storage import DamageError, FileOps, Log, StorageError
from tests.harness.stores import FaultyOps, append, open_log, stored, sweep, topic_log

pytestmark = pytest.mark.usefixtures("quick_collections")

SETTINGS: dict[str, Any] = {"segment_bytes": 700, "index_interval_bytes": 150, "compaction_interval_ms": 0}
PARTITIONS = (("a", 0), ("a", 1), ("b", 0), ("keys", 0))
COUNT = 24

Records = dict[tuple[str, int], list[tuple[int, bytes | None]]]


class RenamingOps(FaultyOps):
    """Renames count as well."""

    def rename(self, path: str, new_path: str) -> None:
        self.step("rename")
        super().rename(path, new_path)


class Image:
    def __init__(self, path: Path, *, clean: bool) -> None:
        self.path = path
        log = open_log(path, **SETTINGS)
        topic_log(log, "a", 1)
        topic_log(log, "keys", cleanup_policy="compact", min_cleanable_dirty_ratio="0")
        for number in range(COUNT):
            for topic, index in PARTITIONS:
                # Partitions of equal shape, except for one.
                value = b"%s-%d %03d" % (topic.encode(), index, number) * (3 + (topic == "b"))
                append(topic_log(log, topic, index), (b"%d" % (number % 5), value))
            if number == COUNT - 2:
                sweep(log)
        log.flush()
        self.records = everything(log)
        self._directories = {
            (topic, index): f"segments/{log.topics[topic].topic_id.hex()}/{index}" for topic, index in PARTITIONS
        }
        log.close(clean=clean)
        gc.collect()

    def files(self, path: Path, topic: str, index: int = 0) -> list[Path]:
        return sorted((path / self._directories[topic, index]).glob("*.log"))

    def directory(self, path: Path, topic: str, index: int = 0) -> Path:
        return path / self._directories[topic, index]

    def copy(self, target: Path) -> Path:
        shutil.copytree(self.path, target)
        return target


def everything(log: Log) -> Records:
    return {
        (topic, index): [(r.offset, r.value) for r in stored(topic_log(log, topic, index))]
        for topic, index in PARTITIONS
    }


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Image:
    return Image(tmp_path_factory.mktemp("killed") / "data", clean=False)


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Image:
    return Image(tmp_path_factory.mktemp("closed") / "data", clean=True)


@pytest.fixture(params=["closed", "killed"])
def image(request: pytest.FixtureRequest) -> Image:
    found: Image = request.getfixturevalue(request.param)
    return found


def rotate(*files: Path) -> None:
    """Each takes the place of the next."""
    between = [file.rename(file.with_name(f"between-{number}")) for number, file in enumerate(files)]
    for source, target in zip(between, files[1:] + files[:1], strict=True):
        source.rename(target)


def two_sealed(image: Image, path: Path) -> None:
    rotate(*image.files(path, "a")[:2])


def three_sealed(image: Image, path: Path) -> None:
    rotate(*image.files(path, "a")[:3])


def sealed_and_active(image: Image, path: Path) -> None:
    rotate(image.files(path, "a")[1], image.files(path, "a")[-1])


def two_sealed_and_active(image: Image, path: Path) -> None:
    rotate(*image.files(path, "a")[-3:])


def all_files_of_a_partition(image: Image, path: Path) -> None:
    rotate(*image.files(path, "a"))


def partitions_of_a_topic(image: Image, path: Path) -> None:
    rotate(image.files(path, "a", 0)[0], image.files(path, "a", 1)[1])


def topics(image: Image, path: Path) -> None:
    rotate(image.files(path, "a")[0], image.files(path, "b")[1], image.files(path, "a", 1)[0])


def active_of_topics(image: Image, path: Path) -> None:
    rotate(image.files(path, "a", 0)[-1], image.files(path, "b")[-1], image.files(path, "a", 1)[-1])


def sealed_and_active_of_topics(image: Image, path: Path) -> None:
    rotate(image.files(path, "a")[0], image.files(path, "b")[-1])


def compacted(image: Image, path: Path) -> None:
    files = image.files(path, "keys")
    assert files[0].name.endswith(".1.log")
    rotate(files[0], files[-1])


def compacted_and_another_topic(image: Image, path: Path) -> None:
    rotate(image.files(path, "keys")[0], image.files(path, "a")[-1], image.files(path, "b")[0])


def with_their_indexes(image: Image, path: Path) -> None:
    files = image.files(path, "a")[0], image.files(path, "b")[0]
    rotate(*files)
    rotate(*[file.with_suffix(".index") for file in files])


def partition_directories(image: Image, path: Path) -> None:
    rotate(image.directory(path, "a"), image.directory(path, "keys"), image.directory(path, "b"))


def directories_of_two_partitions(image: Image, path: Path) -> None:
    rotate(image.directory(path, "a"), image.directory(path, "a", 1))


def topic_directories(image: Image, path: Path) -> None:
    rotate(image.directory(path, "a").parent, image.directory(path, "b").parent)


WAYS: list[Callable[[Image, Path], None]] = [
    two_sealed,
    three_sealed,
    sealed_and_active,
    two_sealed_and_active,
    all_files_of_a_partition,
    partitions_of_a_topic,
    topics,
    active_of_topics,
    sealed_and_active_of_topics,
    compacted,
    compacted_and_another_topic,
    with_their_indexes,
    partition_directories,
    directories_of_two_partitions,
    topic_directories,
]


def expect_repaired(image: Image, path: Path, **options: Any) -> None:
    log = open_log(path, accept_loss=True, **SETTINGS, **options)
    assert log.losses == []
    assert everything(log) == image.records
    log.close()
    expect_healthy(image, path)


def expect_healthy(image: Image, path: Path) -> None:
    log = open_log(path, **SETTINGS)
    assert log.losses == []
    assert everything(log) == image.records
    assert not [file for file in (path / "segments").rglob("*") if "damaged" in file.name or "moving" in file.name]
    log.close()


def expect_refused_or_right(image: Image, path: Path) -> None:
    """Without accepted losses."""
    try:
        log = open_log(path, **SETTINGS)
    except DamageError:
        return
    refused = 0
    for (topic, index), records in image.records.items():
        for offset, value in records:
            try:
                record = next(stored(topic_log(log, topic, index), offset, max_bytes=1))
            except DamageError:
                refused += 1
            else:
                assert (record.offset, record.value) == (offset, value)
    assert refused or everything(log) == image.records
    log.close(clean=False)


@pytest.mark.parametrize("way", WAYS)
def test_files_that_changed_places_are_put_back(image: Image, tmp_path: Path, way: Callable[..., None]) -> None:
    path = image.copy(tmp_path / "data")
    way(image, path)
    expect_refused_or_right(image, path)
    expect_repaired(image, path)


@pytest.mark.parametrize("way", [sealed_and_active, topics, directories_of_two_partitions])
def test_a_start_that_is_killed_while_it_puts_files_back_loses_none(
    killed: Image, tmp_path: Path, way: Callable[..., None]
) -> None:
    def begin(path: Path, ops: FileOps) -> None:
        with suppress(StorageError):
            open_log(path, accept_loss=True, file_ops=ops, **SETTINGS).close(clean=False)
        gc.collect()

    swapped = killed.copy(tmp_path / "swapped")
    way(killed, swapped)
    ops = RenamingOps()
    begin(Path(shutil.copytree(swapped, tmp_path / "counted")), ops)
    renames = [number for number, name in enumerate(ops.log, 1) if name == "rename"]
    assert len(renames) >= 4
    for number in renames:
        path = Path(shutil.copytree(swapped, tmp_path / str(number)))
        begin(path, RenamingOps(number))
        if number % 2:
            expect_refused_or_right(killed, path)
            begin(path, RenamingOps(number // 2))
        expect_repaired(killed, path)
        shutil.rmtree(path)


def flip(file: Path, position: int) -> None:
    content = bytearray(file.read_bytes())
    content[position] ^= 4
    file.write_bytes(content)


def slots(path: Path) -> Iterator[int]:
    """The positions of the slots in use."""
    content = (path / "synced-ends").read_bytes()
    return (at for at in range(128, len(content), 64) if content[at : at + 64].strip(b"\0"))


@pytest.mark.parametrize("way", [active_of_topics, sealed_and_active_of_topics, partition_directories])
def test_one_damaged_end_does_not_keep_files_from_their_places(
    image: Image, tmp_path: Path, way: Callable[..., None]
) -> None:
    for position in slots(image.path):
        path = image.copy(tmp_path / str(position))
        way(image, path)
        flip(path / "synced-ends", position + 30)
        log = open_log(path, accept_loss=True, **SETTINGS)
        assert everything(log) == image.records
        assert all("cannot be ruled out" in loss for loss in log.losses)
        log.close()
        expect_healthy(image, path)


@pytest.mark.parametrize("way", WAYS[:5])
def test_files_of_a_partition_are_put_back_without_the_synced_ends(
    image: Image, tmp_path: Path, way: Callable[..., None]
) -> None:
    path = image.copy(tmp_path / "data")
    way(image, path)
    (path / "synced-ends").unlink()
    log = open_log(path, accept_loss=True, **SETTINGS)
    assert everything(log) == image.records
    log.close()


@pytest.mark.parametrize("way", [two_sealed, topics, compacted, partition_directories])
def test_files_are_put_back_without_the_store(image: Image, tmp_path: Path, way: Callable[..., None]) -> None:
    path = image.copy(tmp_path / "data")
    way(image, path)
    for name in ("store.db", "store.db-wal"):
        (path / name).unlink(missing_ok=True)
    log = open_log(path, accept_loss=True, **SETTINGS)
    assert everything(log) == image.records
    log.close()


def test_damage_in_a_file_that_is_put_back_is_told(image: Image, tmp_path: Path) -> None:
    path = image.copy(tmp_path / "data")
    one, other = image.files(path, "a")[:2]
    end = one.read_bytes().index(b"kgctlend")
    os.truncate(one, end - 5)
    rotate(one, other)
    log = open_log(path, accept_loss=True, **SETTINGS)
    (loss,) = log.losses
    assert f"{one} is truncated: lost offsets " in loss
    found = everything(log)
    lost = set(image.records["a", 0]) - set(found["a", 0])
    assert len(lost) == 1
    assert {**found, ("a", 0): []} == {**image.records, ("a", 0): []}
    log.close()


def test_a_copy_over_another_file_does_not_push_a_good_one_aside(image: Image, tmp_path: Path) -> None:
    path = image.copy(tmp_path / "data")
    one, other = image.files(path, "a")[0], image.files(path, "b")[0]
    shutil.copy(one, other)
    log = open_log(path, accept_loss=True, **SETTINGS)
    found = everything(log)
    assert found["a", 0] == image.records["a", 0]
    assert set(found["b", 0]) < set(image.records["b", 0])
    assert any(f"{other} holds other records: lost offsets" in loss for loss in log.losses)
    assert other.with_name(f"{other.name}.damaged").read_bytes() == one.read_bytes()
    log.close()


@pytest.mark.parametrize("damage", ["cut", "flipped"])
def test_a_whole_copy_takes_the_place_of_what_is_left(image: Image, tmp_path: Path, damage: str) -> None:
    path = image.copy(tmp_path / "data")
    one, other = image.files(path, "a")[0], image.files(path, "b")[0]
    shutil.copy(one, other)
    flip(one, 70 if damage == "flipped" else 400)
    os.truncate(one, one.read_bytes().index(b"kgctlend") - 5)
    left = one.read_bytes()
    log = open_log(path, accept_loss=True, **SETTINGS)
    found = everything(log)
    assert found["a", 0] == image.records["a", 0]
    assert set(found["b", 0]) < set(image.records["b", 0])
    assert any(f"{other} is missing: lost offsets" in loss for loss in log.losses)
    assert one.with_name(f"{one.name}.damaged").read_bytes() == left
    log.close()


def test_a_copy_in_the_place_of_a_file_that_comes_back_is_kept(image: Image, tmp_path: Path) -> None:
    path = image.copy(tmp_path / "data")
    one, other = image.files(path, "b")[:2]
    rotate(one, other)
    shutil.copy(image.files(path, "a")[0], other)
    log = open_log(path, accept_loss=True, **SETTINGS)
    found = everything(log)
    assert {**found, ("b", 0): []} == {**image.records, ("b", 0): []}
    assert set(image.records["b", 0]) - set(found["b", 0]) == set(image.records["b", 0][: int(other.name[:20])])
    assert other.with_name(f"{other.name}.damaged").read_bytes() == image.files(path, "a")[0].read_bytes()
    log.close()


def test_an_active_file_that_nothing_knows_stays_beside_swapped_ones(killed: Image, tmp_path: Path) -> None:
    path = killed.copy(tmp_path / "data")
    pairs = list(zip(killed.files(path, "a", 0), killed.files(path, "a", 1), strict=True))
    for one, other in pairs[:-1]:
        rotate(one, other)
    (path / "synced-ends").unlink()
    log = open_log(path, accept_loss=True, **SETTINGS)
    assert everything(log) == killed.records
    log.close()
