"""A rescue brings back every record of a directory whose store is damaged, and what is left of the committed offsets."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from broker.protocol.offsets_topic import OffsetCommitKey, OffsetCommitValue, encode_key, encode_value, partition_for
from broker.rescue import holding, plan_rescue, rescue
from broker.storage import OFFSETS_TOPIC, Appended, DamageError, Log, TopicRow
from broker.storage.rescue.plan import RescuePlan
from broker.storage.store.checked_pages import PAGE_BYTES
from tests.harness.stores import NOW, append, batch, open_log, stored, sweep, topic_log

SMALL: dict[str, Any] = {"segment_bytes": 4000, "compaction_interval_ms": 0}
GROUPS, COMMITS = 40, 400
PRODUCER: dict[str, Any] = {"producer_id": 7, "producer_epoch": 2}
Damage = Callable[[Path, random.Random], None]


class Expected(NamedTuple):
    """What the directory held: records with offsets by partition, configs, and the newest offset of each key."""

    cluster_id: str
    topic_ids: dict[str, bytes]
    configs: dict[str, dict[str, str]]
    records: dict[tuple[str, int], list[tuple[int, bytes | None, bytes | None]]]
    ends: dict[tuple[str, int], int]
    offsets: dict[tuple[str, str, int], int]


def fill(path: Path, *, clean: bool = False) -> Expected:
    """Topics of several kinds and committed offsets; some of the store is in its file, some in the WAL."""
    log = open_log(path, **SMALL)
    log.create_topic("plain", 3, {"retention.ms": "-1", "max.message.bytes": "2000000"})
    log.create_topic("compacted", 1, {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0"})
    log.create_topic("unwritten", 2, {})
    offsets: dict[tuple[str, str, int], int] = {}
    for number in range(COMMITS):
        partition = topic_log(log, "plain", number % 2)
        append(partition, b"%d" % number * 9, base_sequence=number // 2, **PRODUCER)
        if number % 3 == 0:
            append(topic_log(log, "compacted"), (b"key %d" % (number % 9), b"%d" % number * 20))
        commit(log, offsets, f"group {number % GROUPS}", "plain", number % 3, number)
        if number % 10 == 0:
            log.flush()
        if number == COMMITS // 2:
            sweep(log)
    log.groups.set_generation_floor("group 1", 4)
    log.flush()
    expected = Expected(
        log.cluster_id,
        {name: topic.topic_id for name, topic in log.topics.items()},
        {name: dict(topic.configs) for name, topic in log.topics.items()},
        *contents(log, ["plain", "compacted"]),
        offsets,
    )
    log.close(clean=clean)
    return expected


def commit(
    log: Log, offsets: dict[tuple[str, str, int], int], group: str, topic: str, partition: int, offset: int
) -> None:
    key = encode_key(OffsetCommitKey(group, topic, partition))
    value = encode_value(OffsetCommitValue(offset=offset, commit_timestamp=NOW, metadata="m" * (offset % 7)))
    log.append_rows(OFFSETS_TOPIC, [TopicRow(partition_for(group), key, value, NOW)])
    offsets[group, topic, partition] = offset


def contents(
    log: Log, names: list[str]
) -> tuple[dict[tuple[str, int], list[tuple[int, bytes | None, bytes | None]]], dict[tuple[str, int], int]]:
    records, ends = {}, {}
    for name in names:
        for index in range(log.topics[name].partition_count):
            partition = topic_log(log, name, index)
            records[name, index] = [(record.offset, record.key, record.value) for record in stored(partition)]
            ends[name, index] = partition.log_end_offset
    return records, ends


def rescued(path: Path) -> tuple[RescuePlan, Log]:
    """Rescue into a new directory and open it. The old one must not change."""
    before = {file: file.read_bytes() for file in path.rglob("*") if file.is_file() and file.name != "lock"}
    into = path.with_name(f"{path.name}-rescued")
    with holding(path):
        plan = plan_rescue(path, lambda size: None)
        rescue(plan, into, lambda size: None)
    assert {file: file.read_bytes() for file in path.rglob("*") if file.is_file() and file.name != "lock"} == before
    log = open_log(into, **SMALL)
    assert log.losses == []
    return plan, log


def check(log: Log, plan: RescuePlan, expected: Expected) -> None:
    """Everything in segments is back; readable offsets are those that were committed at some time."""
    assert contents(log, ["plain", "compacted"]) == (expected.records, expected.ends)
    for name in ("plain", "compacted"):
        assert log.topics[name].topic_id == expected.topic_ids[name]
        assert dict(log.topics[name].configs) == expected.configs[name]
    assert log.cluster_id == expected.cluster_id
    assert log.next_producer_id() > PRODUCER["producer_id"]
    for found in plan.offsets:
        newest = expected.offsets[found.group, found.topic, found.partition]
        assert found.offset <= newest
        assert found.offset == newest or not plan.store_is_intact
    assert not any(partition.lost for topic in plan.topics for partition in topic.partitions)
    last = (COMMITS - 1) // 2
    again = batch(b"%d" % (COMMITS - 1) * 9, base_sequence=last, **PRODUCER)
    appended = topic_log(log, "plain", 1).append(again, wall_ms=NOW)
    assert isinstance(appended, Appended)
    assert (appended.duplicate, appended.base_offset) == (True, last)
    append(topic_log(log, "plain", 1), b"next", base_sequence=last + 1, **PRODUCER)


# -- damages


def both(change: Callable[[Path, random.Random], None]) -> Damage:
    def damage(path: Path, randomness: random.Random) -> None:
        for name in ("store.db", "store.db-wal"):
            change(path / name, randomness)

    return damage


def flip(file: Path, randomness: random.Random, low: int, high: int, count: int = 1) -> None:
    content = bytearray(file.read_bytes())
    for _ in range(count):
        content[randomness.randrange(low, min(high, len(content)))] ^= 1 << randomness.randrange(8)
    file.write_bytes(content)


def in_database(low: int, high: int, count: int = 1) -> Damage:
    """Flips in the file of the database, after its WAL was moved into it: every page counts."""

    def damage(path: Path, randomness: random.Random) -> None:
        open_log(path, **SMALL).close()
        flip(path / "store.db", randomness, low, high, count)

    return damage


def pages_of_kind(kind: int) -> Damage:
    def damage(path: Path, randomness: random.Random) -> None:
        open_log(path, **SMALL).close()
        file = path / "store.db"
        content = bytearray(file.read_bytes())
        starts = [at for at in range(PAGE_BYTES, len(content), PAGE_BYTES) if content[at] == kind]
        for start in starts:
            content[start + randomness.randrange(PAGE_BYTES)] ^= 4
        assert starts
        file.write_bytes(content)

    return damage


def cut(file: Path, share: float) -> None:
    content = file.read_bytes()
    file.write_bytes(content[: int(len(content) * share)])


def truncated(share: float, *, with_wal: bool = True) -> Damage:
    def damage(path: Path, randomness: random.Random) -> None:
        open_log(path, **SMALL).close()
        cut(path / "store.db", share)
        if not with_wal:
            (path / "store.db-wal").unlink(missing_ok=True)

    return damage


def without(*names: str) -> Damage:
    def damage(path: Path, randomness: random.Random) -> None:
        for name in names:
            (path / name).unlink()

    return damage


def filled(name: str, byte: bytes | None) -> Damage:
    def damage(path: Path, randomness: random.Random) -> None:
        size = (path / name).stat().st_size
        (path / name).write_bytes(randomness.randbytes(size) if byte is None else byte * size)

    return damage


def pages_swapped(path: Path, randomness: random.Random) -> None:
    open_log(path, **SMALL).close()
    content = (path / "store.db").read_bytes()
    pages = [content[at : at + PAGE_BYTES] for at in range(0, len(content), PAGE_BYTES)]
    pages[1:] = pages[:0:-1]
    (path / "store.db").write_bytes(b"".join(pages))


def shifted(path: Path, randomness: random.Random) -> None:
    open_log(path, **SMALL).close()
    content = (path / "store.db").read_bytes()
    (path / "store.db").write_bytes(content[:3000] + content[3001:] + b"\0")


DAMAGES: dict[str, Damage] = {
    "a flip in the file header": in_database(0, 16),
    "a flip in the page size": in_database(16, 18),
    "a flip in the schema": in_database(100, 4000),
    "flips in the schema": in_database(0, 4096, 30),
    "a flip in the page of the meta table": in_database(2 * PAGE_BYTES, 3 * PAGE_BYTES),
    "a flip in the page of the commits": in_database(3 * PAGE_BYTES, 4 * PAGE_BYTES),
    "a flip in the page of the topics": in_database(PAGE_BYTES, 2 * PAGE_BYTES),
    "a flip in each of the first pages": in_database(0, 20 * PAGE_BYTES, 60),
    "a thousand flips": in_database(0, 1 << 30, 1000),
    "all leaves of tables": pages_of_kind(0x0D),
    "all leaves of indexes": pages_of_kind(0x0A),
    "all interior pages of tables": pages_of_kind(0x05),
    "the file cut to nothing": truncated(0),
    "the file cut in the header": truncated(0.0005),
    "the file cut in the schema": truncated(0.02),
    "half of the file": truncated(0.5),
    "most of the file": truncated(0.9),
    "the file cut, the WAL gone": truncated(0.3, with_wal=False),
    "no store": without("store.db"),
    "no store and no WAL": without("store.db", "store.db-wal"),
    "no store, no WAL, no marker, no synced ends": without("store.db", "store.db-wal", "commit-marker", "synced-ends"),
    "zeros": filled("store.db", b"\0"),
    "noise": both(lambda file, randomness: file.write_bytes(randomness.randbytes(file.stat().st_size))),
    "pages in the wrong order": pages_swapped,
    "one byte missing": shifted,
    "a foreign file": lambda path, _: (path / "store.db").write_text("-- a dump of another database\n" * 4000) and None,
}


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Expected]:
    path = tmp_path_factory.mktemp("original") / "data"
    return path, fill(path)


@pytest.mark.parametrize("name", DAMAGES)
def test_every_record_is_back_whatever_happened_to_the_store(
    original: tuple[Path, Expected], tmp_path: Path, name: str
) -> None:
    source, expected = original
    path = tmp_path / "data"
    shutil.copytree(source, path)
    DAMAGES[name](path, random.Random(name))
    shutil.copytree(path, tmp_path / "tried")
    with pytest.raises(DamageError, match="kgctl broker rescue"):
        open_log(tmp_path / "tried", **SMALL).close()
    plan, log = rescued(path)
    assert not plan.store_is_intact
    check(log, plan, expected)
    log.close()
