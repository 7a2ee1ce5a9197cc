"""Views of the tables of a folder in Spark.

    from kgctl.pipelines import views
    views.register(spark, "facts")
    spark.sql("select * from lag_now order by lag desc").show()

The same names work in `kgctl pipeline sql`. A view shows the rows that were committed when it was registered; register again
for newer ones, or if a merge has deleted its files.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from kgctl.pipelines.schemas import TABLES
from kgctl.pipelines.views.declared import VIEWS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def register(spark: SparkSession, out: str | Path) -> list[str]:
    """Register a temporary view for each table, and for each of VIEWS; return their names. Raises Damaged, Newer."""
    from kgctl.pipelines.tables.spark import read_table

    for table in TABLES.values():
        read_table(spark, Path(out) / table.name, table).createOrReplaceTempView(table.name)
    for view in VIEWS:
        spark.sql(view.for_spark).createOrReplaceTempView(view.name)
    return [*TABLES, *(view.name for view in VIEWS)]
