"""How the daemon reports data that is newer, damaged or lost, and a failing disk."""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from tests.harness.broker_program import PATIENCE_S, Program, accepts, refused, started

NEWER = (
    "import sys, pathlib, broker.storage.store.database as store\n"
    "from broker.storage import Log, LogSettings\n"
    "log = Log.open(pathlib.Path(sys.argv[1]), LogSettings(), wall_ms=0)\n"
    "log._store.execute(f'PRAGMA user_version={store.FORMAT_VERSION + 1}')\n"
    "log.close()"
)


def produce(address: str, count: int, value: bytes = b"x" * 1000) -> int:
    """How many of `count` records were acknowledged."""
    acknowledged = []
    producer = Producer({"bootstrap.servers": address, "message.timeout.ms": 3000, "log_level": 0})
    for _ in range(count):
        producer.produce("t", value, on_delivery=lambda error, _: error is None and acknowledged.append(1))
    with contextlib.suppress(KafkaException):
        producer.flush(20)
    return len(acknowledged)


def log_end(address: str) -> int:
    consumer = Consumer({"bootstrap.servers": address, "group.id": "x"})
    _, end = consumer.get_watermark_offsets(TopicPartition("t", 0), timeout=10)
    consumer.close()
    return int(end)


def stop(program: Program) -> None:
    program.process.send_signal(signal.SIGTERM)
    assert program.end()[0] == 0


def flip_a_byte(path: Path, position: int) -> None:
    with path.open("r+b") as file:
        file.seek(position)
        byte = file.read(1)
        file.seek(position)
        file.write(bytes([byte[0] ^ 0x40]))


def test_a_data_directory_of_a_newer_version_is_refused_and_left_unchanged(tmp_path: Path):
    data_dir = tmp_path / "d"
    data_dir.mkdir()
    subprocess.run([sys.executable, "-c", NEWER, str(data_dir)], check=True)
    before = (data_dir / "store.db").read_bytes()
    code, line = refused(data_dir)
    assert code == 12
    assert str(data_dir) in line
    assert (data_dir / "store.db").read_bytes() == before


def test_a_damaged_store_is_reported(tmp_path: Path):
    with started(tmp_path) as program:
        assert produce(program.ready().address, 10) == 10
        stop(program)
    flip_a_byte(tmp_path / "store.db", 1000)
    code, line = refused(tmp_path)
    assert code == 11
    assert "store.db" in line
    assert "kgctl broker rescue" in line


def test_lost_commits_are_reported_and_can_be_accepted(tmp_path: Path):
    with started(tmp_path) as program:
        program.ready()
        stop(program)
    shutil.copytree(tmp_path, tmp_path / "old")
    with started(tmp_path) as program:
        assert produce(program.ready().address, 10) == 10
        program.process.kill()
        program.process.wait()
    for path in tmp_path.glob("store.db*"):
        path.unlink()
    for path in (tmp_path / "old").glob("store.db*"):
        shutil.copy(path, tmp_path)
    code, line = refused(tmp_path)
    assert code == 11
    assert "accept-loss" in line
    with started(tmp_path, "--accept-loss") as program:
        assert accepts(program.ready().address)


def test_a_failed_write_stops_the_broker_and_is_reported(tmp_path: Path):
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (2_000_000, 2_000_000))

    with started(tmp_path, preexec_fn=limit) as program:
        address = program.ready().address
        acknowledged = produce(address, 4000)
        assert acknowledged < 4000
        code, stderr = program.end()
        assert code == 18
        last = stderr.splitlines()[-1]
        assert last.startswith("Error: stopped: ")
        assert os.strerror(errno.EFBIG) in last
        assert not program.ready_path.exists()
    assert "Traceback" in (tmp_path / "broker.log").read_text()
    with started(tmp_path) as program:
        assert log_end(program.ready().address) >= acknowledged


@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")
def test_a_disk_that_fills_up_stops_the_broker(tmp_path: Path, small_disk: list[str]):
    data_dir = tmp_path / "d"
    data_dir.mkdir()
    with started(data_dir, before=[*small_disk, "size=3m", str(data_dir)]) as program:
        program.ready_path = Path(f"/proc/{program.pid}/root") / str(program.ready_path).lstrip("/")
        acknowledged = produce(program.ready().address, 4000)
        code, stderr = program.end()
    assert 0 < acknowledged < 4000
    assert code == 13
    last = stderr.splitlines()[-1]
    assert "no space left" in last
    assert str(data_dir) in last


def segments(data_dir: Path) -> list[Path]:
    return sorted((data_dir / "segments").rglob("*.log"))


def read_values(address: str) -> list[bytes | None]:
    """The values that a consumer reads up to the end of the partition."""
    consumer = Consumer(
        {"bootstrap.servers": address, "group.id": "x", "enable.auto.commit": False, "enable.partition.eof": True}
    )
    consumer.assign([TopicPartition("t", 0, 0)])
    messages: list[bytes | None] = []
    while True:
        message = consumer.poll(PATIENCE_S)
        assert message is not None, "timed out waiting for the end of the partition"
        error = message.error()
        if error is not None:
            assert error.code() == KafkaError._PARTITION_EOF, error
            consumer.close()
            return messages
        messages.append(message.value())


def written(data_dir: Path, *values: bytes) -> None:
    with started(data_dir) as program:
        for value in values:
            assert produce(program.ready().address, 1, value) == 1
        stop(program)


@pytest.mark.parametrize("damage", ["cut", "removed"])
def test_an_incomplete_segment_is_reported_at_the_start_and_its_loss_can_be_accepted(tmp_path: Path, damage: str):
    written(tmp_path, b"one", b"two", b"three")
    (file,) = segments(tmp_path)
    if damage == "cut":
        os.truncate(file, 100)
    else:
        file.unlink()
    code, line = refused(tmp_path)
    assert code == 11
    assert str(file) in line
    assert "--accept-loss" in line
    with started(tmp_path, "--accept-loss") as program:
        address = program.ready().address
        assert read_values(address) == ([b"one"] if damage == "cut" else [])
        assert log_end(address) == 3
        assert produce(address, 1, b"four") == 1
        assert read_values(address)[-1] == b"four"
        assert log_end(address) == 4
        stop(program)
    loss = "lost offsets 1 to 2 of t-0" if damage == "cut" else "lost offsets 0 to 2 of t-0"
    assert f"loss accepted: {file}" in (tmp_path / "broker.log").read_text()
    assert loss in (tmp_path / "broker.log").read_text()
    with started(tmp_path) as program:
        assert read_values(program.ready().address)[-1] == b"four"


def test_a_flipped_bit_loses_its_batch_once_the_loss_is_accepted(tmp_path: Path):
    written(tmp_path, b"one", b"two", b"three")
    (file,) = segments(tmp_path)
    flip_a_byte(file, file.read_bytes().index(b"two"))
    with started(tmp_path, "--accept-loss", "--background") as program:
        address = program.ready().address
        assert program.process.stderr is not None
        stderr = program.process.stderr.read()
        assert read_values(address) == [b"one", b"three"]
    assert f"{file} is damaged: lost offsets 1 of t-0; it is kept as {file.name}.damaged" in stderr
