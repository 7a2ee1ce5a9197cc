"""Random flips and cuts of segment files, at rest and under an open log: each read returns what was written or names the file."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from broker.protocol.compression import Codec
from broker.protocol.record_batch import HEADER_BYTES, batches, decode_records
from broker.storage import DamageError, Log, PartitionLog
from tests.harness.stores import NOW, append, open_log, raw, segment_files, sweep, topic_log, used

SMALL: dict[str, Any] = {"segment_bytes": 2500, "index_interval_bytes": 600, "durability": "process"}
BATCHES = 30
PER_BATCH = 4
COUNT = BATCHES * PER_BATCH
KEYS = 70
CASES = 60

Record = tuple[int, int, bytes | None]  # offset, timestamp, value


def stamp(offset: int) -> int:
    """Ascending with steps back."""
    return NOW + offset * 10 - (25 if offset % 7 == 3 else 0)


def written(path: Path, *, clean: bool) -> list[Record]:
    """Fill a log with small segments, several index entries each; return its records."""
    log = open_log(path, **SMALL)
    partition = topic_log(log)
    for number in range(BATCHES):
        offsets = range(number * PER_BATCH, (number + 1) * PER_BATCH)
        append(
            partition,
            *(b"value %05d " % offset * 3 for offset in offsets),
            ts=[stamp(offset) for offset in offsets],
            codec=(Codec.NONE, Codec.GZIP)[number % 2],
        )
        log.flush()
    log.close(clean=clean)
    return [(offset, stamp(offset), b"value %05d " % offset * 3) for offset in range(COUNT)]


def flip(path: Path, position: int, bit: int) -> None:
    with path.open("r+b") as file:
        file.seek(position)
        old = file.read(1)[0]
        file.seek(position)
        file.write(bytes([old ^ 1 << bit]))


class Harm(NamedTuple):
    file: str
    what: str
    untouched: set[int]  # offsets in batches before the damage, and in other files


def harm(path: Path, randomness: random.Random) -> Harm:
    """Flip a bit of a file, cut it, or overwrite a part with zeros; in a segment, often in the header of a batch."""
    content = path.read_bytes()
    untouched = set(range(COUNT))
    if path.suffix == ".log":
        found = list(batches(content[: used(path)]))
        at = randomness.randrange(min(len(content), used(path) + 80))
        if randomness.random() < 0.5:
            at = randomness.choice(found)[0] + randomness.randrange(HEADER_BYTES)
        for position, header in found:
            if position + header.size_bytes > at:
                untouched -= set(range(header.base_offset, header.next_offset))
    else:
        at = randomness.randrange(len(content))
    kind = randomness.choice(["flip", "flip", "flip", "cut", "zeros"])
    if kind == "flip":
        flip(path, at, randomness.randrange(8))
    elif kind == "cut":
        os.truncate(path, at)
        if path.suffix == ".log" and path != sorted(path.parent.glob("*.log"))[-1]:
            # Nothing proves whose batches a cut leaves of a sealed segment.
            untouched -= set(range(found[0][1].base_offset, found[-1][1].next_offset))
    else:
        length = randomness.randrange(1, 600)
        path.write_bytes(content[:at] + bytes(min(length, len(content) - at)) + content[at + length :])
    return Harm(path.name, f"{kind} at {at} of {path.name}", untouched)


def any_file(path: Path, randomness: random.Random) -> Path:
    files = segment_files(path)
    if randomness.random() < 0.15:
        files = sorted(path.rglob("*.index"))
    return randomness.choice(files)


class Reading:
    """Reads in every way, and compares with what was written. `errors` counts the refused reads."""

    def __init__(self, partition: PartitionLog, truth: list[Record], harm: Harm) -> None:
        self._partition = partition
        self._truth = truth
        self._file, self._what, self._untouched = harm
        self.errors = 0

    def check(self, randomness: random.Random) -> None:
        ways: list[Callable[[random.Random], object]] = [self.fetch, self.by_time, self.newest]
        randomness.shuffle(ways)
        for way in ways:
            way(randomness)

    def _attempt(self, read: Callable[[], object]) -> object:
        try:
            return read()
        except DamageError as error:
            expect_named(self._file, error, self._what)
            self.errors += 1
            return None

    def fetch(self, randomness: random.Random) -> None:
        """Read all; after an error continue behind the record that cannot be read."""
        offset = 0
        most = randomness.choice([1, 700, 5000, 1 << 20])
        while offset < COUNT:
            content = self._attempt(
                lambda at=offset: raw(self._partition.read(at, most, at_least_one=True))  # type: ignore[misc]
            )
            if content is None:
                assert offset not in self._untouched, (self._what, offset)
                offset += 1
                continue
            assert isinstance(content, bytes)
            assert content, (self._what, offset)
            found = [record for record in records(content) if record[0] >= offset]
            assert found == self._truth[offset : offset + len(found)], (self._what, offset)
            offset += len(found)

    def by_time(self, randomness: random.Random) -> None:
        for _ in range(6):
            wanted = NOW + randomness.randrange(-50, COUNT * 10 + 50)
            expected = next(((offset, ts) for offset, ts, _ in self._truth if ts >= wanted), None)
            errors = self.errors
            found = self._attempt(lambda at=wanted: self._partition.offset_for_timestamp(at))  # type: ignore[misc]
            assert errors != self.errors or found == expected, (self._what, wanted)

    def newest(self, _: random.Random) -> None:
        newest = max(self._truth, key=lambda record: record[1])
        errors = self.errors
        found = self._attempt(self._partition.offset_of_max_timestamp)
        assert errors != self.errors or found == newest[:2], self._what


def expect_named(file: str, error: DamageError, what: str) -> None:
    assert file in str(error), (what, str(error))


def records(content: bytes) -> Iterator[Record]:
    for position, _ in batches(content):
        for record in decode_records(content, position):
            yield record.offset, record.timestamp, record.value


@pytest.fixture
def closing() -> Iterator[list[Log]]:
    logs: list[Log] = []
    yield logs
    for log in logs:
        log.close(clean=False)


@pytest.mark.parametrize("clean", [True, False])
def test_damage_at_rest_is_never_served(tmp_path: Path, clean: bool) -> None:
    truth = written(tmp_path / "store", clean=clean)
    randomness = random.Random(11)
    refused = read = 0
    for _ in range(CASES):
        path = tmp_path / "harmed"
        shutil.copytree(tmp_path / "store", path)
        if randomness.random() < 0.3:
            for index in path.rglob("*.index"):
                index.unlink()
            done = harm(randomness.choice(segment_files(path)), randomness)
        else:
            done = harm(any_file(path, randomness), randomness)
        try:
            log = open_log(path, **SMALL)
        except DamageError as error:
            expect_named(done.file, error, done.what)
            refused += 1
        else:
            reading = Reading(topic_log(log), truth, done)
            reading.check(randomness)
            read += reading.errors > 0
            log.close(clean=False)
        shutil.rmtree(path)
    assert refused
    assert read


def test_damage_under_an_open_log_is_never_served(tmp_path: Path, closing: list[Log]) -> None:
    truth = written(tmp_path, clean=True)
    log = open_log(tmp_path, **SMALL)
    closing.append(log)
    partition = topic_log(log)
    randomness = random.Random(12)
    read = 0
    for _ in range(CASES):
        file = any_file(tmp_path, randomness)
        before = file.read_bytes()
        reading = Reading(partition, truth, harm(file, randomness))
        reading.check(randomness)
        read += reading.errors > 0
        file.write_bytes(before)
    assert read > CASES / 2
    reading = Reading(partition, truth, Harm("", "undamaged", set()))
    reading.check(randomness)
    assert not reading.errors


def test_compaction_of_damaged_segments_keeps_every_record(tmp_path: Path) -> None:
    settings = SMALL | {"compaction_interval_ms": 0}
    log = open_log(tmp_path / "store", **settings)
    partition = topic_log(log, cleanup_policy="compact", min_cleanable_dirty_ratio="0")
    for offset in range(COUNT):
        append(partition, (b"key %d" % (offset % KEYS), b"value %05d" % offset * 3), ts=stamp(offset))
    log.close()
    truth = {offset: (stamp(offset), b"value %05d" % offset * 3) for offset in range(COUNT)}
    randomness = random.Random(13)
    for _ in range(CASES // 3):
        path = tmp_path / "harmed"
        shutil.copytree(tmp_path / "store", path)
        live = randomness.random() < 0.5
        log = open_log(path, **settings)
        if not live:
            log.close()
        file = randomness.choice(segment_files(path)[:-1])
        what = harm(file, randomness).what
        try:
            if not live:
                log = open_log(path, **settings)
        except DamageError as error:
            expect_named(file.name, error, what)
            shutil.rmtree(path)
            continue
        sweep(log)
        check_compacted(topic_log(log), truth, file.name[:20], what)
        log.close(clean=False)
        shutil.rmtree(path)


def check_compacted(partition: PartitionLog, truth: dict[int, tuple[int, bytes]], file: str, what: str) -> None:
    """Each record is one that was written, and the last one of each key can be read, or the error names the file."""
    unreadable = set()
    offset = 0
    found = {}
    while offset < COUNT:
        try:
            content = raw(partition.read(offset, 1, at_least_one=True))
        except DamageError as error:
            expect_named(file, error, what)
            unreadable.add(offset)
            offset += 1
            continue
        for at, ts, value in records(content):
            assert truth[at] == (ts, value), what
            found[at] = value
        offset = max((header.next_offset for _, header in batches(content)), default=offset + 1)
    for last in range(COUNT - KEYS, COUNT):
        assert last in found or last in unreadable, (what, last)
