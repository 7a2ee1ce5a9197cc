"""Makes the position of a stream visible: commits its offsets under a group. Only Spark's checkpoint counts for the run."""

from __future__ import annotations

from collections.abc import Mapping

from kgctl.client.admin.offsets import commit
from kgctl.client.net.connector import ConnectionSettings, Connector
from kgctl.client.net.errors import KgctlError
from kgctl.model.topic_partition import TopicPartition

PUBLISH_S = 10.0


def group_of(job: str) -> str:
    """The group under which `kgctl groups` shows a job."""
    return f"spark-{job}"


def publish(connection: ConnectionSettings, job: str, offsets: Mapping[str, Mapping[int, int]]) -> str | None:
    """Commit, as a simple consumer, the next offsets of a job, {topic: {partition: offset}}.

    Return an error text, or None: a failure does not stop the query.
    """
    wanted = {
        TopicPartition(topic, number): offset for topic, some in offsets.items() for number, offset in some.items()
    }
    if not wanted:
        return None
    try:
        with Connector(connection) as connector:
            answers = connector.run(commit(connector.cluster, group_of(job), wanted))
    except KgctlError as error:
        return _note(job, error)
    failed = [error for error in answers.values() if error is not None]
    return _note(job, failed[0]) if failed else None


def _note(job: str, error: KgctlError) -> str:
    return f"cannot commit the position of {job} for group {group_of(job)}: {error}"
