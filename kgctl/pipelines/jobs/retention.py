"""retention: age, size and growth of the logs of topics, from offsets by time and from sizes that brokers report."""

from __future__ import annotations

import contextlib
import time

from pyspark.sql import DataFrame

from kgctl.client.admin.admin import Admin
from kgctl.client.admin.lag_facts import log_bytes
from kgctl.client.admin.topic_storage import oldest_times
from kgctl.client.net.errors import KgctlError
from kgctl.model.topic_partition import TopicPartition
from kgctl.pipelines.catalog import Job
from kgctl.pipelines.jobs.context import RunContext
from kgctl.pipelines.jobs.lookups import CLIENT_ID, LogEndLookup, ends_at
from kgctl.pipelines.jobs.topic_facts import topics_of
from kgctl.pipelines.schemas.topics import LOG_AGES, RETENTION
from kgctl.pipelines.transforms import retention

_PARTITIONS_PER_TASK, _MOST_TASKS = 500, 16


def run(run: RunContext, job: Job) -> int:
    """Rows written to f_retention: one per partition of the topics."""
    connection = run.settings.connection(CLIENT_ID)
    with Admin(connection) as admin:
        topics = topics_of(run, admin, job.name)
        partitions = [one for topic in topics for one in topic.partitions]
        sizes: dict[TopicPartition, int] = {}
        # Sizes need more rights than the rest, which is right without them.
        with contextlib.suppress(KgctlError):
            sizes = admin.run(log_bytes(admin.cluster, partitions))
        oldest = admin.run(oldest_times(admin.cluster, partitions))
    now_ms = time.time_ns() // 1_000_000
    facts = run.spark.createDataFrame(
        [
            (
                *one,
                topic.cleanup_policy,
                topic.retention_ms,
                topic.retention_bytes,
                sizes.get(one),
                oldest.get(one),
            )
            for topic in topics
            for one in topic.partitions
        ],
        retention.FACTS_DDL,
    )
    ends = _ends(run, facts, len(partitions), now_ms).persist()
    batch = f"{job.name}-{now_ms}"
    try:
        run.write(LOG_AGES, retention.ages(facts, ends, now_ms), batch)
        rows = retention.retention(facts, ends, run.read(RETENTION), now_ms)
        return run.write(RETENTION, rows, batch).rows
    finally:
        ends.unpersist()


def _ends(run: RunContext, facts: DataFrame, partitions: int, now_ms: int) -> DataFrame:
    tasks = min(_MOST_TASKS, partitions // _PARTITIONS_PER_TASK + 1)
    wanted = retention.points(facts, now_ms).repartition(tasks, *retention.KEY)
    return ends_at(wanted, LogEndLookup(run.settings.connection(CLIENT_ID), now_ms))
