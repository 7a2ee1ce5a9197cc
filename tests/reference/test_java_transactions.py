"""Java producers in transactions, and Kafka's tool for transactions."""

from __future__ import annotations

import contextlib
import json
import re

import pytest

from tests.clients.adapters import client_named
from tests.clients.records import make_topic, produce, values
from tests.clients.transactional import COMMITTED, read_until, send
from tests.harness.broker_program import eventually
from tests.harness.clusters import Cluster, fresh
from tests.harness.java_tools import Java
from tests.harness.reference_kafka import KafkaTools

LIBRDKAFKA = client_named("confluent-kafka")
RECORDS = 600


@pytest.mark.parametrize("level", [2, 1, 0])
def test_the_message_copier_copies_each_record_once_although_it_aborts_and_is_killed(
    tools: KafkaTools, own_cluster: Cluster, level: int
) -> None:
    """Kafka's own consume, transform, produce, with each version of transactions."""
    java = Java(tools, own_cluster)
    if level < 2:
        java.run("features", "downgrade", "--feature", f"transaction.version={level}")
    assert re.search(rf"transaction.version\s.*FinalizedVersionLevel: {level}\s", java.run("features", "describe")), (
        java.run("features", "describe")
    )
    source, output = (make_topic(LIBRDKAFKA, own_cluster, 1, stem) for stem in ("copied", "copies"))
    given = values("v", RECORDS)
    produce(LIBRDKAFKA, own_cluster, source, given, 1)
    arguments = ["--broker-list", java.bootstrap, "--input-topic", source, "--input-partition", 0]
    arguments += ["--output-topic", output, "--transactional-id", "copier", "--consumer-group", "copiers"]
    arguments += ["--transaction-size", 20, "--enable-random-aborts"]
    killed = tools.start("transactional-message-copier", *arguments)
    assert killed.stdout is not None
    with killed:
        for line in killed.stdout:
            if json.loads(line).get("consumed", 0) >= RECORDS // 10:
                break
        killed.kill()
    # The tool fetches its position before it fences the killed producer, and waits while that producer has pending offsets.
    LIBRDKAFKA.transactional_producer(java.bootstrap, "copier").close()
    done = tools.run("transactional-message-copier", *arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    assert read_until(LIBRDKAFKA, own_cluster, output, COMMITTED, {given[-1]}) == given


def test_the_performance_producer_commits_all_its_records(tools: KafkaTools, cluster: Cluster) -> None:
    java, topic = Java(tools, cluster), make_topic(LIBRDKAFKA, cluster, 1, "performed")
    arguments = ["--topic", topic, "--num-records", 5000, "--record-size", 100, "--throughput", 5000]
    arguments += ["--transactional-id", fresh("perf"), "--transaction-duration-ms", 50]
    done = tools.run("producer-perf-test", *arguments, "--producer-props", f"bootstrap.servers={java.bootstrap}")
    assert "5000 records sent" in done.stdout, done.stdout + done.stderr
    options = ("--topic", topic, "--from-beginning", "--isolation-level", "read_committed")
    read = java.run("console-consumer", *options, "--max-messages", 5000, "--timeout-ms", 20_000)
    assert len(read.splitlines()) == 5000


def test_kafkas_tool_shows_and_ends_transactions(tools: KafkaTools, cluster: Cluster) -> None:
    java, name = Java(tools, cluster), fresh("shown")
    topic, other = (make_topic(LIBRDKAFKA, cluster, 3, stem) for stem in ("opened", "other"))
    place = ("--topic", topic, "--partition", 0)
    with contextlib.closing(LIBRDKAFKA.transactional_producer(java.bootstrap, name)) as producer:
        producer.begin()
        send(producer, topic, values("open", 3))
        listed = java.run("transactions", "list")
        assert re.search(rf"^{name}\s+1\s+\d+\s+Ongoing\s*$", listed, re.MULTILINE), listed
        described = java.run("transactions", "describe", "--transactional-id", name)
        assert re.search(rf"{name}\s+\d+\s+0\s+Ongoing\s+60000\s", described), described
        assert all(f"{topic}-{partition}" in described for partition in range(3)), described
        producers = java.run("transactions", "describe-producers", *place).splitlines()[1].split()
        assert producers[1:4] == ["0", "-1", "0"], producers
        assert producers[-1] == "0", producers
        # It is not hanging: its coordinator knows it.
        found = java.run("transactions", "find-hanging", "--max-transaction-timeout", 0, "--topic", topic)
        assert len(found.strip().splitlines()) == 1, found
        java.run("transactions", "forceTerminateTransaction", "--transactionalId", name)
        with pytest.raises(Exception, match=r"(?i)fence|epoch"):
            producer.commit()
    produce(LIBRDKAFKA, cluster, topic, kept := values("kept", 3), 3)
    assert sorted(read_until(LIBRDKAFKA, cluster, topic, COMMITTED, set(kept))) == kept

    with contextlib.closing(LIBRDKAFKA.transactional_producer(java.bootstrap, fresh("aborted"))) as producer:
        producer.begin()
        send(producer, other, values("open", 3))
        java.run("transactions", "abort", "--topic", other, "--partition", 0, "--start-offset", 0)
    produce(LIBRDKAFKA, cluster, other, kept, 3)

    def first_partition() -> bool:
        shown = java.run(
            "console-consumer",
            "--topic",
            other,
            "--partition",
            0,
            "--offset",
            "earliest",
            "--isolation-level",
            "read_committed",
            "--max-messages",
            1,
            "--timeout-ms",
            10_000,
        )
        return shown.split() == [kept[0]]

    eventually(first_partition, "the record behind the aborted transaction")
