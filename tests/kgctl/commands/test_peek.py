"""`kgctl groups peek`: the records around committed offsets."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from tests.harness.clusters import fresh
from tests.harness.commandline import Kgctl, fill, opened
from tests.harness.running import RunningBroker, until


@pytest.fixture
def topic(kgctl: Kgctl) -> str:
    name = fresh("t")
    assert kgctl("topics", "create", name, "--partitions", 2).exit_code == 0
    return name


def shown(kgctl: Kgctl, group: str, *arguments: object) -> list[tuple[Any, ...]]:
    rows = kgctl.rows("groups", "peek", group, *arguments)
    return [(row["partition"], row["position"], row["offset"], row["transaction"]) for row in rows]


def in_transaction(kgctl: Kgctl, topic: str, *, commit: bool) -> None:
    """Three records and their marker."""
    producer = Producer({"bootstrap.servers": kgctl.bootstrap, "transactional.id": fresh("tx")})
    producer.init_transactions(30)
    producer.begin_transaction()
    for n in range(3):
        producer.produce(topic, f"value {n}", partition=0)
    assert producer.flush(30) == 0
    (producer.commit_transaction if commit else producer.abort_transaction)(30)


def test_records_before_and_after_the_committed_offset_are_shown(kgctl: Kgctl, topic: str) -> None:
    fill(kgctl, topic, [9, 2])
    group = fresh("g")
    kgctl.commit(group, topic, p0=4, p1=2)
    assert shown(kgctl, group) == [
        *((0, "before", offset, None) for offset in (1, 2, 3)),
        (0, "next", 4, None),
        *((0, "after", offset, None) for offset in (5, 6)),
        *((1, "before", offset, None) for offset in (0, 1)),
        (1, None, None, None),
    ]
    assert shown(kgctl, group, "--topic", f"{topic}:0", "--before", 0, "--after", 1) == [(0, "next", 4, None)]
    result = kgctl("groups", "peek", group)
    assert [line.split()[2] for line in result.stdout.splitlines() if " 4 " in line] == [">"]
    assert result.stderr == f"{topic}-1: the committed offset 2 is the end of the log: everything is read.\n"
    assert [line.split(maxsplit=6)[6] for line in result.stdout.splitlines() if "read" in line] == [
        "(everything is read)"
    ]


def test_an_offset_out_of_range_is_named(kgctl: Kgctl, topic: str) -> None:
    fill(kgctl, topic, [5])
    group = fresh("g")
    kgctl.commit(group, topic, p0=1)
    assert kgctl("topics", "delete-records", f"{topic}:0:3", "--execute").exit_code == 0
    assert shown(kgctl, group) == [(0, "next", 3, None), (0, "after", 4, None)]
    sentence = (
        f"{topic}-0: the committed offset 1 is out of range: the log starts at 3, so 2 offsets can no longer be read."
    )
    assert sentence in kgctl("groups", "peek", group).stderr


def test_transactions_around_the_offset_are_told_apart(kgctl: Kgctl, topic: str) -> None:
    in_transaction(kgctl, topic, commit=True)
    in_transaction(kgctl, topic, commit=False)
    group = fresh("g")
    kgctl.commit(group, topic, p0=3)
    expected = [*((0, "before", offset, "committed") for offset in (0, 1, 2)), (0, "next", 4, "aborted")]
    assert shown(kgctl, group, "--after", 1) == expected
    assert "3 is the end marker of a transaction; the next record is at 4." in kgctl("groups", "peek", group).stderr
    kgctl.commit(group, topic, p0=5)
    assert "5 is inside an aborted transaction" in kgctl("groups", "peek", group).stderr
    with opened(kgctl, topic, 2) as (name, _):
        kgctl.commit(group, topic, p0=9)
        assert shown(kgctl, group, "--before", 1) == [(0, "before", 8, "open"), (0, "next", 9, "open")]
        stderr = kgctl("groups", "peek", group).stderr
    assert "9 is inside an open transaction: read_committed consumers wait at 8 for its end." in stderr
    assert f"transactional id '{name}'" in stderr


def test_contents_cannot_command_the_terminal_and_json_has_them_whole(kgctl: Kgctl, topic: str) -> None:
    producer = Producer({"bootstrap.servers": kgctl.bootstrap})
    producer.produce(topic, b"\xff\x1b[2J", key="\x1b[31m", partition=0, headers={"trace": b"\x07", "none": None})
    producer.produce(topic, None, key="", partition=0)
    producer.produce(topic, "x" * 5000, partition=0)
    assert producer.flush(30) == 0
    group = fresh("g")
    kgctl.commit(group, topic, p0=0)
    result = kgctl("groups", "peek", group)
    assert result.exit_code == 0
    assert not {"\x1b", "\x07"} & set(result.stdout)
    first, second, third = [line.split() for line in result.stdout.splitlines()[1:4]]
    assert first[5:] == ["\\x1b[31m", "base64:/xtbMko=", "trace=\\x07,none=null"]
    assert second[5:7] == ['""', "null"]
    assert len(third[6]) < 200
    rows = kgctl.rows("groups", "peek", group)
    assert (rows[0]["key"], rows[0]["value"], rows[0]["value_base64"]) == ("\x1b[31m", None, "/xtbMko=")
    assert rows[0]["headers"][0] == {"key": "trace", "value": "\x07", "value_base64": None}
    assert (rows[1]["key"], rows[1]["value"], rows[1]["value_base64"]) == ("", None, None)
    assert rows[2]["value"] == "x" * 5000


def test_a_group_without_offsets_is_not_found(kgctl: Kgctl, topic: str) -> None:
    absent = fresh("absent")
    missing = kgctl("groups", "peek", absent)
    assert (missing.exit_code, missing.stderr) == (5, f"Error: Consumer group '{absent}' does not exist.\n")
    group = fresh("g")
    kgctl.commit(group, topic, p0=0)
    elsewhere = kgctl("groups", "peek", group, "--topic", f"{topic}:1")
    assert (elsewhere.exit_code, elsewhere.stderr) == (
        5,
        f"Error: Group '{group}' has no committed offsets for these topics.\n",
    )


def test_an_offset_that_compaction_removed_leads_to_the_next_record(tmp_path: Path) -> None:
    with RunningBroker(tmp_path, log_cleaner_backoff_ms="20") as running:
        kgctl = Kgctl("{}:{}".format(*running.address))
        configs = ("cleanup.policy=compact", "segment.ms=100", "min.cleanable.dirty.ratio=0.01")
        options = [word for config in configs for word in ("--config", config)]
        assert kgctl("topics", "create", "latest", *options).exit_code == 0
        first = int(time.time() * 1000) - 60_000
        for number in range(6):
            record = {"key": "k", "value": f"v{number}", "timestamp": first + 1000 * number}
            assert kgctl("produce", "latest", "--json", text=json.dumps(record)).exit_code == 0
        kgctl.commit("readers", "latest", p0=2)
        until(lambda: shown(kgctl, "readers") == [(0, "next", 4, None), (0, "after", 5, None)])
        stderr = kgctl("groups", "peek", "readers").stderr
        assert (
            stderr
            == "latest-0: the committed offset 2 has no record: compaction removed it; the next record is at 4.\n"
        )
