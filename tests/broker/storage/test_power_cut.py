"""Acknowledged data survives a power cut at any moment, on a disk that drops, reorders and tears unsynced writes."""

from __future__ import annotations

import gc
import random
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from broker.storage import OFFSETS_TOPIC, DamageError, StorageError, TopicRow
from tests.broker.storage.power import EarlierOps, RecordingOps
from tests.harness.stores import NOW, FaultyOps, append, open_log, stored, sweep, topic_log, values

pytestmark = pytest.mark.usefixtures("quick_collections")

SETTINGS: dict[str, Any] = {"segment_bytes": 700, "compaction_interval_ms": 0, "retention_check_interval_ms": 0}
FLUSHES = 60
IMAGES = 250
KEY = b"\0\1\0\1g\0\1t\0\0\0\0"


def run(path: Path, durability: str) -> RecordingOps:
    """Flush several times on a recorded disk; flush N is acknowledged as "N"."""
    path.mkdir()
    ops = RecordingOps(path)
    log = open_log(path, file_ops=ops, durability=durability, **SETTINGS)
    topic_log(log, "compacted", cleanup_policy="compact", min_cleanable_dirty_ratio="0")
    for number in range(FLUSHES):
        append(topic_log(log), b"%d" % number, producer_id=7, producer_epoch=0, base_sequence=number)
        if number % 3 == 0:
            append(topic_log(log, "compacted"), (b"k%d" % (number % 4), b"%d" % number))
        log.append_rows(OFFSETS_TOPIC, [TopicRow(1, KEY, b"%d" % number, NOW)])
        log.groups.set_generation_floor("g", number)
        if number % 20 == 7:
            append(topic_log(log, f"passing {number}"), b"x")
        log.flush()
        ops.acknowledge(str(number))
        if number % 20 == 9:
            log.delete_topic(f"passing {number - 2}")
        if number % 10 == 0:
            sweep(log)
    log.close()
    return ops


def lost(path: Path, acknowledged: int) -> str | None:
    """What is missing of the flushes up to `acknowledged`; None if nothing is."""
    try:
        log = open_log(path, **SETTINGS)
    except DamageError as error:
        return str(error)
    try:
        if log.losses:
            return log.losses[0]
        if acknowledged < 0:
            return None
        count = len(values(topic_log(log)))
        if values(topic_log(log)) != [(n, b"%d" % n) for n in range(count)] or count <= acknowledged:
            return f"{count} records of {acknowledged + 1}"
        if log.groups.generation_floors().get("g", -1) < acknowledged:
            return "a generation floor"
        if int(log.groups.offset_rows("g")[0].value or b"-1") < acknowledged:
            return "an offset"
        expected = {b"k%d" % (n % 4): n for n in range(0, acknowledged + 1, 3)}
        found = {r.key: int(r.value or b"-1") for r in stored(topic_log(log, "compacted"))}
        if any(found.get(key, -1) < number for key, number in expected.items()):
            return "a compacted key"
        return None
    finally:
        log.close(clean=False)


def images(tmp_path: Path, durability: str, count: int) -> list[str]:
    """The losses of `count` power cuts at random moments."""
    ops = run(tmp_path / "live", durability)
    randomness = random.Random(5)
    found = []
    for _ in range(count):
        cut = randomness.randrange(len(ops.events) + 1)
        acknowledged = [int(path) for kind, path, _, _ in ops.events[:cut] if kind == "acknowledge"]
        ops.image(cut, tmp_path / "image", randomness)
        missing = lost(tmp_path / "image", acknowledged[-1] if acknowledged else -1)
        if missing is not None:
            found.append(f"cut at {cut}: {missing}")
        shutil.rmtree(tmp_path / "image")
    return found


def test_acknowledged_flushes_survive_every_power_cut(tmp_path: Path) -> None:
    assert images(tmp_path, "power", IMAGES) == []


def test_the_same_cuts_lose_data_without_syncs(tmp_path: Path) -> None:
    assert len(images(tmp_path, "process", 40)) > 10


def test_no_start_refuses_what_a_power_cut_left_of_durability_process(tmp_path: Path) -> None:
    ops = run(tmp_path / "live", "process")
    randomness = random.Random(3)
    image = tmp_path / "image"
    losses = 0
    for _ in range(25):
        ops.image(randomness.randrange(len(ops.events) + 1), image, randomness)
        for _ in range(2):
            # Kills during the first starts change nothing.
            with suppress(StorageError):
                dying = FaultyOps(fail_at=randomness.randrange(1, 40))
                durability = randomness.choice(["power", "process"])
                open_log(image, file_ops=dying, durability=durability, **SETTINGS).close(clean=False)
            gc.collect()  # the database of a start that failed
        log = open_log(image, **SETTINGS)
        losses += len(log.losses)
        log.close(clean=False)
        log = open_log(image, **SETTINGS)
        assert log.losses == []
        log.close()
        shutil.rmtree(image)
    assert losses


def test_unsynced_bytes_of_a_killed_broker_are_synced_before_they_are_served(tmp_path: Path) -> None:
    (tmp_path / "live").mkdir()
    ops = RecordingOps(tmp_path / "live")
    log = open_log(tmp_path / "live", file_ops=ops)
    append(topic_log(log), b"acknowledged")
    log.flush()
    append(topic_log(log), b"written")
    log.close(clean=False)
    log = open_log(tmp_path / "live", file_ops=ops)
    seen = topic_log(log).high_watermark
    assert seen == 2
    randomness = random.Random(1)
    for _ in range(10):
        ops.image(len(ops.events), tmp_path / "image", randomness)
        after = open_log(tmp_path / "image")
        assert len(values(topic_log(after))) == seen
        after.close()
        shutil.rmtree(tmp_path / "image")
    log.close()


@pytest.mark.parametrize("clean", [True, False])
def test_durability_power_syncs_what_durability_process_acknowledged(tmp_path: Path, clean: bool) -> None:
    (tmp_path / "live").mkdir()
    ops = RecordingOps(tmp_path / "live")
    log = open_log(tmp_path / "live", file_ops=ops, durability="process")
    for number in range(5):
        append(topic_log(log), b"%d" % number)
        log.flush()
    log.close(clean=clean)
    log = open_log(tmp_path / "live", file_ops=ops)
    randomness = random.Random(1)
    for _ in range(10):
        ops.image(len(ops.events), tmp_path / "image", randomness)
        after = open_log(tmp_path / "image")
        assert len(values(topic_log(after))) == 5
        after.close()
        shutil.rmtree(tmp_path / "image")
    log.close()


def test_the_marker_of_an_older_format_survives_every_power_cut_of_its_adoption(tmp_path: Path) -> None:
    live = tmp_path / "live"
    log = open_log(live, file_ops=EarlierOps())
    log.groups.set_generation_floor("g", 1)
    log.close()
    older_database = (live / "store.db").read_bytes()
    log = open_log(live, file_ops=EarlierOps())
    log.groups.set_generation_floor("g", 2)
    log.close()
    database = (live / "store.db").read_bytes()
    (live / "commit-marker").rename(live / "watermark")
    ops = RecordingOps(live)
    before = len(ops.events)
    log = open_log(live, file_ops=ops)
    log.groups.set_generation_floor("g", 3)
    log.close()
    assert not (live / "watermark").exists()
    randomness = random.Random(2)
    image = tmp_path / "image"
    for cut in [*range(before, len(ops.events) + 1)] * 3:
        ops.image(cut, image, randomness)
        log = open_log(image)
        assert log.losses == []
        assert log.groups.generation_floors()["g"] >= 2
        log.close(clean=False)
        shutil.rmtree(image)
        # The evidence is still there: an older copy of the database is noticed.
        ops.image(cut, image, randomness)
        (image / "store.db").write_bytes(older_database)
        (image / "store.db-wal").unlink(missing_ok=True)
        with pytest.raises(DamageError, match=r"are lost|one history"):
            open_log(image)
        shutil.rmtree(image)
    # The old file cannot reappear and hide the loss of a later commit.
    for _ in range(10):
        ops.image(len(ops.events), image, randomness)
        (image / "store.db").write_bytes(database)
        (image / "store.db-wal").unlink(missing_ok=True)
        with pytest.raises(DamageError, match="are lost"):
            open_log(image)
        shutil.rmtree(image)
