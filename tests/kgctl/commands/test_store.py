"""`kgctl store`: the data directory of a broker that runs, and of one that was killed."""

from __future__ import annotations

import csv
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from confluent_kafka import Consumer as ConfluentConsumer
from confluent_kafka import Producer, TopicPartition

from broker.local import LocalBroker
from broker.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from broker.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from broker.storage.store.checked_pages import PAGE_BYTES
from kgctl.store.tables import TABLES, kind_of
from tests.harness import ROOT
from tests.harness.commandline import Kgctl, member_of
from tests.harness.requests import create_topic, produce
from tests.harness.running import RunningBroker, until
from tests.harness.share_member import ACCEPT, ShareMember, enable_share_groups
from tests.harness.store_damages import flip
from tests.harness.transactions import TransactionalProducer
from tests.harness.wire_client import WireClient

CONFIG: dict[str, str | int] = {"group.initial.rebalance.delay.ms": 0}
STORE = Kgctl()
# Retention would remove older records.
MOMENT_MS = int(time.time()) * 1000
BINARY = b"\xff\x00"
SECRETS = ("salt", "stored_key", "server_key")


def contents(path: Path) -> dict[str, tuple[bytes, int]]:
    return {str(one): (one.read_bytes(), one.stat().st_mtime_ns) for one in path.rglob("*") if one.is_file()}


def fill(broker: LocalBroker) -> None:
    """Records of all kinds, committed offsets, a member, transactions with each end, a user, an ACL."""
    kgctl = Kgctl(broker.bootstrap_servers)
    for name in ("orders", "txn"):
        assert kgctl("topics", "create", name, "--partitions", 2).exit_code == 0
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "compression.type": "zstd"})
    for number in range(20):
        producer.produce("orders", key=b"k%d" % number, value=b"v%d" % number, partition=0, timestamp=MOMENT_MS)
    producer.produce("orders", key=None, value=BINARY, partition=1, headers=[("h", b"x"), ("b", BINARY), ("n", None)])
    assert producer.flush(20) == 0
    kgctl.commit("billing", "orders", p0=5, p1=1)
    host, port = broker.bootstrap_servers.split(":")
    for name, committed in (("done", True), ("undone", False), ("under-way", None)):
        client = WireClient((host, int(port)))
        transaction = TransactionalProducer(client, name)
        transaction.produce("txn", name.encode())
        if committed is not None:
            assert transaction.end(committed=committed) == 0
        client.close()


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalBroker]:
    with LocalBroker(CONFIG, data_dir=tmp_path_factory.mktemp("store") / "data", durability="power") as broker:
        fill(broker)
        with member_of(Kgctl(broker.bootstrap_servers), "live", {"orders": [0, 1]}):
            yield broker


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    with LocalBroker(CONFIG, data_dir=tmp_path_factory.mktemp("store") / "data", durability="power") as broker:
        fill(broker)
        broker.kill()
        return broker.data_dir


@pytest.fixture(params=["running", "killed"])
def data_dir(request: pytest.FixtureRequest) -> Iterator[Path]:
    """Of each kind of directory, where no command changes a byte."""
    found = request.getfixturevalue(request.param)
    path = found.data_dir if isinstance(found, LocalBroker) else found
    before = contents(path)
    yield path
    after = contents(path)
    assert after.keys() == before.keys()
    if request.param == "killed":
        assert after == before


def query(path: Path, sql: str) -> list[dict[str, Any]]:
    return STORE.rows("store", "query", path, sql)


def test_info_counts_what_is_there_and_names_the_state_of_the_broker(
    data_dir: Path, request: pytest.FixtureRequest
) -> None:
    (row,) = STORE.rows("store", "info", data_dir)
    assert row["broker"] == request.node.callspec.params["data_dir"]
    assert (row["format"], row["topics"], row["transactional_ids"], row["committed_offsets"]) == (9, 5, 3, 2)
    assert "BROKER" in STORE("store", "info", data_dir).stdout


@pytest.mark.parametrize("table", TABLES)
def test_each_table_has_the_rows_that_its_schema_declares_and_no_secret(killed: Path, table: str) -> None:
    schema = json.loads(STORE("schema", kind_of(table)).stdout)
    result = STORE("store", "info", killed, table, "-o", "json")
    assert result.exit_code == 0, result.output
    jsonschema.validate(json.loads(result.stdout), schema)
    assert len(query(killed, f"SELECT * FROM {table}")) == len(json.loads(result.stdout)["rows"])
    assert STORE("store", "info", killed, table).exit_code == 0


@pytest.mark.parametrize("option", ["--context", "--bootstrap", "--timeout"])
def test_an_option_that_chooses_a_cluster_is_a_usage_error(killed: Path, option: str) -> None:
    result = STORE("store", "groups", killed, option, "5")
    assert (result.exit_code, f"No such option: {option}" in result.stderr) == (2, True)


def test_the_name_of_a_data_directory_is_its_path_and_a_file_is_none(killed: Path) -> None:
    assert STORE("store", "info", killed, "-o", "name").stdout == f"{killed}\n"
    result = STORE("store", "info", killed / "store.db")
    assert (result.exit_code, result.stderr) == (5, f"Error: {killed}/store.db is a file; name the data directory\n")
    absent = STORE("store", "offsets", killed, "--topic", "absent")
    assert (absent.exit_code, absent.stderr) == (5, f"Error: {killed} has no topic 'absent'\n")


def test_groups_members_and_offsets_with_lag(running: LocalBroker) -> None:
    rows = {row["group"]: row for row in STORE.rows("store", "groups", running.data_dir)}
    assert (rows["billing"]["state"], rows["billing"]["offsets"], rows["billing"]["lag"]) == ("Empty", 2, 15)
    assert (rows["live"]["state"], rows["live"]["members"], rows["live"]["generation"]) == ("Stable", 1, 1)
    (member,) = STORE.rows("store", "groups", running.data_dir, "--members")
    assert (member["group"], member["assignment"]) == ("live", ["orders:0,1"])
    offsets = STORE.rows("store", "offsets", running.data_dir, "--group", "billing")
    assert [(row["partition"], row["current_offset"], row["log_end_offset"], row["lag"]) for row in offsets] == [
        (0, 5, 20, 15),
        (1, 1, 1, 0),
    ]
    missing = STORE("store", "offsets", running.data_dir, "--group", "absent")
    assert (missing.exit_code, missing.stderr.count("\n")) == (5, 1)


def test_newer_groups_have_their_epochs_members_and_start_offsets(tmp_path: Path) -> None:
    data_dir = tmp_path / "data"
    with RunningBroker(data_dir) as running, running.client() as client:
        enable_share_groups(client)
        topic_id = create_topic(client, "orders", partitions=2).topic_id
        for epoch in (0, 1):
            beat = ShareGroupHeartbeatRequest(
                group_id="work", member_id="m1", member_epoch=epoch, subscribed_topic_names=["orders"]
            )
            assert not client.ask(beat).error_code
        join = ConsumerGroupHeartbeatRequest(
            group_id="newer",
            member_id="m2",
            member_epoch=0,
            rebalance_timeout_ms=30_000,
            subscribed_topic_names=["orders"],
            topic_partitions=[],
        )
        assert not client.ask(join).error_code
        place = topic_id, 0
        one = ShareMember(client, "work", "m1", place)
        one.fetch()
        produce(client, "orders", *[b"x"] * 5)
        one.fetch()
        assert one.acknowledge({place: [(0, 2, [ACCEPT])]}) == {place: 0}
        client.close()
        # The rest is released, with the new start offset.
        until(lambda: running.run(lambda: len(running.broker.shares.sessions)) == 0)
    groups = [
        (row["group"], row["type"], row["state"], row["members"], row["lag"])
        for row in STORE.rows("store", "groups", data_dir)
    ]
    assert groups == [("newer", "Consumer", "Stable", 1, 0), ("work", "Share", "Stable", 1, 2)]
    members = [
        (row["group"], row["consumer_id"], row["assignment"])
        for row in STORE.rows("store", "groups", data_dir, "--members")
    ]
    assert members == [("newer", "m2", ["orders:0,1"]), ("work", "m1", ["orders:0,1"])]
    shared = query(
        data_dir, "SELECT partition, start_offset, log_end_offset, lag FROM share_partitions WHERE \"group\" = 'work'"
    )
    assert [tuple(row.values()) for row in shared] == [(0, 3, 5, 2), (1, None, 0, None)]


def test_a_partition_to_which_nothing_was_written_has_no_lag(tmp_path: Path) -> None:
    with LocalBroker(CONFIG, data_dir=tmp_path / "data") as broker:
        kgctl = Kgctl(broker.bootstrap_servers)
        assert kgctl("topics", "create", "quiet").exit_code == 0
        kgctl.commit("g", "quiet", p0=0)
    (row,) = STORE.rows("store", "offsets", tmp_path / "data")
    assert (row["current_offset"], row["log_end_offset"], row["lag"]) == (0, 0, 0)


def test_users_and_acls_come_without_secrets(tmp_path: Path) -> None:
    with LocalBroker(data_dir=tmp_path / "data", security="SASL_PLAINTEXT") as broker:
        broker.kill()
    assert query(tmp_path / "data", "SELECT user, mechanism FROM users")[0]["user"] == "admin"
    STORE("store", "export", tmp_path / "data", "--out", tmp_path / "all.json")
    exported = (tmp_path / "all.json").read_text()
    assert '"admin"' in exported
    assert not [word for word in SECRETS if word in exported]


def test_the_states_of_transactions_decide_which_records_are_exported(data_dir: Path, tmp_path: Path) -> None:
    states = {row["transactional_id"]: row["state"] for row in STORE.rows("store", "info", data_dir, "transactions")}
    assert states == {"done": "CompleteCommit", "undone": "CompleteAbort", "under-way": "Ongoing"}
    for options, expected in (([], {"done"}), (["--uncommitted"], {"done", "undone", "under-way"})):
        file = tmp_path / f"{len(options)}.jsonl"
        assert STORE("store", "export", data_dir, "--out", file, "--topic", "txn", *options).exit_code == 0
        found = {row["value"]: row["transaction"] for row in map(json.loads, file.read_text().splitlines())}
        assert found.keys() == expected
    assert found == {"done": "committed", "undone": "aborted", "under-way": "open"}


def test_sql_runs_over_the_tables(data_dir: Path) -> None:
    rows = query(
        data_dir, "SELECT topic, sum(log_end_offset) AS ends FROM partitions WHERE topic = 'orders' GROUP BY topic"
    )
    assert rows == [{"topic": "orders", "ends": 21}]
    rows = query(
        data_dir, 'SELECT g."group", count(*) FROM groups g JOIN offsets o ON o."group" = g."group" GROUP BY 1'
    )
    assert rows == [{"group": "billing", "count": 2}]
    assert {row["table"] for row in STORE.rows("store", "query", data_dir)} == TABLES.keys()
    none = STORE(
        "store", "query", data_dir, "SELECT topic, count(*) FROM partitions WHERE topic = '' GROUP BY 1", "-o", "csv"
    )
    assert none.stdout == "topic,count\n"


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT nope",
        "SELECT * FROM nope",
        "SELEC 1",
        "",
        "SELECT 1; SELECT 2",
        "DELETE FROM offsets",
        "CREATE TABLE x (y)",
        "PRAGMA query_only = 0",
        "ATTACH 'other.db' AS other",
        "SELECT load_extension('x')",
    ],
)
def test_wrong_sql_and_changes_are_one_line_and_exit_code_2(killed: Path, sql: str) -> None:
    result = STORE("store", "query", killed, sql)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("Error: the query ")
    assert result.stderr.count("\n") == 1


def test_ctrl_c_ends_a_query(killed: Path) -> None:
    endless = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c"
    query = subprocess.Popen([sys.executable, "-m", "kgctl", "store", "query", str(killed), endless], cwd=ROOT)
    until(lambda: used_cpu_s(query.pid) > 1.5, 60)
    query.send_signal(signal.SIGINT)
    assert query.wait(30) == 130


def used_cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) / os.sysconf("SC_CLK_TCK")


def test_exports_hold_the_same_records_in_every_format(data_dir: Path, tmp_path: Path) -> None:
    for suffix in ("json", "jsonl", "csv", "sqlite"):
        result = STORE("store", "export", data_dir, "--out", tmp_path / f"x.{suffix}", "--table", "records")
        assert result.exit_code == 0, result.output
    document = json.loads((tmp_path / "x.json").read_text())["tables"]["records"]
    assert len(document) == 22
    binary = next(row for row in document if row["topic"] == "orders" and row["partition"] == 1)
    assert (binary["key"], binary["value"], binary["value_encoding"]) == (None, "/wA=", "base64")
    assert binary["headers"] == [
        {"name": "h", "value": "x", "encoding": "text"},
        {"name": "b", "value": "/wA=", "encoding": "base64"},
        {"name": "n", "value": None, "encoding": None},
    ]
    assert document[0]["timestamp_ms"] == MOMENT_MS
    assert [json.loads(line) for line in (tmp_path / "x.jsonl").read_text().splitlines()] == document
    with (tmp_path / "x.csv").open(newline="") as file:
        assert [row["value"] for row in csv.DictReader(file)] == [row["value"] for row in document]
    with sqlite3.connect(tmp_path / "x.sqlite") as database:
        assert database.execute("SELECT value FROM records").fetchall() == [(row["value"],) for row in document]
    database.close()


def test_an_export_to_parquet_has_typed_columns(killed: Path, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    assert STORE("store", "export", killed, "--out", tmp_path / "x.parquet", "--topic", "orders").exit_code == 0
    table = parquet.read_table(tmp_path / "x.parquet")
    assert (table.num_rows, str(table.schema.field("offset").type)) == (21, "int64")


def test_parquet_without_its_extra_is_one_line(killed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    result = STORE("store", "export", killed, "--out", tmp_path / "x.parquet")
    assert (result.exit_code, result.stderr) == (
        1,
        "Error: Parquet needs the extra arrow: pip install 'kgctl[arrow]'\n",
    )
    assert list(tmp_path.iterdir()) == []


def test_an_export_writes_neither_into_the_directory_nor_over_a_file(killed: Path, tmp_path: Path) -> None:
    before = contents(killed)
    assert STORE("store", "export", killed, "--out", killed / "x.json").exit_code == 6
    assert contents(killed) == before
    (tmp_path / "x.csv").write_text("mine")
    refused = STORE("store", "export", killed, "--out", tmp_path / "x.csv")
    assert (refused.exit_code, (tmp_path / "x.csv").read_text()) == (2, "mine")
    assert STORE("store", "export", killed, "--to", tmp_path / "x.csv", "--overwrite").exit_code == 0
    assert (tmp_path / "x.csv").read_text().startswith("topic,partition,offset,")
    assert STORE("store", "export", killed, "--out", tmp_path / "x.xls").exit_code == 2
    assert STORE("store", "export", killed, "--out", tmp_path / "y.csv", "--topic", "absent").exit_code == 5


def test_verify_finds_no_damage_where_there_is_none(data_dir: Path) -> None:
    assert STORE.rows("store", "verify", data_dir) == []
    assert "segments of orders" in STORE("store", "verify", data_dir).stdout


def test_damage_has_exit_code_1_and_its_name_and_an_export_leaves_no_file(tmp_path: Path) -> None:
    with LocalBroker(CONFIG, data_dir=tmp_path / "data") as broker:
        fill(broker)
    files = sorted((tmp_path / "data" / "segments").rglob("*.log"))
    for file in files[:2]:
        flip(file, random.Random(1), 65, 66)
    result = STORE("store", "verify", tmp_path / "data", "-o", "json")
    assert result.exit_code == 1
    assert {row["file"] for row in json.loads(result.stdout)["rows"]} == {str(file) for file in files[:2]}
    assert result.stderr == "2 damages found\n"
    export = STORE("store", "export", tmp_path / "data", "--out", tmp_path / "x.json")
    assert export.exit_code == 1
    assert "is damaged: the batch at position 0" in export.stderr
    assert not (tmp_path / "x.json").exists()


def test_verify_lists_the_damage_whichever_page_of_the_store_it_is_in(tmp_path: Path) -> None:
    with LocalBroker(CONFIG, data_dir=tmp_path / "data", durability="power") as broker:
        assert Kgctl(broker.bootstrap_servers)("topics", "create", "orders").exit_code == 0
    store = tmp_path / "data" / "store.db"
    intact = store.read_bytes()
    for page in range(1, len(intact) // PAGE_BYTES + 1):
        store.write_bytes(intact)
        flip(store, random.Random(page), at := (page - 1) * PAGE_BYTES + 50, at + 1)
        result = STORE("store", "verify", tmp_path / "data", "-o", "json")
        assert result.exit_code == 1, (page, result.stderr)
        assert f"page {page}, " in result.stdout


def test_reading_beside_a_broker_under_load_fails_no_request_and_reports_no_damage(tmp_path: Path) -> None:
    """Retention removes segments, and commits go to the WAL, while commands read."""
    config = {**CONFIG, "log.retention.check.interval.ms": 100}
    with LocalBroker(config, data_dir=tmp_path / "data", durability="power") as broker:
        kgctl = Kgctl(broker.bootstrap_servers)
        small = ["--config", "segment.bytes=1048576", "--config", "retention.bytes=1000000"]
        assert kgctl("topics", "create", "load", "--partitions", 4, *small).exit_code == 0
        stop, failures, sent = threading.Event(), list[Any](), list[Any]()
        load = threading.Thread(target=produce_and_commit, args=(broker.bootstrap_servers, stop, failures, sent))
        load.start()
        try:
            while len(sent) < 500:
                rows = STORE.rows("store", "verify", tmp_path / "data")
                assert rows == []
                (row,) = query(
                    tmp_path / "data", "SELECT sum(log_end_offset) AS ends FROM partitions WHERE topic = 'load'"
                )
                assert row["ends"] >= 0
                assert STORE("store", "info", tmp_path / "data", "segments").exit_code == 0
        finally:
            stop.set()
            load.join()
        assert failures == []
        (row,) = query(tmp_path / "data", "SELECT sum(log_end_offset) AS ends FROM partitions WHERE topic = 'load'")
        assert row["ends"] == len(sent)
        assert {one.name for one in (tmp_path / "data").iterdir()} <= {
            "broker.log", "commit-marker", "last-run.json", "lock", "ready.json", "segments", "store.db", "store.db-wal",
            "synced-ends",
        }  # fmt: skip


def produce_and_commit(address: str, stop: threading.Event, failures: list[Any], sent: list[Any]) -> None:
    producer = Producer({"bootstrap.servers": address, "linger.ms": 0})
    consumer = ConfluentConsumer({"bootstrap.servers": address, "group.id": "g", "enable.auto.commit": False})
    number = 0

    def delivered(error: object, _: object) -> None:
        (failures if error else sent).append(error)

    while not stop.is_set():
        for partition in range(4):
            producer.produce(
                "load",
                b"x" * 1000,
                partition=partition,
                on_delivery=lambda error, _: failures.append(error) if error else sent.append(1),
            )
        if producer.flush(20):
            failures.append("not flushed")
        try:
            consumer.commit(offsets=[TopicPartition("load", number % 4, number)], asynchronous=False)
        except Exception as error:  # noqa: BLE001  counted as a failed request
            failures.append(error)
        number += 1
    consumer.close()


def test_the_manual_describes_every_table() -> None:
    text = (ROOT / "docs" / "store.md").read_text()
    for name, table in TABLES.items():
        columns = ", ".join(f"`{column}`" for column in table.columns)
        assert f"| `{name}` | {table.meaning} | {columns} |" in text
