"""`verify --against` on a cluster that a replay has written: records are found where the replay has put them."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as OtherPartition

from kgctl.model.topic_partition import TopicPartition
from kgctl.pipelines.archive.manifest import read_archive
from tests.harness.clusters import Cluster, fresh
from tests.harness.commandline import Kgctl
from tests.harness.streaming import delete_records
from tests.kgctl.pipelines.archive.clusters import against
from tests.kgctl.pipelines.archive.making import NOON_MS, Row, add, facts
from tests.kgctl.pipelines.source.topics import Topics


@pytest.fixture
def topics(our_cluster: Cluster) -> Topics:
    return Topics(our_cluster.bootstrap_servers)


class Moved:
    """A topic in an archive and on the cluster. Offsets of the archive have gaps."""

    def __init__(self, topics: Topics, folder: Path, **configs: str) -> None:
        self.topics, self.folder, self.name = topics, folder, fresh("moved")
        self.kgctl = Kgctl(topics.bootstrap_servers)
        self._end, self._configs = 10, {"retention.ms": "-1"} | configs

    def grow(self, count: int) -> None:
        """Each run adds records to one of two partitions, and only a range to the other."""
        first = self._end
        rows = [Row(first + 3 * n, b"k%d" % n, b"v%d" % n, NOON_MS + n, (("a", b"b"),)) for n in range(count)]
        self._end = first + 3 * count
        zero, one = (TopicPartition(self.name, number) for number in range(2))
        news = [facts(self.name, 2, configs=self._configs)] if first == 10 else []
        add(self.folder, {zero: rows}, {zero: (first, self._end), one: (first, self._end)}, topics=news)

    def replay(self, *arguments: object) -> None:
        topic = ("--topic", self.name, "--create", "--execute", "--no-journal")
        done = self.kgctl("pipeline", "replay", self.folder, *topic, *arguments)
        assert done.exit_code == 0, done.output

    def findings(self) -> list[tuple[str, int | None, int | None, str]]:
        rows = against(self.topics, read_archive(self.folder))
        return [(row.finding, row.first_offset, row.last_offset, row.detail) for row in rows]


@pytest.fixture
def moved(topics: Topics, tmp_path: Path) -> Moved:
    return Moved(topics, tmp_path)


def test_records_of_several_replays_are_found(moved: Moved) -> None:
    for count in (5, 1, 7):
        moved.grow(count)
        moved.replay()
        assert moved.findings() == []
    # Records that applications write after the move are not in the archive.
    moved.topics.count(moved.name, 3)
    assert moved.findings() == []
    command = ("pipeline", "verify", moved.folder, "--against", moved.topics.bootstrap_servers)
    assert moved.kgctl(*command).exit_code == 0


@pytest.mark.parametrize("option", [("--shift-time", "7d"), ("--now",)])
def test_a_replay_may_change_timestamps(moved: Moved, option: tuple[str, ...]) -> None:
    moved.grow(5)
    moved.replay(*option)
    moved.grow(2)
    moved.replay(*option)
    assert moved.findings() == []


def test_a_topic_with_log_append_time_has_its_own_timestamps(topics: Topics, tmp_path: Path) -> None:
    moved = Moved(topics, tmp_path, **{"message.timestamp.type": "LogAppendTime"})
    moved.grow(5)
    moved.replay()
    assert moved.findings() == []


def test_what_is_not_replayed_yet_is_a_fault(moved: Moved) -> None:
    moved.grow(5)
    moved.replay()
    moved.grow(2)
    assert moved.findings() == [
        ("log ends early", 25, 30, "the replay is at offset 25: 2 archived records are not on the cluster")
    ]


def test_records_that_were_deleted_or_written_between_are_named(moved: Moved) -> None:
    moved.grow(5)
    moved.replay()
    moved.topics.count(moved.name, 1)
    moved.grow(4)
    moved.replay()
    # Offsets 0 to 4 and a marker, the record between, and 7 to 10.
    found = moved.findings()
    assert found == [
        (
            "not archived",
            6,
            6,
            "1 record is on the cluster but not in the archive; the offsets are those of the cluster",
        )
    ]
    for before, last, count in ((2, 13, 2), (5, 22, 5), (6, 22, 5)):
        delete_records(moved.topics.bootstrap_servers, moved.name, 0, before)
        assert moved.findings() == [
            ("deleted by retention", 10, last, f"{count} archived records are no longer on the cluster"),
            *found,
        ]


def test_a_topic_that_was_created_again_has_lost_its_records(moved: Moved) -> None:
    moved.grow(5)
    moved.replay()
    moved.topics.delete(moved.name)
    moved.topics.make(2, name=moved.name)
    assert moved.findings() == [
        ("log ends early", 10, 22, "the log ends at 0: 5 archived records are not on the cluster")
    ]


def test_records_that_differ_have_the_offsets_of_the_archive(moved: Moved) -> None:
    moved.grow(3)
    moved.replay()
    moved.grow(2)
    moved.replay()
    # The same replay, of an archive with other values.
    other = Moved(moved.topics, moved.folder.parent / "other")
    other.name = moved.name
    zero, one = (TopicPartition(moved.name, number) for number in range(2))
    rows = [Row(10 + 3 * n, b"k%d" % (n % 3), b"v%d" % n, NOON_MS + n % 3, (("a", b"b"),)) for n in range(5)]
    add(other.folder, {zero: rows}, {zero: (10, 25), one: (10, 25)}, topics=[facts(moved.name, 2)])
    (other.folder / "_replays").symlink_to(moved.folder / "_replays")
    assert other.findings() == [("different", 19, 22, "2 records are not the same on the cluster")]


def test_a_replay_by_key_cannot_be_compared(moved: Moved) -> None:
    moved.grow(5)
    moved.replay("--partitions", "by-key")
    refused = moved.kgctl("pipeline", "verify", moved.folder, "--against", moved.topics.bootstrap_servers)
    assert refused.exit_code == 6
    assert "cannot be compared" in refused.stderr


def with_second_topic(moved: Moved) -> str:
    second = f"{moved.name}-2"
    zero, one = (TopicPartition(second, number) for number in range(2))
    add(moved.folder, {zero: [Row(0)]}, {zero: (0, 1), one: (0, 1)}, topics=[facts(second, 2)])
    return second


def verified(moved: Moved) -> tuple[int, set[tuple[str, str]], str]:
    """Exit code, findings with their topics, and stderr."""
    command = ("pipeline", "verify", moved.folder, "--against", moved.topics.bootstrap_servers, "-o", "json")
    done = moved.kgctl(*command)
    rows = json.loads(done.stdout)["rows"]
    return done.exit_code, {(row["finding"], row["topic"]) for row in rows}, done.stderr


def test_a_topic_that_cannot_be_compared_hides_no_fault_of_another(moved: Moved) -> None:
    moved.grow(5)
    moved.replay("--partitions", "by-key")
    second = with_second_topic(moved)
    moved.topics.make(2, name=second)
    code, findings, stderr = verified(moved)
    assert code == 1
    assert findings >= {("not compared", moved.name), ("log ends early", second)}
    assert stderr.endswith("2 faults.\n")


def test_no_topic_of_a_replay_with_an_open_transaction_is_compared(moved: Moved) -> None:
    moved.grow(5)
    second = with_second_topic(moved)
    moved.replay("--topic", second)
    (state,) = (moved.folder / "_replays").iterdir()
    producer = Producer({"bootstrap.servers": moved.topics.bootstrap_servers, "transactional.id": state.name})
    producer.init_transactions(20)
    producer.begin_transaction()
    settings = {"bootstrap.servers": moved.topics.bootstrap_servers, "group.id": state.name}
    with contextlib.closing(Consumer(settings)) as consumer:
        offsets = [OtherPartition(name, 0, 99) for name in (moved.name, second)]
        producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), 20)
    code, findings, stderr = verified(moved)
    assert (code, findings) == (6, {("not compared", moved.name), ("not compared", second)})
    assert f"the last transaction of replay {state.name} has not ended" in stderr
    producer.abort_transaction(20)
    assert verified(moved)[0] == 0


def test_the_log_of_a_replay_may_be_in_another_folder(moved: Moved, tmp_path_factory: pytest.TempPathFactory) -> None:
    state = tmp_path_factory.mktemp("state")
    for count in (2, 3):
        moved.grow(count)
        moved.replay("--state", state)
    command = ("pipeline", "verify", moved.folder, "--against", moved.topics.bootstrap_servers)
    assert moved.kgctl(*command, "--state", state).exit_code == 0
    assert moved.kgctl(*command).exit_code == 1
