"""kgctl's source and Spark's connector read the same rows, on kgctl's broker and on a real Kafka."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kgctl.contexts.connecting import connection_at
from kgctl.pipelines.schemas.sources import OFFSETS_TOPIC
from kgctl.pipelines.settings import RunSettings
from kgctl.pipelines.source.connector import (
    FAST,
    ReadNothing,
    refuse_empty,
    session_conf,
    stream_options,
)
from kgctl.pipelines.source.positions import publish
from tests.harness.clusters import Cluster
from tests.kgctl.pipelines.source.second_session import Rows, SecondSession
from tests.kgctl.pipelines.source.topics import Topics

pytestmark = [pytest.mark.reference, pytest.mark.spark, pytest.mark.timeout(600)]
OLD = 1_700_000_000_000


@pytest.fixture
def there(cluster: Cluster) -> Topics:
    return Topics(cluster.bootstrap_servers)


def both(session: SecondSession, topics: Topics, **options: str) -> Rows:
    """The rows of a batch, after checking that both sources read the same."""
    given = {"kafka.bootstrap.servers": topics.bootstrap_servers, **options}
    ours, theirs = session.read("kgctl", given), session.read("kafka", given | FAST)
    assert ours == theirs
    return ours


def varied(count: int, partitions: int) -> list[dict[str, Any]]:
    """Records of many shapes, so old that only a topic without retention keeps them."""
    return [
        {
            "key": None if n % 7 == 0 else b"key-%d" % n,
            "value": None if n % 11 == 0 else b"v" * (n % 300),
            "partition": n % partitions,
            "timestamp": OLD + n * 1000,
            "headers": [("a", b"%d" % n), ("ä", None), ("a", b"")][: n % 4],
        }
        for n in range(count)
    ]


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_a_batch_is_the_same_and_holds_all_acknowledged_records(
    connector_session: SecondSession, there: Topics, codec: str
) -> None:
    name = there.make(partitions=3, retention_ms="-1")
    there.fill(name, varied(2000, 3), **{"compression.type": codec, "batch.num.messages": 100})
    rows = both(connector_session, there, subscribe=name, includeHeaders="true")
    assert len(rows) == 2000
    assert both(connector_session, there, subscribe=name) == [row[:7] for row in rows]


def test_ranges_by_offset_time_and_partition_are_the_same(connector_session: SecondSession, there: Topics) -> None:
    name = there.make(partitions=2, retention_ms="-1")
    there.fill(name, varied(400, 2))
    some = {
        "startingOffsets": f'{{"{name}": {{"0": 10, "1": -2}}}}',
        "endingOffsets": f'{{"{name}": {{"0": 20, "1": -1}}}}',
    }
    assert len(both(connector_session, there, subscribe=name, **some)) == 210
    times = {"startingTimestamp": str(OLD + 100_000), "endingTimestamp": str(OLD + 200_500)}
    assert len(both(connector_session, there, subscribe=name, **times)) == 101
    assert len(both(connector_session, there, assign=f'{{"{name}": [1]}}', minPartitions="4")) == 200
    each = {
        "startingOffsetsByTimestamp": f'{{"{name}": {{"0": {OLD}, "1": {OLD + 300_000}}}}}',
        "endingOffsetsByTimestamp": f'{{"{name}": {{"0": {OLD + 1}, "1": {OLD + 10**9}}}}}',
    }
    assert len(both(connector_session, there, subscribe=name, **each)) == 51


def test_a_pattern_matches_the_same_topics(connector_session: SecondSession, there: Topics) -> None:
    name = there.make(retention_ms="-1")
    there.fill(name, varied(10, 1))
    assert len(both(connector_session, there, subscribePattern=name)) == 10


def test_append_times_and_compacted_topics_are_the_same(connector_session: SecondSession, there: Topics) -> None:
    name = there.make(message_timestamp_type="LogAppendTime", cleanup_policy="compact")
    there.fill(name, [{"key": b"%d" % (n % 5), "value": b"%d" % n} for n in range(500)])
    rows = both(connector_session, there, subscribe=name)
    assert {row[6] for row in rows} == {1}
    assert len({row[0] for row in rows}) == 5


def test_a_stream_has_the_same_batches(connector_session: SecondSession, there: Topics, tmp_path: Path) -> None:
    name = there.make(partitions=2, retention_ms="-1")
    there.fill(name, varied(1000, 2))
    seen = {}
    for source in ("kgctl", "kafka"):
        settings = RunSettings((), there.bootstrap_servers, "", source=source, max_offsets_per_trigger=400)
        seen[source] = connector_session.stream(source, stream_options(settings, [name]), str(tmp_path / source))
    assert seen["kgctl"] == seen["kafka"]
    rows, sizes = seen["kgctl"]
    assert len(rows) == 1000
    assert sizes == [400, 400, 200]


def test_both_read_internal_topics_and_an_empty_result_is_refused(
    connector_session: SecondSession, there: Topics, tmp_path: Path
) -> None:
    name = there.make(partitions=3)
    there.count(name, 30, partitions=3)
    assert publish(connection_at(there.bootstrap_servers), "job-a", {name: {0: 1, 1: 2, 2: 3}}) is None
    conf = session_conf([OFFSETS_TOPIC])
    for source in ("kafka", "kgctl"):
        settings = RunSettings((), there.bootstrap_servers, "", source=source)
        options = stream_options(settings, [OFFSETS_TOPIC])
        rows = connector_session.read(source, options, conf)
        assert sum(b"spark-job-a" in row[0] and name.encode() in row[0] for row in rows) == 3
        refuse_empty(connection_at(there.bootstrap_servers), [OFFSETS_TOPIC], len(rows))
        # The connector's own group commits nothing, but it joins, which adds records: compare only the earlier ones.
        streamed, _ = connector_session.stream(source, options, str(tmp_path / source), conf)
        assert set(map(repr, rows)) <= set(map(repr, streamed))
    options = {"kafka.bootstrap.servers": there.bootstrap_servers, "subscribe": OFFSETS_TOPIC}
    silent = connector_session.read("kafka", options)
    if not silent:
        with pytest.raises(ReadNothing, match="useDeprecatedOffsetFetching=true"):
            refuse_empty(connection_at(there.bootstrap_servers), [OFFSETS_TOPIC], 0)


def test_both_read_what_either_writes(connector_session: SecondSession, there: Topics) -> None:
    query = (
        "select if(id % 5 = 0, null, cast(id as string)) key, repeat('v', cast(id % 50 as int)) value, "
        "if(id % 3 = 0, cast(id % 4 as int), null) partition, "
        "if(id % 2 = 0, array(named_struct('key', 'h', 'value', cast('x' as binary))), null) headers from range(500)"
    )
    keyed = {}
    for source in ("kgctl", "kafka"):
        name = there.make(partitions=4)
        given = {"kafka.bootstrap.servers": there.bootstrap_servers, "topic": name, "includeHeaders": "true"}
        connector_session.write(source, given, query)
        rows = both(connector_session, there, subscribe=name, includeHeaders="true")
        assert len(rows) == 500
        assert sum(len(row[1]) for row in rows) == sum(n % 50 for n in range(500))
        keyed[source] = sorted((row[0], row[3], row[1], str(row[7])) for row in rows if row[0] is not None)
    assert keyed["kgctl"] == keyed["kafka"]


def test_committed_readers_see_the_same_transactions(connector_session: SecondSession, kafka_topics: Topics) -> None:
    from confluent_kafka import Producer

    name = kafka_topics.make()
    producer = Producer({"bootstrap.servers": kafka_topics.bootstrap_servers, "transactional.id": name})
    producer.init_transactions(20)
    ends = (producer.commit_transaction, producer.abort_transaction, producer.commit_transaction)
    for number, end in enumerate(ends):
        producer.begin_transaction()
        for _ in range(10):
            producer.produce(name, str(number).encode(), partition=0)
        producer.flush(20)
        end(20)
    committed = both(connector_session, kafka_topics, subscribe=name, **{"kafka.isolation.level": "read_committed"})
    assert sorted({row[1] for row in committed}) == [b"0", b"2"]
    assert len(committed) == 20
    assert len(both(connector_session, kafka_topics, subscribe=name)) == 30
