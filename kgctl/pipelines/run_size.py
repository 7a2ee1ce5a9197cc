"""Estimates how much a run reads, before Spark starts: a JVM for little data starts in half the time. Does not import Spark."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from kgctl.client.net.errors import KgctlError
from kgctl.pipelines.catalog import Job
from kgctl.pipelines.settings import RunSettings
from kgctl.pipelines.source.log_ends import LogEnds
from kgctl.pipelines.source.options import SPARK_CLIENT_ID, Selection
from kgctl.pipelines.tables.formats import open_table

# Compiling the code of a query better pays off from about this many records on.
SMALL = 200_000


def is_small(settings: RunSettings, jobs: Sequence[Job], topics: Collection[str]) -> bool:
    """Whether the run ends after at most SMALL records and rows. An upper limit: checkpoints and compaction do not count.

    False if the cluster does not say how long its logs are, and for jobs that read topics of users.
    """
    if settings.follow or any(job.is_rare for job in jobs):
        return False
    tables = {table.name for job in jobs for table in job.tables}
    rows = sum(open_table(settings.table_dir(name)).rows() for name in tables)
    read = {next((one for one in job.topics if one in topics), None) for job in jobs if job.is_stream} - {None}
    try:
        return rows + _offsets(settings, sorted(filter(None, read))) <= SMALL
    except KgctlError:
        return False


def _offsets(settings: RunSettings, topics: Sequence[str]) -> int:
    if not topics:
        return 0
    with LogEnds(settings.connection(SPARK_CLIENT_ID), retries=0) as log_ends:
        bounds = log_ends.bounds(log_ends.find(Selection(topics=tuple(topics))).partitions)
    return sum(last - bounds.first[partition] for partition, last in bounds.last.items())
