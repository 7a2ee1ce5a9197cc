"""`kgctl broker rescue`, from the damage to a consumer that reads on in the new directory."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest
import yaml
from confluent_kafka import Consumer, Producer, TopicPartition
from typer.testing import Result

from broker.local import BrokerFailed, LocalBroker
from tests.harness.commandline import Kgctl

RECORDS = 120
# With the default of three seconds, a rebalance would wait for more members.
CONFIG: dict[str, str | int] = {"group.initial.rebalance.delay.ms": 0}


def produce(address: str, topic: str, count: int) -> None:
    producer = Producer({"bootstrap.servers": address, "enable.idempotence": True})
    for number in range(count):
        producer.produce(topic, key=b"%d" % number, value=b"value %d" % number, partition=number % 2)
    assert producer.flush(20) == 0


def read(address: str, topic: str, partitions: int = 2) -> dict[tuple[int, int], bytes]:
    consumer = Consumer({"bootstrap.servers": address, "group.id": "reader", "enable.partition.eof": True})
    consumer.assign([TopicPartition(topic, index, 0) for index in range(partitions)])
    found: dict[tuple[int, int], bytes] = {}
    ended = 0
    while ended < partitions:
        message = consumer.poll(20)
        assert message is not None
        if message.error():
            ended += 1
        else:
            found[message.partition(), message.offset()] = message.value()
    consumer.close()
    return found


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    """A directory that no start takes, not even with --accept-loss. The WAL still has the newest commits."""
    with LocalBroker(CONFIG, data_dir=tmp_path / "data") as broker:
        kgctl = Kgctl(broker.bootstrap_servers)
        assert kgctl("topics", "create", "orders", "--partitions", 2, "--config", "retention.ms=-1").exit_code == 0
        produce(broker.bootstrap_servers, "orders", RECORDS)
        kgctl.commit("billing", "orders", p0=7, p1=40)
        kgctl.commit("shipping", "orders", p1=3)
        broker.kill()
    (tmp_path / "data" / "store.db").write_bytes(b"")
    return tmp_path / "data"


def run(*arguments: object) -> Result:
    return Kgctl()("broker", "rescue", *arguments)


def test_the_records_are_back_and_the_group_continues_where_it_was(damaged: Path, tmp_path: Path) -> None:
    with pytest.raises(BrokerFailed, match="kgctl broker rescue") as refusal, LocalBroker(data_dir=damaged):
        pass
    assert refusal.value.code == 11
    into, offsets = tmp_path / "rescued", tmp_path / "offsets.csv"
    planned = run("--data-dir", damaged, "--into", into, "--offsets-to", offsets)
    assert planned.exit_code == 0, planned.output
    assert "Dry run" in planned.stderr
    assert not into.exists()
    done = run("--data-dir", damaged, "--into", into, "--offsets-to", offsets, "--execute")
    assert done.exit_code == 0, done.output
    assert "Dry run" not in done.stderr
    assert f"kgctl broker start --data-dir {into}" in done.stderr
    with LocalBroker(CONFIG, data_dir=into) as broker:
        kgctl = Kgctl(broker.bootstrap_servers)
        assert read(broker.bootstrap_servers, "orders") == {
            (number % 2, number // 2): b"value %d" % number for number in range(RECORDS)
        }
        configs = kgctl.rows("topics", "describe", "orders", "--configs")
        assert [(row["config"], row["value"]) for row in configs] == [("retention.ms", "-1")]
        for group in ("billing", "shipping"):
            assert (
                kgctl("groups", "reset-offsets", group, "--from-file", offsets, "--create", "--execute").exit_code == 0
            )
        rows = kgctl.rows("groups", "describe", "billing", "shipping")
        assert {(row["group"], row["partition"]): row["current_offset"] for row in rows} == {
            ("billing", 0): 7,
            ("billing", 1): 40,
            ("shipping", 1): 3,
        }
        produce(broker.bootstrap_servers, "orders", 2)
        assert read(broker.bootstrap_servers, "orders")[1, RECORDS // 2] == b"value 1"


def test_the_plan_and_the_offsets_come_in_every_format(damaged: Path) -> None:
    table = run("--data-dir", damaged)
    assert [line.split()[:2] for line in table.stdout.splitlines()[1:3]] == [["orders", "0"], ["orders", "1"]]
    assert [line.split()[:4] for line in table.stdout.splitlines()[5:8]] == [
        ["billing", "orders", "0", "7"],
        ["billing", "orders", "1", "40"],
        ["shipping", "orders", "1", "3"],
    ]
    rows = json.loads(run("--data-dir", damaged, "-o", "json").stdout)
    assert (rows["kind"], len(rows["rows"])) == ("broker-rescue", 2)
    assert rows["rows"][0] | {"size_bytes": 0} == {
        "topic": "orders",
        "partition": 0,
        "log_start_offset": 0,
        "log_end_offset": RECORDS // 2,
        "records": RECORDS // 2,
        "size_bytes": 0,
        "lost_offsets": 0,
        "note": None,
        "status": "planned",
    }
    offsets = json.loads(run("--data-dir", damaged, "--offsets", "-o", "json").stdout)
    assert yaml.safe_load(run("--data-dir", damaged, "--offsets", "-o", "yaml").stdout) == offsets
    assert offsets["kind"] == "rescued-offsets"
    assert [(row["group"], row["topic"], row["partition"], row["offset"]) for row in offsets["rows"]] == [
        ("billing", "orders", 0, 7),
        ("billing", "orders", 1, 40),
        ("shipping", "orders", 1, 3),
    ]
    found = list(csv.DictReader(io.StringIO(run("--data-dir", damaged, "--offsets", "-o", "csv").stdout)))
    assert [row["offset"] for row in found] == ["7", "40", "3"]


def test_lost_records_are_named_and_end_with_exit_code_4(damaged: Path, tmp_path: Path) -> None:
    (segment,) = damaged.glob("segments/*/0/*.log")
    content = bytearray(segment.read_bytes())
    content[40] ^= 1
    segment.write_bytes(content)
    result = run("--data-dir", damaged, "--into", tmp_path / "new", "--execute", "-o", "json")
    assert result.exit_code == 4
    row = json.loads(result.stdout)["rows"][0]
    assert row["lost_offsets"] > 0
    assert row["log_end_offset"] == RECORDS // 2
    assert row["note"] == f"lost: 0 to {row['lost_offsets'] - 1}" or row["note"] == "lost: 0"
    assert row["records"] + row["lost_offsets"] == RECORDS // 2


def test_a_directory_that_cannot_be_rescued_is_refused(damaged: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    (tmp_path / "offsets.csv").write_text("mine\n")
    cases: list[tuple[list[object], int, str]] = [
        (["--data-dir", damaged, "--execute"], 2, "Name the new data directory"),
        (["--data-dir", tmp_path / "empty"], 5, "holds no data of a broker"),
        (["--data-dir", tmp_path / "absent"], 5, "holds no data of a broker"),
        (["--data-dir", damaged, "--into", tmp_path / "full", "--execute"], 6, "is not empty: it has file"),
        (["--data-dir", damaged, "--into", damaged / "new", "--execute"], 6, "is part of the damaged directory"),
        (["--data-dir", damaged, "--offsets-to", tmp_path / "offsets.csv"], 6, "exists; name another file"),
    ]
    for arguments, code, message in cases:
        result = run(*arguments)
        assert (result.exit_code, message in " ".join(result.stderr.split())) == (code, True), result.stderr
    assert (tmp_path / "offsets.csv").read_text() == "mine\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "empty", "full", "offsets.csv"]


def test_a_directory_in_use_is_refused_and_a_healthy_one_gets_a_warning(tmp_path: Path) -> None:
    with LocalBroker(CONFIG, data_dir=tmp_path) as broker:
        assert Kgctl(broker.bootstrap_servers)("topics", "create", "t").exit_code == 0
        result = run("--data-dir", tmp_path)
        assert result.exit_code == 6
        assert f": pid {broker.pid}" in result.stderr
        broker.stop()
        result = run("--data-dir", tmp_path)
        assert result.exit_code == 0
        assert "store.db shows no damage" in result.stderr
        broker.start()
