"""Snapshots of groups: saved, compared, restored under old and new names, and carried to another cluster."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from confluent_kafka import Consumer, TopicPartition

from broker.local import LocalBroker
from tests.harness.clusters import fresh
from tests.harness.commandline import Kgctl, fill, member_of
from tests.kgctl.contexts.folders import Home

# An hour ago: retention deletes what is much older.
T0 = int(time.time() * 1000) - 3_600_000


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def topic(kgctl: Kgctl) -> str:
    """Records one millisecond apart."""
    name = fresh("orders")
    assert kgctl("topics", "create", name, "--partitions", 2).exit_code == 0
    fill(kgctl, name, [100, 50], T0)
    return name


@pytest.fixture
def group(kgctl: Kgctl, topic: str) -> str:
    """Committed at 10, with metadata, and at the end of partition 1."""
    name = fresh("g")
    consumer = Consumer({"bootstrap.servers": kgctl.bootstrap, "group.id": name})
    offsets = [TopicPartition(topic, 0, 10, "noted"), TopicPartition(topic, 1, 50)]
    consumer.commit(offsets=offsets, asynchronous=False)
    consumer.close()
    return name


@pytest.fixture(scope="module")
def elsewhere() -> Iterator[Kgctl]:
    with LocalBroker() as broker:
        yield Kgctl(broker.bootstrap_servers)


def offsets_of(kgctl: Kgctl, group: str) -> dict[int, int | None]:
    return {row["partition"]: row["current_offset"] for row in kgctl.rows("groups", "describe", group)}


def metadata_of(kgctl: Kgctl, group: str) -> dict[int, str | None]:
    with kgctl.admin() as admin:
        (found,) = admin.committed([group]).values()
    assert isinstance(found, dict)
    return {key.partition: one.metadata and one.metadata.rstrip("\0") for key, one in found.items()}


def saved(kgctl: Kgctl, path: Path, *groups: str) -> Any:
    done = kgctl("groups", "snapshot", *groups, "--out", path)
    assert done.exit_code == 0, done.output
    return json.loads(path.read_text())


def test_a_snapshot_has_offsets_logs_and_times(kgctl: Kgctl, topic: str, group: str, tmp_path: Path) -> None:
    found = saved(kgctl, tmp_path / "s.json", group)
    jsonschema.validate(found, json.loads(Kgctl()("schema", "snapshot-file").stdout))
    first, second = found["groups"][0]["offsets"]
    assert (first["offset"], first["log_start"], first["log_end"], first["timestamp"]) == (10, 0, 100, T0 + 10)
    assert (second["offset"], second["log_end"], second["timestamp"]) == (50, 50, None)
    rows = kgctl.rows("groups", "snapshot", group)
    assert [(row["topic"], row["partition"], row["offset"]) for row in rows] == [(topic, 0, 10), (topic, 1, 50)]
    assert kgctl("groups", "snapshot", fresh("absent")).exit_code == 5


def test_a_difference_is_exit_code_3(kgctl: Kgctl, topic: str, group: str, tmp_path: Path) -> None:
    before, after = tmp_path / "before.json", tmp_path / "after.json"
    saved(kgctl, before, group)
    same = kgctl("groups", "diff", before)
    assert (same.exit_code, kgctl.rows("groups", "diff", before)) == (0, [])
    kgctl.commit(group, topic, p0=12)
    saved(kgctl, after, group)
    for other in ("live", after):
        done = kgctl("groups", "diff", before, other, "-o", "json")
        assert done.exit_code == 3
        rows = json.loads(done.stdout)["rows"]
        assert [
            (row["what"], row["partition"], row["old"], row["new"], row["delta"])
            for row in rows
            if row["what"] == "offset"
        ] == [("offset", 0, "10", "12", 2)]
        assert [row["what"] for row in rows] == ["offset", "metadata"]
    assert kgctl("groups", "delete", group, "--execute").exit_code == 0
    done = kgctl("groups", "diff", before, "-o", "json")
    rows = json.loads(done.stdout)["rows"]
    assert (done.exit_code, [row["what"] for row in rows]) == (3, ["group", "offset", "offset"])


def test_a_group_is_restored_with_its_metadata_and_under_a_new_name(
    kgctl: Kgctl, topic: str, group: str, tmp_path: Path
) -> None:
    file, copy = tmp_path / "s.json", fresh("a=copy")
    saved(kgctl, file, group)
    kgctl.commit(group, topic, p0=70, p1=1)
    assert kgctl("groups", "restore", file).exit_code == 0
    assert offsets_of(kgctl, group) == {0: 70, 1: 1}
    assert kgctl("groups", "restore", file, "--execute").exit_code == 0
    assert offsets_of(kgctl, group) == {0: 10, 1: 50}
    assert metadata_of(kgctl, group) == {0: "noted", 1: None}
    assert kgctl("groups", "restore", file, "--group", f"{group}={copy}", "--execute").exit_code == 0
    assert (offsets_of(kgctl, copy), metadata_of(kgctl, copy)[0]) == ({0: 10, 1: 50}, "noted")
    assert kgctl("groups", "restore", file, "--group", "absent=x").exit_code == 2
    assert kgctl("undo", "--execute").exit_code == 0
    # The copy did not exist before it was restored.
    assert copy not in {row["group"] for row in kgctl.rows("groups", "list")}


def test_a_group_with_members_is_refused_or_drained(kgctl: Kgctl, topic: str, group: str, tmp_path: Path) -> None:
    file = tmp_path / "s.json"
    saved(kgctl, file, group)
    kgctl.commit(group, topic, p0=70)
    with member_of(kgctl, group, {topic: [0, 1]}):
        refused = kgctl("groups", "restore", file, "--execute")
        assert (refused.exit_code, offsets_of(kgctl, group)) == (6, {0: 70, 1: 50})
        assert "can only be reset if the group" in refused.stderr
        done = kgctl("groups", "restore", file, "--drain", "10", "--execute")
        assert done.exit_code == 0, done.output
        assert (offsets_of(kgctl, group), metadata_of(kgctl, group)[0]) == ({0: 10, 1: 50}, "noted")


def test_a_clone_has_the_offsets_and_metadata_of_its_source(kgctl: Kgctl, topic: str, group: str) -> None:
    copy = fresh("copy")
    with member_of(kgctl, copy, {topic: [0]}):
        refused = kgctl("groups", "clone", group, copy)
        assert (refused.exit_code, "Stop its consumers, or add --drain to evict them." in refused.stderr) == (6, True)
    assert kgctl("groups", "delete", copy, "--execute").exit_code == 0
    assert kgctl("groups", "clone", group, copy).exit_code == 0
    assert copy not in [row["group"] for row in kgctl.rows("groups", "list")]
    assert kgctl("groups", "clone", group, copy, "--execute").exit_code == 0
    assert (offsets_of(kgctl, copy), metadata_of(kgctl, copy)) == ({0: 10, 1: 50}, {0: "noted", 1: None})
    assert kgctl("groups", "clone", fresh("absent"), copy).exit_code == 5
    assert kgctl("groups", "clone", group, group).exit_code == 2


def test_another_cluster_gets_the_places_of_the_same_times(
    kgctl: Kgctl, topic: str, group: str, elsewhere: Kgctl, tmp_path: Path
) -> None:
    assert elsewhere("topics", "create", topic, "--partitions", 2).exit_code == 0
    # The mirror began later: its offset 0 is the record at offset 5 here.
    fill(elsewhere, topic, [95, 50], T0 + 5)
    file = tmp_path / "s.json"
    saved(kgctl, file, group)
    refused = elsewhere("groups", "restore", file, "--execute")
    assert (refused.exit_code, "add --by timestamp" in refused.stderr) == (6, True)
    assert elsewhere("groups", "restore", file, "--by", "timestamp", "--execute").exit_code == 0
    assert offsets_of(elsewhere, group) == {0: 5, 1: 50}
    # Partition 1 had been read to its end: the group continues with what was written since.
    home = Home(tmp_path)
    home.write(f'[contexts.staging]\nbootstrap.servers = "{elsewhere.bootstrap}"\nconfirm = true\n')
    copy = fresh("copy")
    clone = ["groups", "clone", group, copy, "--to-context", "staging", "--bootstrap", str(kgctl.bootstrap)]
    asked = home.kgctl(*clone, "--execute")
    assert (asked.exit_code, f"add --yes {copy}" in asked.stderr) == (6, True)
    done = home.kgctl(*clone, "--execute", "--yes", copy)
    assert done.exit_code == 0, done.output
    assert offsets_of(elsewhere, copy) == {0: 5, 1: 50}
    (entry,) = [row for row in Kgctl().rows("journal") if row["verb"] == "clone"]
    assert (entry["context"], entry["groups"]) == ("staging", [copy])


def test_what_cannot_be_restored_is_an_error_of_its_group_only(
    kgctl: Kgctl, topic: str, group: str, tmp_path: Path
) -> None:
    file, other = tmp_path / "s.json", fresh("other")
    kgctl.commit(other, topic, p0=3)
    found = saved(kgctl, file, group, other)
    found["groups"][0]["offsets"][0]["topic"] = fresh("gone")
    file.write_text(json.dumps(found))
    kgctl.commit(other, topic, p0=4)
    done = kgctl("groups", "restore", file, "--execute")
    assert done.exit_code == 4
    assert "UNKNOWN_TOPIC_OR_PARTITION" in done.stderr
    by_name = {found["groups"][0]["group"]: False, found["groups"][1]["group"]: True}
    assert by_name.keys() == {group, other}
    assert offsets_of(kgctl, other)[0] == (3 if by_name[other] else 4)


def test_equal_snapshots_are_said_to_be_equal(kgctl: Kgctl, group: str, tmp_path: Path) -> None:
    file = tmp_path / "s.json"
    saved(kgctl, file, group)
    equal = kgctl("groups", "diff", file)
    assert (equal.exit_code, equal.stderr) == (0, "No differences.\n")


def test_a_snapshot_replaces_a_file_only_with_overwrite(kgctl: Kgctl, group: str, tmp_path: Path) -> None:
    file = tmp_path / "before.json"
    saved(kgctl, file, group)
    before = file.read_text()
    refused = kgctl("groups", "snapshot", group, "--out", file)
    assert (refused.exit_code, file.read_text()) == (2, before)
    assert f"{file} exists; --overwrite replaces it" in refused.stderr
    assert kgctl("groups", "snapshot", group, "--out", file, "--overwrite").exit_code == 0
    assert file.read_text() != before
    absent = kgctl("groups", "snapshot", group, "--out", tmp_path / "absent" / "x.json")
    assert (absent.exit_code, "there is no directory" in absent.stderr) == (2, True)
