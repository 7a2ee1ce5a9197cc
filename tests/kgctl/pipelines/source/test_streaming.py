"""Streams of format("kgctl"): each record once across restarts, in batches of the requested size."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from broker.local import LocalBroker
from kgctl.client.net.errors import TimedOut
from kgctl.client.net.steps import Steps
from tests.harness.ports import kept_address
from tests.kgctl.pipelines.source.topics import Topics

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from kgctl.pipelines.source.streaming import KgctlStreamReader


class Query:
    """A stream that collects rows; each run continues from the checkpoint up to the end of the logs."""

    def __init__(self, spark: SparkSession, topics: Topics, folder: Path, **options: str) -> None:
        self._spark, self._folder = spark, folder
        given = {"kafka.bootstrap.servers": topics.bootstrap_servers, "startingOffsets": "earliest"} | options
        self._frame = spark.readStream.format("kgctl").options(**given).load()
        self.rows: list[tuple[int, int]] = []

    def run(self) -> list[dict[str, Any]]:
        """The progress of each batch with rows."""
        rows = self.rows

        def collect(frame: DataFrame, _: int) -> None:
            rows.extend((row.partition, row.offset) for row in frame.select("partition", "offset").collect())

        writer = self._frame.writeStream.foreachBatch(collect).option("checkpointLocation", str(self._folder))
        query = writer.trigger(availableNow=True).start()
        try:
            query.awaitTermination()
        finally:
            query.stop()
        return [json.loads(one.json) for one in query.recentProgress if one.numInputRows]


def test_limited_batches_share_the_partitions_and_a_restart_continues(
    spark: SparkSession, topics: Topics, tmp_path: Path
) -> None:
    name = topics.make(partitions=2)
    topics.count(name, 100, partitions=2)
    query = Query(spark, topics, tmp_path, subscribe=name, maxOffsetsPerTrigger="40")
    progress = query.run()
    assert [one["numInputRows"] for one in progress] == [40, 40, 20]
    assert progress[0]["sources"][0]["endOffset"] == {name: {"0": 20, "1": 20}}
    assert progress[0]["sources"][0]["latestOffset"] == {name: {"0": 50, "1": 50}}
    topics.count(name, 10, partitions=2)
    assert [one["numInputRows"] for one in query.run()] == [10]
    assert sorted(query.rows) == [(partition, n) for partition in (0, 1) for n in range(55)]


def test_new_partitions_of_a_running_stream_are_read_from_their_beginning(
    spark: SparkSession, topics: Topics, tmp_path: Path
) -> None:
    name = topics.make()
    topics.count(name, 5)
    query = Query(spark, topics, tmp_path, subscribePattern=name + ".*")
    query.run()
    with topics.admin() as admin:
        admin.create_topics([name + "-b"], partitions=2)
    topics.count(name + "-b", 6, partitions=2)
    query.run()
    assert sorted(query.rows) == sorted([(0, n) for n in range(5)] + [(p, n) for p in (0, 1) for n in range(3)])


def test_a_recreated_topic_stops_the_stream_with_the_reason(
    spark: SparkSession, topics: Topics, tmp_path: Path
) -> None:
    from pyspark.errors import PySparkException

    name = topics.make()
    topics.count(name, 5)
    query = Query(spark, topics, tmp_path, subscribe=name)
    query.run()
    topics.delete(name)
    with topics.admin() as admin:
        admin.create_topics([name], partitions=1)
    topics.count(name, 2)
    with pytest.raises(PySparkException, match=f"{name}-0: the log ended before 5 and now ends before 2"):
        query.run()


def test_a_running_stream_survives_a_restart_of_the_broker(spark: SparkSession, tmp_path: Path) -> None:
    with LocalBroker(listen=kept_address()) as kafka:
        topics = Topics(kafka.bootstrap_servers)
        name = topics.make(partitions=2)
        topics.count(name, 20, partitions=2)
        given = {"kafka.bootstrap.servers": topics.bootstrap_servers, "subscribe": name, "startingOffsets": "earliest"}
        rows: list[int] = []
        query = (
            spark.readStream.format("kgctl")
            .options(**given)
            .load()
            .writeStream.foreachBatch(lambda frame, _: rows.extend(int(row.value) for row in frame.collect()))
            .option("checkpointLocation", str(tmp_path))
            .trigger(processingTime="100 milliseconds")
            .start()
        )
        try:
            query.processAllAvailable()
            kafka.kill()
            back = threading.Timer(1.0, kafka.start)
            back.start()
            back.join()
            topics.count(name, 20, partitions=2)
            query.processAllAvailable()
        finally:
            query.stop()
    assert sorted(rows) == sorted([*range(20), *range(20)])


def reader(topics: Topics, **options: str) -> KgctlStreamReader:
    from kgctl.pipelines.source.options import read_options
    from kgctl.pipelines.source.streaming import KgctlStreamReader

    return KgctlStreamReader(read_options({"kafka.bootstrap.servers": topics.bootstrap_servers, **options}))


def test_a_stream_starts_at_the_latest_offset_by_default(topics: Topics) -> None:
    name = topics.make(partitions=2)
    topics.count(name, 10, partitions=2)
    for options, expected in (
        ({}, {"0": 5, "1": 5}),
        ({"startingOffsets": "earliest"}, {"0": 0, "1": 0}),
        ({"startingOffsets": f'{{"{name}": {{"0": 3, "1": -2}}}}'}, {"0": 3, "1": 0}),
    ):
        stream = reader(topics, subscribe=name, **options)
        assert stream.initialOffset() == {name: expected}
        stream.stop()


def test_a_reader_is_pickled_without_its_connections(topics: Topics) -> None:
    import pickle

    name = topics.make()
    topics.count(name, 3)
    stream = reader(topics, subscribe=name, startingOffsets="earliest")
    start = stream.initialOffset()
    end = stream.latestOffset(start, stream.getDefaultReadLimit())
    assert stream.reportLatestOffset() == end == {name: {"0": 3}}
    (partition,) = stream.partitions(start, end)
    copy = pickle.loads(pickle.dumps((stream, partition)))
    stream.stop()
    assert [row["value"] for made in copy[0].read(copy[1]) for row in made.to_pylist()] == [b"0", b"1", b"2"]


def test_a_batch_waits_for_the_minimum_except_up_to_a_fixed_end(topics: Topics) -> None:
    from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows, ReadMinRows

    name = topics.make()
    stream = reader(topics, subscribe=name, startingOffsets="earliest", minOffsetsPerTrigger="4")
    limit = stream.getDefaultReadLimit()
    assert limit == ReadMinRows(4)
    both = reader(topics, subscribe=name, minOffsetsPerTrigger="4", maxOffsetsPerTrigger="9")
    assert both.getDefaultReadLimit() == ReadMaxRows(9)
    topics.count(name, 1)
    start = stream.latestOffset(stream.initialOffset(), limit)
    topics.count(name, 3)
    assert stream.latestOffset(start, limit) == start == {name: {"0": 1}}
    assert stream.latestOffset(start, ReadAllAvailable()) == {name: {"0": 4}}
    topics.count(name, 1)
    full = stream.latestOffset(start, limit)
    assert full == {name: {"0": 5}}
    topics.count(name, 1)
    assert stream.latestOffset(full, limit) == full
    stream.prepareForTriggerAvailableNow()
    assert stream.latestOffset(full, limit) == {name: {"0": 6}}
    stream.stop()
    both.stop()


def test_the_number_of_failed_look_ups_is_that_of_the_option(topics: Topics) -> None:
    from kgctl.pipelines.source.log_ends import LogEnds
    from kgctl.pipelines.source.options import read_options
    from kgctl.pipelines.source.planning import log_ends_of

    given = {"subscribe": "t", "kafka.bootstrap.servers": topics.bootstrap_servers, "fetchOffset.retryIntervalMs": "1"}
    for retries, failures, passes in ((2, 2, True), (1, 2, False)):
        log_ends: LogEnds = log_ends_of(read_options(given | {"fetchOffset.numRetries": str(retries)}))
        failed = iter(range(failures))

        def steps(failed: Iterator[int] = failed) -> Steps[str]:
            if next(failed, None) is not None:
                raise TimedOut("no answer")
            return "answer"
            yield

        with log_ends:
            if passes:
                assert log_ends._ask(steps) == "answer"
            else:
                with pytest.raises(TimedOut, match="no answer"):
                    log_ends._ask(steps)


def test_a_deleted_topic_is_an_error_unless_data_loss_is_accepted(topics: Topics) -> None:
    from kgctl.pipelines.source.losses import DataLoss

    name, other = topics.make(), topics.make()
    strict = reader(topics, subscribe=f"{name},{other}")
    lenient = reader(topics, subscribe=f"{name},{other}", failOnDataLoss="false")
    start = strict.initialOffset()
    topics.delete(name)
    with pytest.raises(DataLoss, match=f"topic '{name}' no longer exists"):
        strict.latestOffset(start, strict.getDefaultReadLimit())
    assert lenient.latestOffset(start, lenient.getDefaultReadLimit()) == {other: {"0": 0}}
    strict.stop()
    lenient.stop()
