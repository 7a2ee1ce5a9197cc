"""Each topic with records has a file that names it, so that its records can be found without the store."""

from __future__ import annotations

import json
import random
import shutil
import tarfile
from pathlib import Path
from typing import Any

import pytest

from broker.storage import FileOps, Log
from broker.storage.segments.topic_files import TopicDescription
from tests.broker.storage.power import RecordingOps
from tests.harness.stores import append, open_log, sweep, topic_log, values

SMALL: dict[str, Any] = {"segment_bytes": 700, "compaction_interval_ms": 0, "retention_check_interval_ms": 0}
ARCHIVES = ["format_1", "format_4"]


def described(path: Path) -> dict[str, tuple[int, dict[str, str]]]:
    """(partitions, configs) by name. Of two topics with one name the newer counts: the other one was deleted."""
    found = [TopicDescription.decode(file.read_bytes()) for file in path.glob("segments/*/topic.json")]
    topics = sorted((topic for topic in found if topic is not None), key=lambda topic: topic.commit_seq)
    return {topic.name: (topic.partition_count, topic.configs) for topic in topics}


def of_log(log: Log) -> dict[str, tuple[int, dict[str, str]]]:
    """The same of the store's topics that have a directory."""
    root = log.data_dir / "segments"
    return {
        topic.name: (topic.partition_count, dict(topic.configs))
        for topic in log.topics.values()
        if (root / topic.topic_id.hex()).exists()
    }


def test_the_file_follows_every_change_of_its_topic(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.create_topic("unwritten", 2, {})
    append(topic_log(log, "t", 1, retention_ms="5"), b"x")
    log.flush()
    assert described(tmp_path) == {"t": (2, {"retention.ms": "5"})}
    log.alter_topic_configs("t", {"retention.ms": None, "cleanup.policy": "compact"})
    log.add_partitions("t", 7)
    log.flush()
    assert described(tmp_path) == {"t": (7, {"cleanup.policy": "compact"})}
    (file,) = tmp_path.glob("segments/*/topic.json")
    stored = TopicDescription.decode(file.read_bytes())
    assert stored is not None
    assert (stored.topic_id, stored.cluster_id, stored.internal) == (log.topics["t"].topic_id, log.cluster_id, False)
    log.delete_topic("t")
    log.flush()
    sweep(log)
    assert described(tmp_path) == {}
    log.close()
    assert list((tmp_path / "segments").iterdir()) == []


@pytest.mark.parametrize("damage", [b"", b"{}", b"[1]", b"\xff" * 30, b'{"name": 3, "crc": 1}', None])
def test_a_start_writes_a_missing_or_damaged_file(tmp_path: Path, damage: bytes | None) -> None:
    log = open_log(tmp_path)
    append(topic_log(log, "t"), b"x")
    log.flush()
    log.close()
    (file,) = tmp_path.glob("segments/*/topic.json")
    if damage is None:
        file.unlink()
        # A crash may leave a draft.
        file.with_name("topic.json.draft").write_bytes(b"draft")
    else:
        file.write_bytes(damage)
    assert described(tmp_path) == {}
    open_log(tmp_path).close()
    assert described(tmp_path) == {"t": (1, {})}
    assert [path.name for path in file.parent.iterdir() if path.is_file()] == ["topic.json"]


def test_a_file_that_is_ahead_of_the_store_is_rewritten(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append(topic_log(log, "t"), b"x")
    log.flush()
    log.close()
    (file,) = tmp_path.glob("segments/*/topic.json")
    stored = TopicDescription.decode(file.read_bytes())
    assert stored is not None
    file.write_bytes(stored._replace(partition_count=9, configs={"retention.ms": "1"}).encode())
    assert described(tmp_path) == {"t": (9, {"retention.ms": "1"})}
    open_log(tmp_path).close()
    assert described(tmp_path) == {"t": (1, {})}


def test_one_changed_character_makes_a_file_invalid(tmp_path: Path) -> None:
    content = TopicDescription("t", bytes(range(16)), 3, False, {"retention.ms": "5"}, "cluster", 17).encode()
    assert TopicDescription.decode(content) is not None
    for at in range(len(content) - 1):
        for other in b'x9"':
            if other != content[at]:
                assert TopicDescription.decode(content[:at] + bytes([other]) + content[at + 1 :]) is None
    assert json.loads(content)["name"] == "t"


def change_topics(path: Path) -> tuple[RecordingOps, list[dict[str, tuple[int, dict[str, str]]]]]:
    """Write and change topics on a recorded disk; flush N is acknowledged as "N". Return what each flush made durable."""
    path.mkdir()
    ops = RecordingOps(path)
    log = open_log(path, file_ops=ops, **SMALL)
    durable = []
    for number in range(12):
        append(topic_log(log, f"t{number % 3}"), b"%d" % number)
        if number % 2:
            log.alter_topic_configs(f"t{number % 3}", {"retention.bytes": str(10**9 + number)})
        if number % 3 == 1:
            log.add_partitions("t1", number + 1)
        if number == 8:
            log.delete_topic("t2")
        log.flush()
        durable.append(of_log(log))
        ops.acknowledge(str(number))
    log.close()
    return ops, durable


def kill(ops: RecordingOps, cut: int, target: Path) -> None:
    """Write the page cache after `cut` events, which is what kill -9 leaves."""
    state = ops.state_after(cut)
    target.mkdir()
    for name in sorted(state.cached):
        stored, path = state.cached[name], target / Path(name).relative_to(ops.root)
        if stored is None:
            path.mkdir()
        else:
            stored.sync()
            path.write_bytes(stored.durable)


@pytest.mark.parametrize("ending", ["kill", "power cut"])
def test_a_crash_at_any_step_leaves_a_valid_file_for_acknowledged_records(tmp_path: Path, ending: str) -> None:
    ops, durable = change_topics(tmp_path / "live")
    randomness = random.Random(8)
    image = tmp_path / "image"
    # Between two operations of the store nothing changes in the topic files.
    cuts = [n for n in range(len(ops.events) + 1) if n == len(ops.events) or "store.db" not in ops.events[n][1]]
    for cut in cuts:
        acknowledged = [int(path) for kind, path, _, _ in ops.events[:cut] if kind == "acknowledge"]
        if ending == "kill":
            kill(ops, cut, image)
        else:
            ops.image(cut, image, randomness)
        if acknowledged:
            before, after = durable[acknowledged[-1]], durable[min(acknowledged[-1] + 1, len(durable) - 1)]
            found = described(image)
            for name, topic in before.items():
                assert found.get(name) in (topic, after.get(name)) or name not in after, (cut, name)
        if cut % 5 == 0:
            log = open_log(image, **SMALL)
            assert log.losses == []
            assert {name: described(image)[name] for name in of_log(log)} == of_log(log)
            log.close(clean=False)
        shutil.rmtree(image)


@pytest.mark.parametrize("archive", ARCHIVES)
def test_the_first_start_on_an_older_format_writes_the_files_whenever_it_is_cut_short(
    tmp_path: Path, archive: str
) -> None:
    with tarfile.open(Path(__file__).with_name(f"{archive}.tar.xz")) as packed:
        packed.extractall(tmp_path, filter="data")
    live = tmp_path / "store"
    assert described(live) == {}
    ops = RecordingOps(live)
    before = len(ops.events)
    log = open_log(live, file_ops=ops, **SMALL)
    expected = of_log(log)
    records = {name: values(topic_log(log, name)) for name in expected}
    assert described(live) == expected != {}
    log.close()
    randomness = random.Random(9)
    image = tmp_path / "image"
    for cut in range(before, len(ops.events) + 1, 2):
        after = FileOps()
        if randomness.random() < 0.5:
            kill(ops, cut, image)
        else:
            ops.image(cut, image, randomness)
            after.boot_id = b"after the cut"
        log = open_log(image, file_ops=after, **SMALL)
        assert described(image) == expected
        assert {name: values(topic_log(log, name)) for name in expected} == records
        log.close(clean=False)
        shutil.rmtree(image)


def test_many_files_of_an_older_format_are_written_at_one_start(tmp_path: Path) -> None:
    log = open_log(tmp_path / "live")
    for number in range(40):
        append(topic_log(log, f"t{number}"), b"x")
    log.flush()
    log.close()
    for file in (tmp_path / "live").glob("segments/*/topic.json"):
        file.unlink()
    ops = RecordingOps(tmp_path / "live")
    log = open_log(tmp_path / "live", file_ops=ops)
    log.close(clean=False)
    randomness = random.Random(3)
    for _ in range(3):
        ops.image(len(ops.events), tmp_path / "image", randomness)
        assert len(described(tmp_path / "image")) == 40
        shutil.rmtree(tmp_path / "image")
