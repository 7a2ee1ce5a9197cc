"""The tables of options in docs/pipelines-source.md, and an example of each option."""

from __future__ import annotations

import re

from tests.harness import ROOT

PAGE = ROOT / "docs" / "pipelines-source.md"
OLD = 1_700_000_000_000

# For a topic of two partitions, {topic}, with a record per second from OLD on.
EXAMPLES = {
    "subscribe": "{topic}",
    "subscribePattern": "{topic}|no-such-.*",
    "assign": '{{"{topic}": [1]}}',
    "startingOffsets": '{{"{topic}": {{"0": 10, "1": -2}}}}',
    "startingOffsetsByTimestamp": f'{{{{"{{topic}}": {{{{"0": {OLD}, "1": {OLD + 9000}}}}}}}}}',
    "startingTimestamp": str(OLD + 9000),
    "startingOffsetsByTimestampStrategy": "latest",
    "endingOffsets": '{{"{topic}": {{"0": 10, "1": -1}}}}',
    "endingOffsetsByTimestamp": f'{{{{"{{topic}}": {{{{"0": {OLD + 9000}, "1": {OLD + 10**9}}}}}}}}}',
    "endingTimestamp": str(OLD + 9000),
    "failOnDataLoss": "false",
    "maxOffsetsPerTrigger": "6",
    "minOffsetsPerTrigger": "2",
    "maxTriggerDelay": "5m",
    "minPartitions": "5",
    "maxRecordsPerPartition": "3",
    "includeHeaders": "true",
    "kafkaConsumer.pollTimeoutMs": "30000",
    "fetchOffset.numRetries": "5",
    "fetchOffset.retryIntervalMs": "10",
    "groupIdPrefix": "mine",
    "kafka.group.id": "mine",
    "topic": "{topic}",
    "kafka.isolation.level": "read_committed",
    "kafka.fetch.max.wait.ms": "10",
    "kafka.fetch.min.bytes": "1",
    "kafka.fetch.max.bytes": "1000000",
    "kafka.max.partition.fetch.bytes": "1000000",
    "kafka.client.id": "mine",
    "kafka.compression.type": "gzip",
    "kafka.auto.offset.reset": "earliest",
    "kafka.enable.auto.commit": "true",
    "kafka.key.deserializer": "org.apache.kafka.common.serialization.StringDeserializer",
    "kafka.value.deserializer": "org.apache.kafka.common.serialization.StringDeserializer",
    "kafka.config.providers": "file",
    "kafka.interceptor.classes": "example.Interceptor",
    "kafka.key.serializer": "org.apache.kafka.common.serialization.StringSerializer",
    "kafka.value.serializer": "org.apache.kafka.common.serialization.StringSerializer",
    "kafka.partitioner.class": "org.apache.kafka.clients.producer.RoundRobinPartitioner",
    "kafka.transactional.id": "mine",
}


def documented() -> dict[str, tuple[frozenset[str], str]]:
    """Per option for what it is (read, batch, stream, write), and what the table says about it."""
    rows = re.findall(r"(?m)^\| `([\w.]+)` \| ([a-z, ]+) \| (.+) \|$", PAGE.read_text())
    return {name: (frozenset(uses.split(", ")), text) for name, uses, text in rows}


def refused() -> set[str]:
    table = PAGE.read_text().partition("Some options are refused")[2].partition("##")[0]
    return set(re.findall(r"(?m)^\| `([\w.]+)`", table))


def with_example(name: str, topic: str) -> dict[str, str]:
    """Options to read that topic, with the example of this option."""
    given = {} if name in ("subscribe", "subscribePattern", "assign") else {"subscribe": topic}
    return given | {name: EXAMPLES[name].format(topic=topic)}
