"""Measures how fast a topic becomes a DataFrame: format("kgctl") against Spark's connector, in one session, in turns."""

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
from kgctl.pipelines.settings import RunSettings
from kgctl.pipelines.source.connector import FAST

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_BATCH_BYTES = 64 << 10
_WAYS: tuple[tuple[str, str, dict[str, str]], ...] = (
    ("kgctl", "kgctl", {}),
    ("kafka", "kafka", FAST),
    ("kafka, default options", "kafka", {}),
)


@dataclass(frozen=True, slots=True)
class SourceSpeed:
    """One read of the whole topic; `round` 0 is cold. `value_bytes` includes keys."""

    source: str
    round: int
    records: int
    value_bytes: int
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
    """Read the topic once cold and `rounds` times warm with each source, in turns.

    Raises KgctlError if the sources read different records.
    """
    ways = _WAYS if with_connector else _WAYS[:1]
    found = [
        _read(spark, bootstrap, topic, name, source, options, number)
        for number in range(rounds + 1)
        for name, source, options in ways
    ]
    answers = {(one.records, one.value_bytes) for one in found}
    if len(answers) > 1:
        raise KgctlError(f"the sources read different records from {topic!r}: {sorted(answers)} (records, bytes)")
    return found


def _read(
    spark: SparkSession, bootstrap: str, topic: str, name: str, source: str, options: dict[str, str], number: int
) -> SourceSpeed:
    from pyspark.sql import functions as f

    begun = time.perf_counter()
    frame = spark.read.format(source).options(**options, subscribe=topic).option("kafka.bootstrap.servers", bootstrap)
    row = frame.load().agg(f.count("*"), f.sum(f.length("value") + f.length("key") + f.col("offset") * 0)).first()
    assert row is not None
    return SourceSpeed(name, number, int(row[0]), int(row[1] or 0), time.perf_counter() - begun)


def main(bootstrap: str, records: str, rounds: str, jars: str) -> None:
    """Fill a topic, read it in a session, and print [source, seconds] of each read as JSON."""
    from kgctl.pipelines.spark.session import open_session

    fill(bootstrap, "bench", int(records))
    paths = jars.split(",") if jars else []
    with tempfile.TemporaryDirectory(prefix="kgctl-bench-") as folder:
        settings = RunSettings((), bootstrap, folder, log_file=str(Path(folder) / "spark.log"))
        with open_session(settings, app_name="bench", jars=paths) as spark:
            rows = measure(spark, bootstrap, "bench", with_connector=bool(paths), rounds=int(rounds))
    sys.stdout.write(json.dumps([[row.source, row.seconds] for row in rows]) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
