"""With accepted losses every whole batch on disk is served, no end moves back, and what is reported is what is lost."""

from __future__ import annotations

import gc
import itertools
import os
import random
import re
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from broker.storage import DamageError, Log, StorageError
from broker.storage.errors import StoreDamageError
from tests.harness.stores import FaultyOps, append, open_log, segment_files, stored, sweep, topic_log, values

pytestmark = pytest.mark.usefixtures("quick_collections")

SETTINGS: dict[str, Any] = {"segment_bytes": 700}
FILES = ("store.db", "store.db-wal", "commit-marker", "synced-ends")
TOPICS = ("one", "two", "three")
ROUNDS = 40
LOST = re.compile(r"lost offsets ([0-9 ,to]+) of (\S+)-0")

Records = dict[str, dict[int, bytes]]


def write(log: Log, records: Records, count: int, topics: tuple[str, ...]) -> None:
    for number in range(count):
        for topic in topics:
            value = b"%s %d %d" % (topic.encode(), len(records.setdefault(topic, {})), number)
            records[topic][append(topic_log(log, topic), value)] = value
        log.flush()


@pytest.fixture(scope="module", params=[True, False], ids=["clean", "killed"])
def image(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Records]:
    """A directory after three runs, with copies of what the first two left."""
    path = tmp_path_factory.mktemp("image")
    records: Records = {}
    for run, topics in enumerate((TOPICS[:1], TOPICS[:2], TOPICS)):
        log = open_log(path / "live", **SETTINGS)
        write(log, records, 12, topics)
        log.close(clean=request.param if run == 2 else run == 0)
        shutil.copytree(path / "live", path / f"run{run}")
    return path, records


def damaged(image: Path, target: Path, randomness: random.Random) -> str:
    """Damage a copy of the image in one or two places; return what was done."""
    shutil.copytree(image / "live", target)
    done = []
    for _ in range(randomness.choice((1, 1, 2))):
        how = randomness.choice(("flip", "cut", "older", "delete", "segment", "segment", "active"))
        name = randomness.choice(FILES)
        if how in ("segment", "active"):
            files = segment_files(target)
            file = randomness.choice([f for f in files if how == "segment" or f == sorted(f.parent.glob("*.log"))[-1]])
            name, how = str(file.relative_to(target)), randomness.choice(("flip", "cut", "delete"))
        if how == "older":
            older = image / f"run{randomness.randrange(2)}"
            for rolled_back in randomness.choice((FILES[:2], FILES[:3], FILES, FILES[3:], FILES[2:3])):
                (target / rolled_back).unlink(missing_ok=True)
                if (older / rolled_back).exists():
                    shutil.copy(older / rolled_back, target / rolled_back)
        elif (target / name).exists() and (content := bytearray((target / name).read_bytes())):
            used = len(content.rstrip(b"\0")) or 1
            at = randomness.randrange(used)
            content[at] ^= 1 << randomness.randrange(8)
            if how == "delete":
                (target / name).unlink()
            else:
                (target / name).write_bytes(content if how == "flip" else content[:at])
        done.append(f"{how} {name}")
    return ", ".join(done)


def whole(directory: Path, records: Records) -> dict[str, set[int]]:
    """The offsets of records that are in a file of their topic."""
    found: dict[str, set[int]] = {topic: set() for topic in records}
    names = {value: (topic, offset) for topic in records for offset, value in records[topic].items()}
    for file in segment_files(directory):
        for match in re.finditer(rb"(?:one|two|three) \d+ \d+", file.read_bytes()):
            if match[0] in names:
                topic, offset = names[match[0]]
                found[topic].add(offset)
    return found


def reported(log: Log) -> dict[str, set[int]]:
    found: dict[str, set[int]] = {}
    for ranges, topic in (match for loss in log.losses for match in LOST.findall(loss)):
        for text in ranges.split(", "):
            first, _, last = text.partition(" to ")
            found.setdefault(topic, set()).update(range(int(first), int(last or first) + 1))
    return found


def check(log: Log, records: Records, left: dict[str, set[int]], harm: str) -> None:
    doubt = any("cannot be ruled out" in loss for loss in log.losses)
    lost = reported(log)
    for topic, expected in records.items():
        if topic not in log.topics:
            assert not left[topic], harm
            assert log.losses, harm
            continue
        partition = topic_log(log, topic)
        served = {record.offset: record.value for record in stored(partition)}
        assert all(served[offset] == expected[offset] for offset in served), harm
        # Each of up to two damages may spoil one batch and leave its text whole.
        assert len(left[topic] - served.keys()) <= 2, harm
        assert doubt or partition.log_end_offset >= len(expected), harm
        gone = {offset for offset in expected if offset not in served}
        assert doubt or gone <= lost.get(topic, set()), harm
        assert not lost.get(topic, set()) & served.keys(), harm


def contents(directory: Path) -> dict[str, bytes]:
    return {str(file): file.read_bytes() for file in directory.rglob("*") if file.is_file() and file.stat().st_size}


def is_refused(path: Path, harm: str) -> bool:
    """A start without accepted losses: refused with nothing changed, or served."""
    before = contents(path)
    try:
        log = open_log(path, **SETTINGS)
    except DamageError:
        assert before == contents(path), harm
        return True
    log.close(clean=False)
    return False


def accept(path: Path, records: Records, left: dict[str, set[int]], harm: str) -> None:
    log = open_log(path, accept_loss=True, **SETTINGS)
    check(log, records, left, harm)
    ends = {topic: topic_log(log, topic).log_end_offset for topic in log.topics if topic in TOPICS}
    for topic, end in ends.items():
        assert append(topic_log(log, topic), b"next") == end, harm
    log.flush()
    log.close(clean=False)
    log = open_log(path, **SETTINGS)
    assert log.losses == [], harm
    assert all(topic_log(log, topic).log_end_offset == end + 1 for topic, end in ends.items()), harm
    log.close()


def test_any_damage_is_refused_or_costs_only_what_is_reported(tmp_path: Path, image: tuple[Path, Records]) -> None:
    directory, records = image
    first, rounds = int(os.environ.get("KGCTL_REBUILD_SEED", "0")), int(os.environ.get("KGCTL_REBUILD_ROUNDS", ROUNDS))
    refused = unreadable = 0
    for seed in range(first, first + rounds):
        path = tmp_path / "damaged"
        harm = f"seed {seed}: {damaged(directory, path, random.Random(seed))}"
        left = whole(path, records)
        if is_refused(path, harm):
            refused += 1
        else:
            shutil.rmtree(path)
            damaged(directory, path, random.Random(seed))
        try:
            accept(path, records, left, harm)
        except StoreDamageError:
            # No start can do without the database.
            unreadable += 1
        shutil.rmtree(path)
    assert refused > rounds // 4 > unreadable


def test_a_killed_rebuild_reports_its_losses_again(tmp_path: Path, image: tuple[Path, Records]) -> None:
    directory, records = image
    for fail_at in _powers_up_to(400):
        path = tmp_path / "damaged"
        shutil.copytree(directory / "run1", path)
        victim = segment_files(path)[1]
        victim.unlink()
        left = whole(path, records)
        try:
            open_log(path, accept_loss=True, file_ops=FaultyOps(fail_at), **SETTINGS).close(clean=False)
        except StorageError:
            log = open_log(path, accept_loss=True, **SETTINGS)
            known = {
                topic: {o: v for o, v in found.items() if o < (24 if topic == "one" else 12)}
                for topic, found in records.items()
            }
            if log.losses:
                check(log, {topic: found for topic, found in known.items() if topic != "three"}, left, f"{fail_at}")
            log.close()
            committed = not log.losses
        else:
            committed = True
        shutil.rmtree(path)
        if committed:
            break
    assert fail_at > 8


def _powers_up_to(limit: int) -> Iterator[int]:
    return iter(range(1, limit, 2))


def test_lost_rows_of_topics_partitions_and_segments_are_restored(tmp_path: Path, image: tuple[Path, Records]) -> None:
    directory, records = image
    path = tmp_path / "older"
    shutil.copytree(directory / "live", path)
    for name in FILES:
        (path / name).unlink(missing_ok=True)
    with pytest.raises(DamageError):
        open_log(path, **SETTINGS)
    log = open_log(path, accept_loss=True, **SETTINGS)
    assert reported(log) == {}
    for topic, expected in records.items():
        assert {r.offset: r.value for r in stored(topic_log(log, topic))} == expected
    identity = log.cluster_id
    log.close()
    log = open_log(directory / "run2", **SETTINGS)
    assert identity == log.cluster_id
    log.close(clean=False)


def test_a_deletion_that_was_lost_is_made_again(tmp_path: Path) -> None:
    log = open_log(tmp_path / "live", **SETTINGS)
    write(log, {}, 12, TOPICS)
    log.close()
    shutil.copytree(tmp_path / "live", tmp_path / "older")
    log = open_log(tmp_path / "live", **SETTINGS)
    log.delete_topic("two")
    sweep(log)
    log.close()
    for name in FILES[:2]:
        (tmp_path / "live" / name).unlink(missing_ok=True)
        if (tmp_path / "older" / name).exists():
            shutil.copy(tmp_path / "older" / name, tmp_path / "live" / name)
    log = open_log(tmp_path / "live", accept_loss=True, **SETTINGS)
    assert "two" not in log.topics
    assert {"one", "three"} <= set(log.topics)
    log.close()


def test_a_partition_that_lost_its_tail_and_its_rows_keeps_the_offsets_of_a_torn_batch(tmp_path: Path) -> None:
    log = open_log(tmp_path, **SETTINGS)
    write(log, {}, 5, TOPICS[:1])
    log.close(clean=False)
    (file,) = segment_files(tmp_path)
    os.truncate(file, len(file.read_bytes().rstrip(b"\0")) - 3)
    (tmp_path / "synced-ends").write_bytes(b"")
    log = open_log(tmp_path, accept_loss=True, **SETTINGS)
    assert reported(log) == {"one": {4}}
    assert topic_log(log, "one").log_end_offset == 5
    log.close()


def test_an_active_segment_in_the_place_of_a_longer_sealed_one_is_not_adopted(tmp_path: Path) -> None:
    log = open_log(tmp_path, **SETTINGS)
    for number in range(12):
        append(topic_log(log, "one"), b"one %03d" % number)
        if number < 10:
            append(topic_log(log, "two"), b"2")
        log.flush()
    files = {
        topic: sorted(tmp_path.glob(f"segments/{log.topics[topic].topic_id.hex()}/0/*.log"))[0] for topic in TOPICS[:2]
    }
    log.close(clean=False)
    content = files["two"].read_bytes().rstrip(b"\0") + b"\0"  # the last byte of a batch is 0
    assert len(content) < files["one"].stat().st_size
    files["one"].write_bytes(content)
    log = open_log(tmp_path, accept_loss=True, **SETTINGS)
    assert all(record.value is None or record.value.startswith(b"one") for record in stored(topic_log(log, "one")))
    assert topic_log(log, "one").log_end_offset == 12
    log.close()


def test_the_original_of_a_tail_that_may_have_been_acknowledged_is_kept(tmp_path: Path) -> None:
    log = open_log(tmp_path, **SETTINGS)
    write(log, {}, 5, TOPICS[:1])
    log.close(clean=False)
    (file,) = segment_files(tmp_path)
    content = file.read_bytes().rstrip(b"\0") + b"\0"
    file.write_bytes(content + b"\0" * 7 + b"torn")
    (tmp_path / "synced-ends").write_bytes(b"")
    log = open_log(tmp_path, accept_loss=True, **SETTINGS)
    assert topic_log(log, "one").log_end_offset == 5
    log.close()
    assert file.with_name(file.name + ".damaged").read_bytes() == content + b"\0" * 7 + b"torn"


def test_segments_that_an_older_store_does_not_list_are_never_deleted(
    tmp_path: Path, image: tuple[Path, Records], caplog: pytest.LogCaptureFixture
) -> None:
    """All files but the segments are older copies: nothing shows it, and still nothing whole is removed."""
    directory, records = image
    path = tmp_path / "older"
    shutil.copytree(directory / "run2", path)
    for name in FILES:
        (path / name).unlink(missing_ok=True)
        if (directory / "run1" / name).exists():
            shutil.copy(directory / "run1" / name, path / name)
    shutil.rmtree(next(f for f in (path / "segments").iterdir() if b'"three"' in (f / "topic.json").read_bytes()))
    log = open_log(path, **SETTINGS)
    log.close()
    kept = {**records, "three": {}}
    found = b"".join(file.read_bytes() for file in (path / "segments").rglob("*.log*"))
    assert all(value in found for topic in kept for value in kept[topic].values())
    assert any("is not listed by the store" in message for message in caplog.messages)


def test_killed_attempts_leave_the_evidence_of_swapped_active_segments(tmp_path: Path) -> None:
    log = open_log(tmp_path / "live", **SETTINGS)
    for number in range(12):
        append(topic_log(log, "one"), b"one %03d" % number)
        if number < 2:
            append(topic_log(log, "two"), b"two %03d" % number)
        log.flush()
    log.close(clean=False)
    one, two = (next((tmp_path / "live").rglob(f"{log.topics[t].topic_id.hex()}/0/{0:020d}.log")) for t in TOPICS[:2])
    content = one.read_bytes()
    one.write_bytes(two.read_bytes())
    two.write_bytes(content)
    for step in itertools.count(20, 2):
        path = tmp_path / f"killed at {step}"
        shutil.copytree(tmp_path / "live", path)
        for _ in range(2):
            ops = FaultyOps(fail_at=step)
            with suppress(StorageError):
                open_log(path, accept_loss=True, file_ops=ops, **SETTINGS).close(clean=False)
            gc.collect()
        log = open_log(path, accept_loss=True, **SETTINGS)
        for topic in TOPICS[:2]:
            assert {value for _, value in values(topic_log(log, topic))} <= {
                b"%s %03d" % (topic.encode(), number) for number in range(12)
            } | {None}, step
        log.close()
        if ops.count < step:
            break
