"""A rescue brings back every record of a directory whose store is damaged, and what is left of the committed offsets."""

from __future__ import annotations

import random
import shutil
import tarfile
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from broker.data_directory import is_foreign
from broker.protocol.offsets_topic import OffsetCommitKey, OffsetCommitValue, encode_key, encode_value, partition_for
from broker.protocol.record_batch import BatchHeader, batches
from broker.rescue import NoData, Unusable, holding, plan_rescue, rescue
from broker.storage import OFFSETS_TOPIC, SHARE_STATE_TOPIC, Appended, DamageError, Log, TopicRow
from broker.storage.rescue.plan import RescuePlan
from broker.storage.store.checked_pages import LOCKED_PAGE, PAGE_BYTES, page_is_intact
from tests.harness.store_damages import DAMAGES, flip
from tests.harness.stores import NOW, append, batch, open_log, segment_files, stored, sweep, topic_log

SMALL: dict[str, Any] = {"segment_bytes": 4000, "compaction_interval_ms": 0}
GROUPS, COMMITS = 40, 400
PRODUCER: dict[str, Any] = {"producer_id": 7, "producer_epoch": 2}


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


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Expected]:
    path = tmp_path_factory.mktemp("original") / "data"
    return path, fill(path)


# `make durability` does all of them, with a broker and a client.
SOME = (
    "a flip in the schema",
    "a thousand flips",
    "all leaves of tables",
    "half of the file",
    "no store and no WAL",
    "noise",
    "pages in the wrong order",
)


@pytest.mark.parametrize("name", SOME)
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


# -- damaged segments beside a damaged store


def segment_of(path: Path, expected: Expected, topic: str, index: int, number: int = 0) -> Path:
    return sorted((path / "segments" / expected.topic_ids[topic].hex() / str(index)).glob("*.log"))[number]


def positions(file: Path) -> list[tuple[int, BatchHeader]]:
    content = file.read_bytes()
    end = 0
    while end + 61 <= len(content) and content[end + 16] == 2:
        end += int.from_bytes(content[end + 8 : end + 12], "big") + 12
    return list(batches(content[:end]))


@pytest.fixture
def copy(original: tuple[Path, Expected], tmp_path: Path) -> tuple[Path, Expected]:
    """A directory without its store."""
    source, expected = original
    path = tmp_path / "data"
    shutil.copytree(source, path)
    (path / "store.db").write_bytes(b"")
    return path, expected


UNCHECKED = (0, 3, 7, 8, 11, 12, 15, 16)  # bytes of a batch that its checksum does not cover


def test_flips_that_no_checksum_covers_cost_no_record(copy: tuple[Path, Expected]) -> None:
    path, expected = copy
    count = 0
    for file in sorted((path / "segments").rglob("*.log")):
        content = bytearray(file.read_bytes())
        starts = [position for position, _ in positions(file)]
        for start in starts[::-3]:
            content[start + UNCHECKED[count % 8]] ^= 2
            count += 1
        file.write_bytes(content)
    assert count > 60
    plan, log = rescued(path)
    check(log, plan, expected)
    log.close()


@pytest.mark.parametrize("at", UNCHECKED)
def test_the_last_batch_of_a_log_is_whole_after_such_a_flip(tmp_path: Path, at: int) -> None:
    path = tmp_path / "data"
    log = open_log(path)
    for number in range(3):
        append(topic_log(log), b"%d" % number)
    log.flush()
    expected = contents(log, ["t"])
    log.close(clean=False)
    (path / "store.db").unlink()
    (file,) = segment_files(path)
    content = bytearray(file.read_bytes())
    content[positions(file)[-1][0] + at] ^= 2
    file.write_bytes(content)
    _, log = rescued(path)
    assert contents(log, ["t"]) == expected
    log.close()


@pytest.mark.parametrize("which", [0, -1])
def test_a_damaged_batch_costs_its_own_records_only(copy: tuple[Path, Expected], which: int) -> None:
    path, expected = copy
    lost = []
    for number in (0, -1):
        file = segment_of(path, expected, "plain", 0, number)
        position, header = positions(file)[which]
        content = bytearray(file.read_bytes())
        content[position + 62] ^= 2
        file.write_bytes(content)
        lost.append(header.base_offset)
    plan, log = rescued(path)
    records, ends = contents(log, ["plain", "compacted"])
    assert ends == expected.ends
    assert records == expected.records | {
        ("plain", 0): [record for record in expected.records["plain", 0] if record[0] not in lost]
    }
    (found,) = [topic for topic in plan.topics if topic.topic.name == "plain"]
    assert found.partitions[0].lost == [(offset, offset) for offset in lost]
    log.close()


@pytest.mark.parametrize(
    ("number", "how"), [(0, "missing"), (1, "missing"), (-1, "missing"), (-1, "empty"), (1, "halved"), (-1, "halved")]
)
def test_the_log_end_does_not_move_back(copy: tuple[Path, Expected], number: int, how: str) -> None:
    path, expected = copy
    file = segment_of(path, expected, "plain", 0, number)
    if how == "missing":
        file.unlink()
    else:
        used = sum(header.size_bytes for _, header in positions(file))
        file.write_bytes(file.read_bytes()[: 0 if how == "empty" else used // 2])
    plan, log = rescued(path)
    records, ends = contents(log, ["plain", "compacted"])
    assert ends == expected.ends
    whole, left = expected.records["plain", 0], records["plain", 0]
    assert set(left) < set(whole)
    lost = {offset for offset, _, _ in set(whole) - set(left)}
    (found,) = [topic.partitions[0] for topic in plan.topics if topic.topic.name == "plain"]
    assert {offset for a, b in found.lost + found.unknown for offset in range(a, b + 1)} == lost
    assert append(topic_log(log, "plain", 0), b"new") == expected.ends["plain", 0]
    log.close()


def test_an_unfinished_revision_does_not_replace_a_whole_one(copy: tuple[Path, Expected]) -> None:
    path, expected = copy
    file = segment_of(path, expected, "plain", 0)
    position, _ = positions(file)[2]
    file.with_name(f"{file.stem}.1.log").write_bytes(file.read_bytes()[: position + 30])
    plan, log = rescued(path)
    check(log, plan, expected)
    log.close()


@pytest.mark.parametrize("which", [0, -2, -1])
@pytest.mark.parametrize("with_ends", [True, False])
def test_a_wild_base_offset_does_not_move_the_end_of_the_log(
    copy: tuple[Path, Expected], which: int, with_ends: bool
) -> None:
    path, expected = copy
    for number in (0, -1):
        file = segment_of(path, expected, "plain", 0, number)
        content = bytearray(file.read_bytes())
        position, _ = positions(file)[which]
        content[position : position + 8] = b"\x2a" * 8
        file.write_bytes(content)
    if not with_ends:
        (path / "synced-ends").unlink()
    _, log = rescued(path)
    records, ends = contents(log, ["plain"])
    assert len(expected.records["plain", 0]) - len(records["plain", 0]) <= 2
    assert set(records["plain", 0]) <= set(expected.records["plain", 0])
    assert expected.ends["plain", 0] - ends["plain", 0] in ((0,) if with_ends else (0, 1))
    log.close()


# -- names


def test_a_topic_without_its_file_gets_its_name_from_the_store(original: tuple[Path, Expected], tmp_path: Path) -> None:
    source, expected = original
    path = tmp_path / "data"
    shutil.copytree(source, path)
    open_log(path, **SMALL).close()
    flip(path / "store.db", random.Random(1), 0, 100)
    for file in path.glob("segments/*/topic.json"):
        file.unlink()
    plan, log = rescued(path)
    check(log, plan, expected)
    log.close()


def test_a_topic_with_a_lost_name_keeps_its_records_forever(copy: tuple[Path, Expected]) -> None:
    path, expected = copy
    (path / "store.db-wal").unlink()
    (path / "segments" / expected.topic_ids["plain"].hex() / "topic.json").write_bytes(b"{}")
    plan, log = rescued(path)
    name = f"rescued-{expected.topic_ids['plain'].hex()}"
    assert any(name in warning for warning in plan.warnings)
    records, _ = contents(log, [name])
    assert [records[name, index] for index in range(2)] == [expected.records["plain", index] for index in range(2)]
    log.flush()
    sweep(log, NOW + 10**12)
    assert contents(log, [name])[0] == records
    log.close()


def test_of_two_topics_with_one_name_the_newer_keeps_it(tmp_path: Path) -> None:
    path = tmp_path / "data"
    log = open_log(path)
    append(topic_log(log, "t"), b"old")
    log.flush()
    old = path / "segments" / log.topics["t"].topic_id.hex()
    shutil.copytree(old, tmp_path / "kept")
    log.delete_topic("t")
    log.flush()
    append(topic_log(log, "t"), b"new")
    log.flush()
    log.close()
    shutil.copytree(tmp_path / "kept", old)
    (path / "store.db").unlink()
    plan, log = rescued(path)
    other = f"t-{old.name[:16]}"
    assert any(other in warning for warning in plan.warnings)
    assert [record.value for record in stored(topic_log(log, "t"))] == [b"new"]
    assert [record.value for record in stored(topic_log(log, other))] == [b"old"]
    log.close()


def test_deleted_topics_and_offsets_stay_deleted(tmp_path: Path) -> None:
    path = tmp_path / "data"
    log = open_log(path)
    offsets: dict[tuple[str, str, int], int] = {}
    for name in ("gone", "kept"):
        append(topic_log(log, name), b"x")
        commit(log, offsets, "group", name, 0, 1)
    log.flush()
    gone = log.topics["gone"].topic_id.hex()
    shutil.copytree(path / "segments" / gone, tmp_path / "copy")
    log.delete_topic("gone")
    key = encode_key(OffsetCommitKey("group", "gone", 0))
    log.append_rows(OFFSETS_TOPIC, [TopicRow(partition_for("group"), key, None, NOW)])
    log.flush()
    log.close(clean=False)
    # A crash before the directory was renamed.
    shutil.copytree(tmp_path / "copy", path / "segments" / gone, dirs_exist_ok=True)
    (path / "segments" / f"{gone}.deleted").exists() and shutil.rmtree(path / "segments" / f"{gone}.deleted")
    (path / "store.db").write_bytes(b"")
    plan, log = rescued(path)
    assert [topic.topic.name for topic in plan.topics] == ["kept"]
    assert [(row.group, row.topic, row.offset) for row in plan.offsets] == [("group", "kept", 1)]
    log.close()


def test_records_that_were_deleted_stay_deleted(tmp_path: Path) -> None:
    path = tmp_path / "data"
    log = open_log(path, **SMALL)
    for number in range(100):
        append(topic_log(log), b"%d" % number * 9)
    log.flush()
    assert topic_log(log).delete_records(77) == 77
    log.flush()
    expected = contents(log, ["t"])
    log.close(clean=False)
    (path / "store.db").write_bytes(b"")
    plan, log = rescued(path)
    assert contents(log, ["t"]) == expected
    assert topic_log(log).log_start_offset == 77
    assert plan.topics[0].partitions[0].lost == []
    log.close()


def test_what_compaction_removed_is_not_called_lost(tmp_path: Path) -> None:
    path = tmp_path / "data"
    log = open_log(path, segment_bytes=600, compaction_interval_ms=0)
    compacted = topic_log(log, "t", cleanup_policy="compact", min_cleanable_dirty_ratio="0")
    for number in range(60):
        append(compacted, (b"key", b"%d" % number * 30))
    sweep(log)
    expected = contents(log, ["t"])
    log.close()
    assert expected[0]["t", 0][0][0] > 0
    (path / "store.db").write_bytes(b"")
    plan, log = rescued(path)
    assert contents(log, ["t"]) == expected
    assert topic_log(log).log_start_offset == 0
    assert plan.topics[0].partitions[0].lost == []
    log.close()


# -- committed offsets


def test_offsets_on_intact_pages_are_listed_and_long_ones_are_whole(tmp_path: Path) -> None:
    path = tmp_path / "data"
    log = open_log(path)
    offsets: dict[tuple[str, str, int], int] = {}
    long = "g" * 9000
    for number in range(3000):
        commit(log, offsets, f"group {number % 700}", "t", number % 3, number)
    commit(log, offsets, long, "t", 0, 5)
    log.flush()
    log.close()
    plan = plan_rescue(path, lambda size: None)
    assert {(row.group, row.topic, row.partition): row.offset for row in plan.offsets} == offsets
    assert all(row.note is None for row in plan.offsets)
    assert plan.store_is_intact
    content = bytearray((path / "store.db").read_bytes())
    leaves = [at for at in range(PAGE_BYTES, len(content), PAGE_BYTES) if content[at] == 0x0D]
    for start in leaves[::4]:
        content[start] ^= 1
    for start in leaves[1::4]:
        content[start + 2000 : start + 2050] = bytes(50)
    (path / "store.db").write_bytes(content)
    plan = plan_rescue(path, lambda size: None)
    found = {(row.group, row.topic, row.partition): row.offset for row in plan.offsets}
    newest = [key for key, offset in found.items() if offsets[key] == offset]
    # A damaged page still gives the rows that the damage did not reach.
    assert len(newest) > 0.97 * len(offsets)
    assert any(row.note is not None for row in plan.offsets)


def test_no_damage_makes_the_salvage_fail(original: tuple[Path, Expected], tmp_path: Path) -> None:
    source, expected = original
    path = tmp_path / "data"
    randomness = random.Random(6)
    for _ in range(12):
        shutil.copytree(source, path)
        if randomness.random() < 0.5:
            open_log(path, **SMALL).close()
        for name in ("store.db", "store.db-wal", "synced-ends", "commit-marker"):
            file = path / name
            content = bytearray(file.read_bytes())
            for _ in range(randomness.choice([0, 1, 30, 3000])):
                if content:
                    at = randomness.randrange(len(content))
                    content[at : at + 1] = randomness.randbytes(1)
            if randomness.random() < 0.3:
                content = content[: randomness.randrange(len(content) + 1)]
            file.write_bytes(content)
        plan = plan_rescue(path, lambda size: None)
        for row in plan.offsets:
            assert row.offset <= expected.offsets[row.group, row.topic, row.partition]
        assert {topic.topic.name for topic in plan.topics} >= {"plain", "compacted"}
        shutil.rmtree(path)


# -- the new directory


def test_an_unfinished_rescue_is_no_data_directory_and_is_started_again(copy: tuple[Path, Expected]) -> None:
    path, expected = copy
    into = path.with_name("data-rescued")
    draft = into / ".rescue-draft"
    shutil.copytree(path / "segments", draft / "segments")
    assert is_foreign(into)
    plan, log = rescued(path)
    check(log, plan, expected)
    log.close()
    assert not draft.exists()


def test_a_directory_that_is_no_broker_s_or_not_empty_is_refused(copy: tuple[Path, Expected], tmp_path: Path) -> None:
    path, _ = copy
    (tmp_path / "other").mkdir()
    with pytest.raises(NoData), holding(tmp_path / "other"):
        pass
    plan = plan_rescue(path, lambda size: None)
    with pytest.raises(Unusable, match="is part of the damaged directory"):
        rescue(plan, path / "new", lambda size: None)
    with pytest.raises(Unusable, match="is not empty"):
        rescue(plan, path.parent, lambda size: None)


@pytest.mark.parametrize("archive", ["format_1", "format_4", "format_5", "format_6", "format_7"])
def test_a_directory_of_an_older_format_is_brought_back_by_what_its_store_still_says(
    tmp_path: Path, archive: str
) -> None:
    with tarfile.open(Path(__file__).with_name(f"{archive}.tar.xz")) as packed:
        packed.extractall(tmp_path, filter="data")
    path = tmp_path / "store"
    shutil.copytree(path, tmp_path / "copy")
    log = open_log(tmp_path / "copy")
    names = [name for name, topic in log.topics.items() if not topic.internal]
    expected = contents(log, names)
    log.close()
    flip(path / "store.db", random.Random(2), 0, 100)
    _, log = rescued(path)
    assert contents(log, names) == expected
    log.close()


@pytest.mark.parametrize("number", [0, 1, -1])
def test_files_that_were_swapped_come_back_under_their_own_partition(
    original: tuple[Path, Expected], tmp_path: Path, number: int
) -> None:
    source, expected = original
    path = tmp_path / "data"
    shutil.copytree(source, path)
    one = segment_of(path, expected, "plain", 0, number)
    for other in (segment_of(path, expected, "plain", 1, number), segment_of(path, expected, "compacted", 0, -1)):
        content = one.read_bytes()
        one.write_bytes(other.read_bytes())
        other.write_bytes(content)
    (path / "store.db").write_bytes(b"")
    plan, log = rescued(path)
    assert any("holds the records of" in warning for warning in plan.warnings)
    check(log, plan, expected)
    log.close()


def test_swapped_directories_of_topics_keep_their_names(copy: tuple[Path, Expected]) -> None:
    path, expected = copy
    root = path / "segments"
    one, other = (root / expected.topic_ids[name].hex() for name in ("plain", "compacted"))
    one.rename(root / "aside")
    other.rename(one)
    (root / "aside").rename(other)
    plan, log = rescued(path)
    check(log, plan, expected)
    log.close()


def test_a_batch_that_was_cut_out_does_not_shift_the_ones_behind_it(copy: tuple[Path, Expected]) -> None:
    path, expected = copy
    lost = []
    for number in (0, -1):
        file = segment_of(path, expected, "plain", 0, number)
        position, header = positions(file)[4]
        content = file.read_bytes()
        file.write_bytes(content[:position] + content[position + header.size_bytes :])
        lost.append(header.base_offset)
    _, log = rescued(path)
    records, ends = contents(log, ["plain"])
    assert ends == {key: end for key, end in expected.ends.items() if key[0] == "plain"}
    assert records["plain", 0] == [record for record in expected.records["plain", 0] if record[0] not in lost]
    log.close()


def test_the_page_that_sqlite_locks_and_never_writes_is_no_damage() -> None:
    assert page_is_intact(bytes(PAGE_BYTES), LOCKED_PAGE)
    assert not page_is_intact(bytes(PAGE_BYTES), LOCKED_PAGE - 1)
    assert LOCKED_PAGE == 0x40000000 // PAGE_BYTES + 1


def test_share_groups_are_named_as_lost(tmp_path: Path) -> None:
    path = tmp_path / "data"
    log = open_log(path)
    append(topic_log(log, "t"), b"x")
    log.flush()
    log.close()
    with holding(path):
        assert not any("share groups" in warning for warning in plan_rescue(path, lambda size: None).warnings)
    log = open_log(path)
    assert list(log.share_state_rows()) == []
    log.append_rows(SHARE_STATE_TOPIC, [TopicRow(1, b"\0\0key", b"value", NOW)])
    log.flush()
    log.close()
    plan, rescued_log = rescued(path)
    assert any("share groups are not kept" in warning for warning in plan.warnings)
    assert SHARE_STATE_TOPIC not in rescued_log.topics
    rescued_log.close()
