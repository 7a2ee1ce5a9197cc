"""Rows of a DataFrame become records, in batches and streams; rows that do not fit are refused before anything is written."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kgctl.client.net.errors import KgctlError
from kgctl.model.topic_partition import TopicPartition
from tests.kgctl.pipelines.source.topics import Topics

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


HEADERS_OF_STRINGS = {"type": "array", "elementType": "string", "containsNull": True}


def write(frame: DataFrame, topics: Topics, **options: str) -> None:
    writer = frame.write.format("kgctl").mode("append").option("kafka.bootstrap.servers", topics.bootstrap_servers)
    writer.options(**options).save()


def records(spark: SparkSession, topics: Topics, topic: str) -> list[Any]:
    reader = spark.read.format("kgctl").option("kafka.bootstrap.servers", topics.bootstrap_servers)
    return (
        reader.option("subscribe", topic)
        .option("includeHeaders", "true")
        .load()
        .orderBy("partition", "offset")
        .collect()
    )


def test_every_column_reaches_the_topic(spark: SparkSession, topics: Topics) -> None:
    name = topics.make(partitions=3)
    frame = spark.sql(
        "select cast(id as string) key, encode(concat('v', id), 'utf-8') value, cast(id % 3 as int) partition, "
        "if(id % 2 = 0, array(named_struct('key', 'h', 'value', cast('x' as binary))), null) headers, id other "
        "from range(300)"
    )
    write(frame, topics, topic=name, **{"kafka.compression.type": "lz4"})
    rows = records(spark, topics, name)
    assert sorted((int(row.key), row.value, row.partition) for row in rows) == [
        (n, b"v%d" % n, n % 3) for n in range(300)
    ]
    assert {int(row.key) % 2: bool(row.headers) for row in rows} == {0: True, 1: False}


def test_keys_go_to_the_partitions_that_other_clients_choose(spark: SparkSession, topics: Topics) -> None:
    ours, theirs = topics.make(partitions=5), topics.make(partitions=5)
    write(spark.sql("select cast(id as string) key, 'x' value from range(50)"), topics, topic=ours)
    topics.fill(theirs, [{"key": str(n), "value": "x"} for n in range(50)], partitioner="murmur2_random")
    chosen = [{row.key: row.partition for row in records(spark, topics, name)} for name in (ours, theirs)]
    assert chosen[0] == chosen[1]


def test_the_topic_may_be_a_column_and_a_null_value_is_a_tombstone(spark: SparkSession, topics: Topics) -> None:
    one, two = topics.make(), topics.make()
    frame = spark.createDataFrame([("k", None, one), ("k", "v", two)], "key string, value string, topic string")
    write(frame, topics)
    assert [(row.key, row.value) for row in records(spark, topics, one)] == [(b"k", None)]
    assert [(row.key, row.value) for row in records(spark, topics, two)] == [(b"k", b"v")]


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        ({"value": "integer"}, {"topic": "t"}, "the column 'value' is int; cast it to string or binary"),
        ({"key": "string"}, {"topic": "t"}, "needs a column 'value'"),
        ({"value": "string"}, {}, "no topic: set the option"),
        ({"value": "string", "partition": "string"}, {"topic": "t"}, "cast it to int"),
        ({"value": "string", "headers": HEADERS_OF_STRINGS}, {"topic": "t"}, "cast it to array<struct"),
    ],
)
def test_columns_that_do_not_fit_are_refused(columns: dict[str, object], options: dict[str, str], message: str) -> None:
    from pyspark.sql.types import StructType

    from kgctl.pipelines.source.option_names import BadOption
    from kgctl.pipelines.source.options import write_options
    from kgctl.pipelines.source.writer import check_columns

    fields = [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in columns.items()]
    schema = StructType.fromJson({"type": "struct", "fields": fields})
    with pytest.raises(BadOption, match=message):
        check_columns(schema, write_options({"kafka.bootstrap.servers": "a:1", **options}))


@pytest.mark.parametrize(
    ("query", "options", "message"),
    [
        ("select 1 value", {"topic": "t"}, "the column 'value' is int; cast it to string or binary"),
        ("select 'x' value", {"topicName": "t"}, "did you mean 'topic'"),
        ("select 'x' value, cast(null as string) topic", {}, "a row has no topic"),
    ],
)
def test_rows_that_do_not_fit_are_refused(
    spark: SparkSession, topics: Topics, query: str, options: dict[str, str], message: str
) -> None:
    from pyspark.errors import PySparkException

    with pytest.raises(PySparkException) as raised:
        write(spark.sql(query), topics, **options)
    assert message in str(raised.value)


def test_a_partition_that_does_not_exist_is_refused(spark: SparkSession, topics: Topics) -> None:
    from pyspark.errors import PySparkException

    name = topics.make(partitions=2)
    with pytest.raises(PySparkException, match="has no partition 2: it has 2"):
        write(spark.sql("select 'x' value, 2 partition"), topics, topic=name)


def test_a_stream_copies_a_topic_completely(spark: SparkSession, topics: Topics, tmp_path: Path) -> None:
    source, target = topics.make(partitions=2), topics.make(partitions=2)
    topics.count(source, 50, partitions=2)
    given = {"kafka.bootstrap.servers": topics.bootstrap_servers}
    frame = spark.readStream.format("kgctl").options(**given, subscribe=source, startingOffsets="earliest").load()
    for expected in (50, 60):
        writer = frame.select("key", "value", "partition").writeStream.format("kgctl").options(**given, topic=target)
        query = writer.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True).start()
        query.awaitTermination()
        found = [row.value for row in records(spark, topics, target)]
        assert len(found) == expected
        topics.count(source, 10, partitions=2)
    assert set(found) == {str(n).encode() for n in range(50)}


def test_more_rows_than_the_buffer_holds_are_written(topics: Topics) -> None:
    import pyarrow as pa

    from kgctl.pipelines.source.options import write_options
    from kgctl.pipelines.source.values import Columns
    from kgctl.pipelines.source.writing import write_rows

    name = topics.make(partitions=2)
    batch = pa.record_batch({"value": [bytes(10_000)] * 500})
    options = write_options({"kafka.bootstrap.servers": topics.bootstrap_servers, "topic": name})
    assert write_rows(options, Columns({"value": 0}), [batch] * 10) == 5000
    with topics.admin() as admin:
        ends = admin.list_offsets(dict.fromkeys([TopicPartition(name, 0), TopicPartition(name, 1)], -1))
    total = 0
    for end in ends.values():
        assert not isinstance(end, KgctlError)
        total += end.offset
    assert total == 5000
