"""Shows people how far a job has read: commits its offsets under a group of its own. Spark's checkpoint does not need it."""

from __future__ import annotations

from collections.abc import Mapping

from kgctl.client.admin.offsets import commit
from kgctl.client.net import bootstrap as addresses
from kgctl.client.net.connector import ConnectionSettings, Connector
from kgctl.client.net.errors import KgctlError
from kgctl.model.topic_partition import TopicPartition
from kgctl.pipelines.source.options import SPARK_CLIENT_ID

_SECONDS = 10.0


def group_of(job: str) -> str:
    """The group that shows up in `kgctl groups` for a job."""
    return f"spark-{job}"


def publish(bootstrap: str, job: str, offsets: Mapping[str, Mapping[int, int]]) -> str | None:
    """Commit, as a simple consumer, the next offset that the job will read of {topic: {partition: offset}}.

    Returns what went wrong, or None: a query goes on without it.
    """
    wanted = {
        TopicPartition(topic, number): offset for topic, some in offsets.items() for number, offset in some.items()
    }
    if not wanted:
        return None
    try:
        with Connector(ConnectionSettings(addresses.parse(bootstrap), SPARK_CLIENT_ID, _SECONDS)) as connector:
            answers = connector.run(commit(connector.cluster, group_of(job), wanted))
    except KgctlError as error:
        return _note(job, error)
    failed = [error for error in answers.values() if error is not None]
    return _note(job, failed[0]) if failed else None


def _note(job: str, error: KgctlError) -> str:
    return f"the position of {job} could not be committed for group {group_of(job)}: {error}"
