"""Kafka's own Java tools work on our broker."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.harness.clusters import Cluster, fresh
from tests.harness.java_tools import Java, JavaMember
from tests.harness.reference_kafka import KafkaTools


@pytest.fixture
def java(tools: KafkaTools, cluster: Cluster) -> Java:
    return Java(tools, cluster)


def topic_with(java: Java, count: int, partitions: int = 1) -> str:
    """A topic with values v0, v1, ... and keys k0, k1, ..."""
    topic = fresh("tools")
    java.run("topics", "--create", "--topic", topic, "--partitions", partitions)
    if count:
        lines = "".join(f"k{n}:v{n}\n" for n in range(count))
        keyed = ("--property", "parse.key=true", "--property", "key.separator=:")
        java.run("console-producer", "--topic", topic, *keyed, text=lines)
    return topic


def test_topics_are_created_listed_described_altered_and_deleted(java: Java) -> None:
    topic = fresh("topics")
    output = java.run("topics", "--create", "--topic", topic, "--partitions", 3, "--config", "retention.ms=600000")
    assert f"Created topic {topic}." in output
    assert topic in java.run("topics", "--list").split()

    described = java.run("topics", "--describe", "--topic", topic)
    assert re.search(rf"Topic: {topic}\s+TopicId: \S{{22}}\s+PartitionCount: 3\s+ReplicationFactor: 1", described)
    assert "retention.ms=600000" in described
    assert re.findall(r"Partition: (\d)\s+Leader: 1\s+Replicas: 1\s+Isr: 1", described) == ["0", "1", "2"]

    java.run("topics", "--alter", "--topic", topic, "--partitions", 5)
    assert "PartitionCount: 5" in java.run("topics", "--describe", "--topic", topic)
    java.run("topics", "--delete", "--topic", topic)
    assert topic not in java.run("topics", "--list").split()


def test_topic_configs_can_be_changed_and_reset(java: Java) -> None:
    topic = topic_with(java, 0)
    entity = ("--entity-type", "topics", "--entity-name", topic)
    java.run("configs", "--alter", *entity, "--add-config", "retention.ms=120000,cleanup.policy=compact")
    described = java.run("configs", "--describe", *entity)
    assert "retention.ms=120000" in described
    assert "cleanup.policy=compact" in described
    java.run("configs", "--alter", *entity, "--delete-config", "retention.ms")
    assert "retention.ms=120000" not in java.run("configs", "--describe", *entity)
    assert "min.insync.replicas=1" in java.run("configs", "--describe", "--all", *entity)


def test_broker_configs_are_shown(java: Java) -> None:
    shown = java.run("configs", "--describe", "--all", "--entity-type", "brokers", "--entity-name", 1)
    assert "group.initial.rebalance.delay.ms=0" in shown
    assert "offsets.topic.num.partitions=50" in shown


def test_the_console_tools_transport_keys_and_values(java: Java) -> None:
    topic = topic_with(java, 5)
    read = java.run(
        "console-consumer",
        *("--topic", topic, "--from-beginning", "--max-messages", 5),
        *("--property", "print.key=true", "--property", "key.separator=:", "--property", "print.offset=true"),
    )
    assert read.split() == [f"Offset:{n}:k{n}:v{n}" for n in range(5)]


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_the_console_consumer_reads_every_compression(java: Java, codec: str) -> None:
    topic = topic_with(java, 0)
    lines = [f"line-{n}" for n in range(100)]
    java.run("console-producer", "--topic", topic, "--compression-codec", codec, text="\n".join(lines))
    read = java.run("console-consumer", "--topic", topic, "--from-beginning", "--max-messages", 100)
    assert read.split() == lines


def test_the_verifiable_producer_gets_every_acknowledgement(java: Java) -> None:
    topic = topic_with(java, 0)
    output = java.run("verifiable-producer", "--topic", topic, "--max-messages", 500, "--acks", -1).splitlines()
    (summary,) = [json.loads(line) for line in output if '"tool_data"' in line]
    assert (summary["sent"], summary["acked"]) == (500, 500)
    assert f"{topic}:0:500" in java.run("get-offsets", "--topic", topic)


def test_two_verifiable_consumers_share_the_partitions_and_appear_in_the_group(java: Java) -> None:
    topic, group = topic_with(java, 40, partitions=4), fresh("java")
    with JavaMember(java, group, topic) as first:
        first.wait_for("offsets_committed", success=True)
        with JavaMember(java, group, topic) as second:
            assert len(second.wait_for("partitions_assigned")["partitions"]) == 2
            about = ("--describe", "--group", group)

            assert group in java.run("consumer-groups", "--list").split()
            listed = java.table("consumer-groups", "--list", "--state", "--type")
            assert {"GROUP": group, "TYPE": "Classic", "STATE": "Stable"} in listed

            offsets = java.table("consumer-groups", *about)
            assert sorted((row["TOPIC"], row["PARTITION"]) for row in offsets) == [(topic, str(p)) for p in range(4)]
            assert sum(int(row["LOG-END-OFFSET"]) for row in offsets) == 40
            assert {row["HOST"] for row in offsets} == {"/127.0.0.1"}
            assert len({row["CONSUMER-ID"] for row in offsets}) == 2

            members = java.table("consumer-groups", *about, "--members", "--verbose")
            assert [row["#PARTITIONS"] for row in members] == ["2", "2"]
            assert sorted(row["CURRENT-ASSIGNMENT"] for row in members) == [f"{topic}:0,1", f"{topic}:2,3"]

            (state,) = java.table("consumer-groups", *about, "--state", "--verbose")
            assert (state["STATE"], state["ASSIGNMENT-STRATEGY"], state["#MEMBERS"]) == ("Stable", "range", "2")
            assert state["COORDINATOR(ID)"] == f"{java.bootstrap}(1)"


def test_offsets_of_an_empty_group_can_be_reset_and_the_group_deleted(java: Java) -> None:
    topic, group = topic_with(java, 10), fresh("reset")
    read = java.run("console-consumer", "--topic", topic, "--group", group, "--from-beginning", "--max-messages", 10)
    assert len(read.split()) == 10
    reset = ("--reset-offsets", "--group", group, "--topic", topic)
    for strategy, expected in ((("--shift-by", -3), 7), (("--by-duration", "PT1H"), 0)):
        (planned,) = java.table("consumer-groups", *reset, *strategy, "--execute")
        assert planned == {"GROUP": group, "TOPIC": topic, "PARTITION": "0", "NEW-OFFSET": str(expected)}
        (row,) = java.table("consumer-groups", "--describe", "--group", group)
        assert (row["CURRENT-OFFSET"], row["LAG"], row["CONSUMER-ID"]) == (str(expected), str(10 - expected), "-")
    java.run("consumer-groups", "--delete-offsets", "--group", group, "--topic", topic)
    assert java.table("consumer-groups", "--describe", "--group", group) == []
    java.run("consumer-groups", "--reset-offsets", "--group", group, "--topic", topic, "--to-latest", "--execute")
    assert "was successful" in java.run("consumer-groups", "--delete", "--group", group)
    assert group not in java.run("consumer-groups", "--list").split()


def test_offsets_by_time_and_deleted_records_are_visible(java: Java, tmp_path: Path) -> None:
    topic = topic_with(java, 10)
    asked = ("--topic", topic)
    assert java.run("get-offsets", *asked, "--time", "latest").split() == [f"{topic}:0:10"]
    assert java.run("get-offsets", *asked, "--time", "earliest").split() == [f"{topic}:0:0"]
    assert java.run("get-offsets", *asked, "--time", 0).split() == [f"{topic}:0:0"]
    assert java.run("get-offsets", *asked, "--time", "max-timestamp").split()[0].startswith(f"{topic}:0:")

    plan = tmp_path / "records.json"
    plan.write_text(json.dumps({"version": 1, "partitions": [{"topic": topic, "partition": 0, "offset": 6}]}))
    assert "low_watermark: 6" in java.run("delete-records", "--offset-json-file", plan)
    assert java.run("get-offsets", *asked, "--time", "earliest").split() == [f"{topic}:0:6"]
    left = java.run("console-consumer", *asked, "--from-beginning", "--max-messages", 4)
    assert left.split() == ["v6", "v7", "v8", "v9"]


def test_log_directories_are_described(java: Java) -> None:
    topic = topic_with(java, 10)
    output = java.run("log-dirs", "--describe", "--topic-list", topic)
    (described,) = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    (broker,) = described["brokers"]
    (directory,) = broker["logDirs"]
    assert directory["error"] is None
    (partition,) = directory["partitions"]
    assert partition["partition"] == f"{topic}-0"
    assert partition["size"] > 0


def test_the_performance_tools_complete(java: Java) -> None:
    topic = topic_with(java, 0, partitions=2)
    produced = java.tools.run(
        "producer-perf-test",
        *("--topic", topic, "--num-records", 20000, "--record-size", 500, "--throughput", -1),
        *("--producer-props", f"bootstrap.servers={java.bootstrap}"),
    )
    assert "20000 records sent" in produced.stdout, produced
    assert sum(int(line.split(":")[2]) for line in java.run("get-offsets", "--topic", topic).split()) == 20000
    consumed = java.run("consumer-perf-test", "--topic", topic, "--messages", 20000, "--hide-header")
    assert int(consumed.split(",")[4]) >= 20000


def test_the_api_versions_tool_lists_the_broker(java: Java) -> None:
    output = java.run("broker-api-versions")
    assert re.search(r"JoinGroup\(11\): 0 to 9 \[usable: 9\]", output)
    assert "id: 1" in output
