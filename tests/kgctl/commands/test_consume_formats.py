"""`kgctl consume`: topics by pattern, format strings, decoded internal topics."""

from __future__ import annotations

import json
from typing import Any

import pytest
from confluent_kafka import Consumer

from tests.harness.clusters import Cluster, fresh
from tests.harness.commandline import Kgctl, fill, opened

ALL = ["--from-beginning", "--until-end"]


def decoded(kgctl: Kgctl, kind: str) -> list[dict[str, Any]]:
    done = kgctl("consume", "--decode", kind, *ALL, "--json")
    assert done.exit_code == 0, done.output
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_a_format_string_prints_as_kcat_does(kgctl: Kgctl) -> None:
    topic = fresh("t")
    assert kgctl("topics", "create", topic).exit_code == 0
    fill(kgctl, topic, [2], timestamp_ms=1_700_000_000_000)
    line = r"%t %p %o %k/%K %s/%S [%h] %T 100%%\x21\n"
    shown = kgctl("consume", topic, *ALL, "--format", line)
    assert shown.stdout == "".join(f"{topic} 0 {n} k/1 v/1 [] {1_700_000_000_000 + n} 100%!\n" for n in range(2))


def test_a_format_string_tells_null_from_empty(kgctl: Kgctl) -> None:
    topic = fresh("t")
    lines = '{"key": null, "value": ""}\n{"key": "a", "value": null, "headers": [{"key": "h", "value": "x"}]}\n'
    assert kgctl("produce", topic, "--json", text=lines).exit_code == 0
    shown = kgctl("consume", topic, *ALL, "--format", r"%k %K %S %h;", "--null-marker", "NULL")
    assert sorted(shown.stdout.split(";")) == ["", "NULL -1 0 ", "a 1 -1 h=x"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["t", "--format", "%q"], "%q is not one of %t, %p"),
        (["t", "--format", "50%"], "a single % at the end; write it as %%"),
        (["t", "--format", "%s", "--json"], "Give --format or --json, not both"),
        (["t", "--decode", "offsets"], "Give TOPIC or --decode, not both"),
        (["--include", "("], "'('"),
        ([], "Name topics, or give --include REGEX or --decode KIND"),
    ],
)
def test_what_cannot_be_meant_is_a_usage_error(arguments: list[str], sentence: str) -> None:
    refused = Kgctl()("consume", *arguments)
    assert refused.exit_code == 2
    assert sentence in " ".join(refused.stderr.split())


def test_a_pattern_chooses_topics_but_no_internal_ones(kgctl: Kgctl) -> None:
    stem = fresh("many")
    for suffix in ("-a", "-b", "-ab"):
        assert kgctl("topics", "create", stem + suffix).exit_code == 0
        fill(kgctl, stem + suffix, [1])
    shown = kgctl("consume", "--include", f"{stem}-.", *ALL, "--format", r"%t\n")
    assert sorted(shown.stdout.split()) == [f"{stem}-a", f"{stem}-b"]
    absent = kgctl("consume", "--include", "__consumer_.*", *ALL)
    assert (absent.exit_code, absent.stderr) == (5, "Error: No topic matches '__consumer_.*'.\n")


def test_committed_offsets_and_groups_are_decoded(kgctl: Kgctl) -> None:
    topic, group = fresh("t"), fresh("g")
    assert kgctl("topics", "create", topic).exit_code == 0
    fill(kgctl, topic, [3])
    consumer = Consumer(
        {
            "bootstrap.servers": kgctl.bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe([topic])
    assert len(consumer.consume(3, 30)) == 3
    consumer.commit(asynchronous=False)
    consumer.close()
    rows = [row for row in decoded(kgctl, "offsets") if row["key"]["group"] == group]
    (commit,) = [row for row in rows if row["type"] == "offset-commit"]
    assert commit["key"] == {"group": group, "topic": topic, "partition": 0}
    assert (commit["value"]["offset"], commit["value"]["metadata"]) == (3, "")
    (member,) = next(
        row["value"]["members"] for row in rows if row["type"] == "group-metadata" and row["value"]["members"]
    )
    assert member["subscription"]["topics"] == [topic]
    text = kgctl("consume", "--decode", "offsets", *ALL).stdout
    (line,) = [line for line in text.splitlines() if f"offset-commit group={group} topic={topic} partition=0: " in line]
    assert f"@{commit['offset']} " in line
    assert "offset=3 " in line


def test_groups_of_the_newer_protocol_are_decoded(kgctl: Kgctl, cluster: Cluster) -> None:
    topic, group = fresh("t"), fresh("g")
    assert kgctl("topics", "create", topic).exit_code == 0
    fill(kgctl, topic, [1])
    consumer = Consumer(
        {
            "bootstrap.servers": kgctl.bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "group.protocol": "consumer",
        }
    )
    consumer.subscribe([topic])
    assert len(consumer.consume(1, 30)) == 1
    consumer.close()
    rows = [row for row in decoded(kgctl, "offsets") if row["key"].get("group") == group]
    found = {row["type"]: row for row in rows if row["value"] is not None}
    assert found["consumer-group-member"]["value"]["subscribed_topic_names"] == [topic]
    assert found["consumer-group-metadata"]["value"]["epoch"] >= 1
    assert len(found["consumer-group-current-assignment"]["key"]["member_id"]) > 5
    (assigned,) = next(
        row["value"]["topic_partitions"]
        for row in rows
        if row["type"] == "consumer-group-target-assignment-member"
        and row["value"]
        and row["value"]["topic_partitions"]
    )
    assert assigned["partitions"] == [0]
    assert not [row for row in rows if row["type"] == "unknown"]


def test_transactions_are_decoded(kgctl: Kgctl) -> None:
    topic = fresh("t")
    assert kgctl("topics", "create", topic).exit_code == 0
    with opened(kgctl, topic) as (name, _):
        rows = [row for row in decoded(kgctl, "transactions") if row["key"] == {"transactional_id": name}]
    assert rows[-1]["value"]["state"] == "Ongoing"
    assert rows[-1]["value"]["transaction_partitions"] == [{"topic": topic, "partition_ids": [0]}]


def test_events_of_groups_are_decoded(our_cluster: Cluster) -> None:
    kgctl = Kgctl(our_cluster.bootstrap_servers)
    topic, group = fresh("t"), fresh("g")
    assert kgctl("topics", "create", topic).exit_code == 0
    consumer = Consumer({"bootstrap.servers": kgctl.bootstrap, "group.id": group})
    consumer.subscribe([topic])
    consumer.poll(5)
    consumer.close()
    rows = [row for row in decoded(kgctl, "events") if row["key"] == {"group": group}]
    assert rows
    assert {row["type"] for row in rows} == {"group-event"}


def test_a_record_that_cannot_be_decoded_is_shown_in_base64() -> None:
    from broker.protocol.record_batch import Record
    from kgctl.model.topic_partition import TopicPartition
    from kgctl.render.internal_records import decoded_as

    place = TopicPartition("__consumer_offsets", 3)
    bad = Record(7, -1, b"\x00\x63\x1b[31m", b"\xff")
    row = json.loads(decoded_as("offsets", as_json=True)(place, [bad], False))
    assert (row["type"], row["value"], row["timestamp"]) == ("unknown", {"value_base64": "/w=="}, None)
    text = decoded_as("offsets", as_json=False)(place, [bad], False)
    assert text.startswith(b"__consumer_offsets-3@7 - unknown key_base64=")
    assert b"\x1b" not in text
