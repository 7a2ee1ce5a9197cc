"""Measures how fast a topic is counted, summed up and written to Parquet: format("kgctl") against Spark's connector, in one session.

They take turns, so that other load on the machine meets all of them.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kgctl.client.admin.admin import Admin
from kgctl.client.net.errors import KgctlError, from_row
from kgctl.client.producer.core.accumulator import AccumulatorSettings
from kgctl.client.producer.core.client import CoreSettings
from kgctl.client.producer.counting import CountingProducer
from kgctl.client.producer.records import OutgoingRecord
from kgctl.client.producer.shared_face import ProducerSettings
from kgctl.contexts.connecting import connection_at
from kgctl.pipelines.bench.children import end_with_parent
from kgctl.pipelines.settings import RunSettings
from kgctl.pipelines.source.connector import FAST
from kgctl.pipelines.source.option_names import COLUMNS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

QUERIES = ("count", "sum", "parquet")
_BATCH_BYTES = 64 << 10
# Names, formats and options of sources. The second is only for the count, which needs no other column.
_ONE_COLUMN = "kgctl, only offset"
_WAYS: tuple[tuple[str, str, dict[str, str]], ...] = (
    ("kgctl", "kgctl", {}),
    (_ONE_COLUMN, "kgctl", {COLUMNS: "offset"}),
    ("kafka", "kafka", FAST),
    ("kafka, default options", "kafka", {}),
)


@dataclass(frozen=True, slots=True)
class SourceSpeed:
    """One read of the whole topic; `query` is one of QUERIES, `round` 0 is cold.

    `value_bytes`, those of keys and values, are None for a count.
    """

    query: str
    source: str
    round: int
    records: int
    value_bytes: int | None
    seconds: float

    @property
    def records_per_s(self) -> float:
        return self.records / self.seconds


def fill(bootstrap: str, topic: str, records: int, *, partitions: int = 4, value_bytes: int = 100) -> None:
    """Create the topic and write the records to it. Raises KgctlError if it exists."""
    connection = connection_at(bootstrap)
    with Admin(connection) as admin:
        (made,) = admin.create_topics([topic], partitions=partitions)
        if made.error is not None:
            raise from_row(made.error)
    settings = ProducerSettings(CoreSettings(accumulator=AccumulatorSettings(_BATCH_BYTES)))
    with CountingProducer(connection, settings) as producer:
        for number in range(records):
            record = OutgoingRecord(b"%0*d" % (value_bytes, number), b"%d" % (number % 10_000), (), number % partitions)
            producer.send(topic, record)
        producer.flush()


def measure(
    spark: SparkSession, bootstrap: str, topic: str, *, with_connector: bool, rounds: int = 3
) -> list[SourceSpeed]:
    """Count the topic, sum up the lengths of keys and values, and write it to Parquet, once cold and `rounds` times warm with each source, in turns.

    Raises KgctlError if the sources read different records.
    """
    ways = [way for way in _WAYS if with_connector or way[1] == "kgctl"]
    with tempfile.TemporaryDirectory(prefix="kgctl-bench-") as folder:
        found = [
            _read(_Topic(spark, bootstrap, topic, source, options), query, name, number, f"{folder}/out")
            for number in range(rounds + 1)
            for query in QUERIES
            for name, source, options in ways
            if query == "count" or name != _ONE_COLUMN
        ]
    answers = {(one.records, one.value_bytes) for one in found if one.query != "count"}
    counts = {one.records for one in found}
    if len(answers) > 1 or len(counts) > 1:
        raise KgctlError(
            f"the sources read different records from {topic!r}: {sorted(counts)} records, {answers} (records, bytes)"
        )
    return found


@dataclass(frozen=True, slots=True)
class _Topic:
    spark: SparkSession
    bootstrap: str
    topic: str
    source: str
    options: dict[str, str]

    def frame(self) -> DataFrame:
        reader = self.spark.read.format(self.source).options(**self.options, subscribe=self.topic)
        return reader.option("kafka.bootstrap.servers", self.bootstrap).load()


def _read(topic: _Topic, query: str, name: str, number: int, folder: str) -> SourceSpeed:
    begun = time.perf_counter()
    if query == "count":
        records = topic.frame().count()
        return SourceSpeed(query, name, number, records, None, time.perf_counter() - begun)
    if query == "sum":
        records, size = _summed(topic.frame())
        return SourceSpeed(query, name, number, records, size, time.perf_counter() - begun)
    topic.frame().write.mode("overwrite").parquet(folder)
    seconds = time.perf_counter() - begun
    return SourceSpeed(query, name, number, *_summed(topic.spark.read.parquet(folder)), seconds)


def _summed(frame: DataFrame) -> tuple[int, int]:
    """The number of rows, and the bytes of keys and values."""
    from pyspark.sql import functions as f

    row = frame.agg(f.count("*"), f.sum(f.length("value") + f.length("key") + f.col("offset") * 0)).first()
    assert row is not None
    return int(row[0]), int(row[1] or 0)


def main(bootstrap: str, records: str, rounds: str, jars: str) -> None:
    """Fill a topic, read it in a session, and print [query, source, seconds] of each read as JSON."""
    from kgctl.pipelines.spark.session import open_session

    fill(bootstrap, "bench", int(records))
    paths = jars.split(",") if jars else []
    with tempfile.TemporaryDirectory(prefix="kgctl-bench-") as folder:
        settings = RunSettings((), bootstrap, folder, log_file=str(Path(folder) / "spark.log"))
        with open_session(settings, app_name="bench", jars=paths) as spark:
            rows = measure(spark, bootstrap, "bench", with_connector=bool(paths), rounds=int(rounds))
    sys.stdout.write(json.dumps([[row.query, row.source, row.seconds] for row in rows]) + "\n")


if __name__ == "__main__":
    end_with_parent()
    main(*sys.argv[1:])
