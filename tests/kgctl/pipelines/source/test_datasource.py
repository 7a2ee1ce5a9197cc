"""format("kgctl") in Spark: a batch holds each record once, and errors say what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from kgctl.pipelines.schemas.sources import HEADERS_DDL, RAW_DDL, raw_ddl
from tests.kgctl.pipelines.source.topics import Topics

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def load(spark: SparkSession, topics: Topics, **options: str) -> DataFrame:
    reader = spark.read.format("kgctl").option("kafka.bootstrap.servers", topics.bootstrap_servers)
    return reader.options(**options).load()


def offsets(frame: DataFrame) -> list[tuple[int, int]]:
    return sorted((row.partition, row.offset) for row in frame.select("partition", "offset").collect())


def test_columns_are_those_of_the_schema(spark: SparkSession, topics: Topics) -> None:
    from pyspark.sql.types import _parse_datatype_string

    name = topics.make()
    assert load(spark, topics, subscribe=name).schema == _parse_datatype_string(RAW_DDL)
    some = load(spark, topics, subscribe=name, **{"kgctl.columns": "offset, value,headers"})
    assert some.schema == _parse_datatype_string(f"{raw_ddl(('offset', 'value'))}, {HEADERS_DDL}")
    with_headers = load(spark, topics, subscribe=name, includeHeaders="true")
    assert with_headers.schema == _parse_datatype_string(f"{RAW_DDL}, {HEADERS_DDL}")
    assert with_headers.collect() == []


def test_a_batch_holds_every_record_as_it_was_written(spark: SparkSession, topics: Topics) -> None:
    name = topics.make(partitions=3)
    topics.fill(
        name,
        [
            {"key": b"k%d" % n, "value": b"v" * n, "partition": n % 3, "timestamp": 1_700_000_000_000 + n}
            | ({"headers": [("ä", b"\xff"), ("none", None)]} if n % 2 else {})
            for n in range(300)
        ],
    )
    rows = load(spark, topics, subscribe=name, includeHeaders="true").collect()
    assert sorted((row.key, len(row.value), row.partition) for row in rows) == sorted(
        (b"k%d" % n, n, n % 3) for n in range(300)
    )
    row = next(row for row in rows if row.key == b"k7")
    assert row.timestamp.timestamp() == 1_700_000_000.007
    assert [(one.key, one.value) for one in row.headers] == [("ä", b"\xff"), ("none", None)]
    assert next(row for row in rows if row.key == b"k8").headers is None


def test_a_query_reads_only_the_columns_that_its_options_name(spark: SparkSession, topics: Topics) -> None:
    name = topics.make(partitions=2)
    topics.count(name, 10, partitions=2)
    whole = {(row.partition, row.offset, row.value) for row in load(spark, topics, subscribe=name).collect()}
    rows = load(spark, topics, subscribe=name, **{"kgctl.columns": "value,offset,partition"}).collect()
    assert {(row.partition, row.offset, row.value) for row in rows} == whole
    assert load(spark, topics, subscribe=name, **{"kgctl.columns": "offset"}).count() == 10


def test_two_actions_on_one_frame_read_the_same_range(spark: SparkSession, topics: Topics) -> None:
    name = topics.make(partitions=2)
    topics.count(name, 10, partitions=2)
    frame = load(spark, topics, subscribe=name)
    assert frame.count() == 10
    topics.count(name, 10, partitions=2)
    assert frame.count() == 10
    assert len(frame.where("value is not null").collect()) == 10
    assert load(spark, topics, subscribe=name).count() == 20


def test_ranges_by_offset_and_a_minimum_number_of_tasks(spark: SparkSession, topics: Topics) -> None:
    name = topics.make(partitions=2)
    topics.count(name, 1000, partitions=2)
    some = f'{{"{name}": {{"0": 10, "1": -2}}}}', f'{{"{name}": {{"0": 20, "1": 5}}}}'
    frame = load(spark, topics, subscribe=name, startingOffsets=some[0], endingOffsets=some[1])
    assert offsets(frame) == [(0, n) for n in range(10, 20)] + [(1, n) for n in range(5)]
    split = load(spark, topics, subscribe=name, minPartitions="6")
    assert split.rdd.getNumPartitions() == 6
    assert offsets(split) == [(partition, n) for partition in (0, 1) for n in range(500)]


def test_the_filters_of_one_query_do_not_affect_the_next(spark: SparkSession, topics: Topics) -> None:
    name = topics.make(partitions=3)
    topics.count(name, 300, partitions=3)
    frame = load(spark, topics, subscribe=name)
    assert offsets(frame.where("partition = 2 and offset >= 10 and offset < 20")) == [(2, n) for n in range(10, 20)]
    assert frame.where("topic = 'other'").count() == 0
    assert frame.where("offset = 7 or partition = 1").count() == 102
    assert frame.where("partition = 1").union(frame).count() == 400


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"subscribe": "no-such-topic"}, "topic 'no-such-topic' does not exist"),
        ({"subscribe": "t", "startingOffset": "earliest"}, "did you mean 'startingOffsets'"),
        ({}, "give exactly one of the options subscribe"),
        ({"subscribePattern": "no-such.*"}, "no topic matches 'no-such"),
    ],
)
def test_errors_say_what_is_wrong(spark: SparkSession, topics: Topics, options: dict[str, str], message: str) -> None:
    from pyspark.errors import PySparkException

    with pytest.raises(PySparkException) as raised:
        load(spark, topics, **options).collect()
    assert message in str(raised.value)


def test_a_batch_cannot_start_at_latest(spark: SparkSession, topics: Topics) -> None:
    from pyspark.errors import PySparkException

    with pytest.raises(PySparkException, match="a batch that starts at the latest offset reads nothing"):
        load(spark, topics, subscribe=topics.make(), startingOffsets="latest").collect()
