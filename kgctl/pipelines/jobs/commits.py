"""The commits that the batch jobs work on."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from kgctl.pipelines.jobs.context import RunContext
from kgctl.pipelines.schemas.groups import COMMITS
from kgctl.pipelines.schemas.sources import EVENTS_TOPIC, OFFSETS_TOPIC, TRANSACTIONS_TOPIC


def user_commits(run: RunContext) -> DataFrame:
    """All commits except those with which the pipelines publish their own positions in the internal topics."""
    return run.read(COMMITS).where(~f.col("topic").isin(OFFSETS_TOPIC, EVENTS_TOPIC, TRANSACTIONS_TOPIC))
