"""A program that copies a topic into a table, batch by batch, and waits at a gate where a test wants to kill it.

It prints a JSON line for each batch that write_batch has finished, and at the end what Spark reads from the table.
FAULT plants a fault that the tests must notice: new-ids gives a repeated batch another id, names-first makes files
visible before their commit.
"""

from __future__ import annotations

import json
import os
import sys
import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kgctl.pipelines.schemas.model import Table
from kgctl.pipelines.schemas.sources import RAW_COLUMNS
from kgctl.pipelines.settings import RunSettings
from kgctl.pipelines.spark.session import open_session
from kgctl.pipelines.tables.spark import read_table, write_batch
from tests.kgctl.pipelines.cluster.waiting import Gate

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

COPIES = Table("copies", "the records of a topic", RAW_COLUMNS, day_of="timestamp")


@dataclass(frozen=True, slots=True)
class Copy:
    """`committed_hold`: the batch after whose commit it waits at the gate; `tasks_hold`: the batch whose tasks wait there."""

    bootstrap: str
    topic: str
    out: str
    master: str
    batch_rows: int
    gate: str
    conf: tuple[tuple[str, str], ...] = ()
    committed_hold: int | None = None
    tasks_hold: int | None = None

    @property
    def table(self) -> Path:
        return Path(self.out) / COPIES.name

    @property
    def checkpoint(self) -> Path:
        return Path(self.out) / "_checkpoint"

    def to_json(self) -> str:
        return json.dumps(asdict(self))


def batch_id(number: int) -> str:
    return f"copy-{number:06d}"


def main(copy: Copy) -> None:
    _plant(os.environ.get("FAULT", ""))
    settings = RunSettings(
        jobs=(),
        bootstrap=copy.bootstrap,
        out=copy.out,
        master=copy.master,
        conf=copy.conf,
        quick=True,
        log_file=f"{copy.out}/spark.log",
    )
    with open_session(settings, app_name="copying") as spark:
        query = (
            _records(spark, copy)
            .writeStream.foreachBatch(lambda rows, number: _write(copy, rows, number))
            .option("checkpointLocation", str(copy.checkpoint))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        rows = read_table(spark, copy.table, COPIES)
        seen = rows.selectExpr("count(*) as r", "count(distinct partition, offset) as p", "count(distinct key) as k")
        ((count, places, keys),) = seen.collect()
        _print(rows=count, places=places, keys=keys)


def _records(spark: SparkSession, copy: Copy) -> DataFrame:
    options = {
        "kafka.bootstrap.servers": copy.bootstrap,
        "subscribe": copy.topic,
        "startingOffsets": "earliest",
        "maxOffsetsPerTrigger": str(copy.batch_rows),
    }
    return spark.readStream.format("kgctl").options(**options).load()


def _write(copy: Copy, rows: DataFrame, number: int) -> None:
    if number == copy.tasks_hold:
        rows = rows.mapInArrow(_wait_in_the_middle(copy.gate), rows.schema)
    written = write_batch(rows, copy.table, _id_of(number), COPIES)
    _print(batch=number, rows=written.rows, new=written.new)
    if number == copy.committed_hold:
        Gate(Path(copy.gate)).wait(f"committed-{number}")


def _wait_in_the_middle(gate: str) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def wait(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        for number, batch in enumerate(batches):
            if number == 1:
                context = TaskContext.get()
                assert context is not None
                Gate(Path(gate)).wait(f"task-{context.partitionId()}-{context.attemptNumber()}")
            yield batch

    return wait


def _print(**fields: int) -> None:
    sys.stdout.write(json.dumps(fields) + "\n")
    sys.stdout.flush()


def _id_of(number: int) -> str:
    return batch_id(number) if os.environ.get("FAULT") != "new-ids" else f"{batch_id(number)}-{uuid.uuid4().hex[:8]}"


def _plant(fault: str) -> None:
    if fault == "names-first":
        from kgctl.pipelines.tables import manifest
        from kgctl.pipelines.tables.state import batch_from_json

        write = manifest.write_durably

        def write_late(path: Path, content: bytes) -> None:
            manifest.TableFolder(path.parent.parent).rename_files(batch_from_json(path, content))
            Gate(Path(os.environ["FAULT_GATE"])).wait("named")
            write(path, content)

        manifest.write_durably = write_late


if __name__ == "__main__":
    fields = json.loads(sys.argv[1])
    main(Copy(**{**fields, "conf": tuple((key, value) for key, value in fields["conf"])}))
    sys.stdout.flush()
    # Spark's Python threads would delay the end.
    os._exit(0)
