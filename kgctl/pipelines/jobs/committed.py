"""The commits that the jobs look at."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from kgctl.pipelines import schemas
from kgctl.pipelines.catalog import EVENTS_TOPIC, OFFSETS_TOPIC
from kgctl.pipelines.tables.spark import read_table

if TYPE_CHECKING:
    from kgctl.pipelines.jobs.run import Run


def commits_of_people(run: Run) -> DataFrame:
    """All commits but those in which the pipelines say how far they have read of the cluster's own topics."""
    everything = read_table(run.spark, run.settings.table_dir(schemas.COMMITS.name), schemas.COMMITS)
    return everything.where(~f.col("topic").isin(OFFSETS_TOPIC, EVENTS_TOPIC))
