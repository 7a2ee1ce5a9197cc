"""Every option of Kafka's consumer and producer is accepted, or refused with the reason; others are refused as unknown."""

from __future__ import annotations

import re

import pytest

from kgctl.pipelines.source.option_names import BadOption
from kgctl.pipelines.source.options import read_options, write_options
from tests.kgctl.pipelines.source.documented_options import EXAMPLES, PAGE, documented, refused

# ConsumerConfig and ProducerConfig of Kafka 4.1, without ssl.*, sasl.* and security.protocol.
BOTH = """
    bootstrap.servers client.dns.lookup client.id config.providers connections.max.idle.ms enable.metrics.push
    interceptor.classes metadata.max.age.ms metadata.recovery.rebootstrap.trigger.ms metadata.recovery.strategy
    metric.reporters metrics.num.samples metrics.recording.level metrics.sample.window.ms receive.buffer.bytes
    reconnect.backoff.max.ms reconnect.backoff.ms request.timeout.ms retry.backoff.max.ms retry.backoff.ms
    security.providers send.buffer.bytes socket.connection.setup.timeout.max.ms socket.connection.setup.timeout.ms
"""
CONSUMER = """
    allow.auto.create.topics auto.commit.interval.ms auto.offset.reset check.crcs client.rack default.api.timeout.ms
    enable.auto.commit exclude.internal.topics fetch.max.bytes fetch.max.wait.ms fetch.min.bytes group.id
    group.instance.id group.protocol group.remote.assignor heartbeat.interval.ms internal.leave.group.on.close
    internal.throw.on.fetch.stable.offset.unsupported isolation.level key.deserializer max.partition.fetch.bytes
    max.poll.interval.ms max.poll.records partition.assignment.strategy session.timeout.ms share.acknowledgement.mode
    value.deserializer
"""
PRODUCER = """
    acks batch.size buffer.memory compression.gzip.level compression.lz4.level compression.type compression.zstd.level
    delivery.timeout.ms enable.idempotence internal.auto.downgrade.txn.commit key.serializer linger.ms max.block.ms
    max.in.flight.requests.per.connection max.request.size metadata.max.idle.ms
    partitioner.adaptive.partitioning.enable partitioner.availability.timeout.ms partitioner.class
    partitioner.ignore.keys retries transaction.timeout.ms transaction.two.phase.commit.enable transactional.id
    value.serializer
"""
READ = {"kafka.bootstrap.servers": "a:1", "subscribe": "t"}
WRITE = {"kafka.bootstrap.servers": "a:1", "topic": "t"}


def is_refused(name: str, use: str) -> bool:
    return name in refused() and use in documented()[name][0]


@pytest.mark.parametrize("name", [f"kafka.{name}" for name in (BOTH + CONSUMER).split()])
def test_an_option_of_the_consumer_is_accepted_or_refused_with_a_reason(name: str) -> None:
    given = READ | {name: EXAMPLES.get(name, "1") if name not in READ else READ[name]}
    if is_refused(name, "read"):
        with pytest.raises(BadOption, match=rf"does not support {name}: \w+"):
            read_options(given)
    else:
        assert read_options(given).connection.bootstrap[0].host == "a"


@pytest.mark.parametrize("name", [f"kafka.{name}" for name in (BOTH + PRODUCER).split()])
def test_an_option_of_the_producer_is_accepted_or_refused_with_a_reason(name: str) -> None:
    given = WRITE | {name: EXAMPLES.get(name, "1") if name not in WRITE else WRITE[name]}
    if is_refused(name, "write"):
        with pytest.raises(BadOption, match=rf"does not support {name}: \w+"):
            write_options(given)
    else:
        assert write_options(given).topic == "t"


@pytest.mark.parametrize(
    ("name", "nearest"),
    [("kafka.heartbeat.ms", "kafka.heartbeat.interval.ms"), ("kafka.max.poll.record", "kafka.max.poll.records")],
)
def test_an_option_that_no_client_has_is_refused_with_the_nearest_name(name: str, nearest: str) -> None:
    with pytest.raises(BadOption, match=f"has no option '{name}'; did you mean '{nearest}'"):
        read_options(READ | {name: "1"})


def test_the_page_says_which_options_are_ignored_and_which_are_refused() -> None:
    text = " ".join(PAGE.read_text().split())
    assert "Options that neither Spark's source nor Kafka's clients have are refused" in text
    ignored = re.search(
        r"All other options of Kafka's consumer and producer, such as (.*?), are accepted but ignored", text
    )
    assert ignored is not None
    for name in re.findall(r"`([\w.]+)`", ignored[1]):
        read_options(READ | {name: "1"})
