"""The example of docs/pipelines-source.md runs as it stands there."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import fastavro

from tests.kgctl.pipelines.source.documented_options import PAGE
from tests.kgctl.pipelines.source.topics import Topics

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_avro_values_become_columns_in_each_batch(spark: SparkSession, topics: Topics, tmp_path: Path) -> None:
    (example,) = re.findall(r"(?ms)^```python\n(.*?)^```", PAGE.read_text().partition("## Avro")[2])
    topics.make(name="avro-orders")
    given: dict[str, Any] = {
        "spark": spark,
        "bootstrap_servers": topics.bootstrap_servers,
        "folder": str(tmp_path / "orders"),
        "checkpoint": str(tmp_path / "checkpoint"),
    }
    schema = eval(example.partition("SCHEMA = ")[2].partition("\n}\n")[0] + "\n}")
    expected = [{"id": 2**40, "article": "ä"}, {"id": 1, "article": None}]
    topics.fill("avro-orders", [{"value": framed(schema, row), "partition": 0} for row in expected])
    exec(compile(example, str(PAGE), "exec"), given)
    given["query"].awaitTermination()
    rows = spark.read.parquet(str(tmp_path / "orders")).orderBy("offset").collect()
    assert [{"id": row["id"], "article": row["article"]} for row in rows] == expected


def framed(schema: dict[str, Any], row: dict[str, Any]) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, schema, row)
    return b"\0\0\0\0\x07" + out.getvalue()
