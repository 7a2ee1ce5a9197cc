"""A data directory that is removed or replaced under a running broker: the broker ends, and the new data stays."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.harness.broker_program import refused, started

OPTIONS = ["--override", "log.roll.ms=200", "--override", "log.cleaner.backoff.ms=50"]


def produce(address: str, *values: str) -> None:
    producer = Producer({"bootstrap.servers": address, "log_level": 0})
    for value in values:
        producer.produce("t", value)
        assert producer.flush(20) == 0


def values(address: str, count: int) -> list[str]:
    consumer = Consumer({"bootstrap.servers": address, "group.id": "g", "enable.auto.commit": False})
    consumer.assign([TopicPartition("t", 0, 0)])
    found = [message.value().decode() for message in consumer.consume(count, 20)]
    consumer.close()
    return found


def contents(directory: Path) -> dict[str, bytes]:
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*.log")}


def removed(data_dir: Path) -> None:
    # The broker may remove a file at the same time.
    while data_dir.exists():
        shutil.rmtree(data_dir, ignore_errors=True)


def moved_away(data_dir: Path) -> None:
    data_dir.rename(data_dir.with_name("moved"))


def replaced_by_a_copy(data_dir: Path) -> None:
    """The copy has the same topics, so that the first broker knows its paths."""
    data_dir.rename(data_dir.with_name("moved"))
    data_dir.with_name("copy").rename(data_dir)


def is_idle(address: str) -> None:
    pass


def deletes_a_topic(address: str) -> None:
    AdminClient({"bootstrap.servers": address, "log_level": 0}).delete_topics(["t"])


def is_written_to(address: str) -> None:
    producer = Producer({"bootstrap.servers": address, "log_level": 0, "message.timeout.ms": 5000})
    producer.produce("new", "x")
    producer.poll(0)


@pytest.mark.parametrize(
    ("replace", "first_broker"),
    [
        (removed, is_idle),
        (moved_away, is_written_to),
        (replaced_by_a_copy, is_idle),
        (replaced_by_a_copy, deletes_a_topic),
    ],
)
def test_a_broker_ends_when_its_directory_is_replaced_and_leaves_the_new_data(
    tmp_path: Path, replace: Callable[[Path], None], first_broker: Callable[[str], None]
):
    data_dir = tmp_path / "d"
    with started(data_dir, *OPTIONS) as old:
        produce(old.ready().address, "old")
        old.process.terminate()
        old.end()
    shutil.copytree(data_dir, tmp_path / "copy")
    with started(data_dir, *OPTIONS) as old:
        address = old.ready().address
        replace(data_dir)
        with started(data_dir) as new:
            produce(new.ready().address, "one", "two", "three")
            kept = contents(data_dir)
            first_broker(address)
            code, stderr = old.end()
            assert code == 19
            assert stderr.splitlines()[-1].startswith("Error: stopped: ")
            assert str(data_dir) in stderr.splitlines()[-1]
            assert new.ready_path.exists()
            assert refused(data_dir)[0] == 6
            assert contents(data_dir) == kept
            expected = ["old"] * (replace is replaced_by_a_copy) + ["one", "two", "three"]
            assert values(new.ready().address, len(expected)) == expected
            new.process.terminate()
            assert new.end()[0] == 0


def test_a_broker_ends_when_its_lock_is_removed_and_excludes_others_until_then(tmp_path: Path):
    with started(tmp_path) as program:
        program.ready()
        # Stopped, it cannot notice before the other start.
        program.process.send_signal(signal.SIGSTOP)
        (tmp_path / "lock").unlink()
        assert refused(tmp_path)[0] == 6
        assert program.ready_path.exists()
        program.process.send_signal(signal.SIGCONT)
        assert program.end()[0] == 19
    with started(tmp_path) as program:
        assert program.ready().pid == program.pid


@pytest.mark.parametrize("name", ["segments", "store.db", "store.db-wal", "commit-marker", "synced-ends"])
def test_a_broker_ends_when_a_file_that_it_writes_is_removed(tmp_path: Path, name: str):
    with started(tmp_path) as program:
        program.ready()
        (tmp_path / name).rename(tmp_path / "elsewhere")
        code, errors = program.end()
    assert code == 19
    assert f"{tmp_path / name} was removed or replaced while the broker ran" in errors
