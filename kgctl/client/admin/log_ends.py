"""What there is to read: partitions of topics, the ends of their logs, and offsets checked against them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from broker.protocol.errors import ErrorCode
from broker.protocol.messages.metadata import MetadataRequest
from kgctl.client.admin.offsets import EARLIEST, LATEST, list_offsets
from kgctl.client.net.authorization import Asked
from kgctl.client.net.cluster import Cluster
from kgctl.client.net.errors import BrokerError, KgctlError, NotFound
from kgctl.client.net.steps import Pause, Steps
from kgctl.model.topic_partition import TopicPartition


def partition_counts(cluster: Cluster, topics: Sequence[str]) -> Steps[dict[str, int]]:
    """The partition count of each topic. Raises NotFound if a topic does not exist; never creates one."""
    for wait in (*cluster.retry_waits, None):
        answer = yield from cluster.metadata(topics)
        failed = next((row for row in answer.topics if row.error_code), None)
        if failed is None:
            return {row.name or "": len(row.partitions) for row in answer.topics}
        if failed.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise NotFound(f"topic {failed.name!r} does not exist")
        error = BrokerError(
            failed.error_code, f"topic {failed.name!r}", asked=Asked(MetadataRequest, topic=failed.name or "")
        )
        if wait is None or not error.retriable:
            raise error
        yield Pause(wait, str(error))
    raise AssertionError("the last attempt returns or raises")


def log_ends(
    cluster: Cluster, partitions: Iterable[TopicPartition], end: int, *, committed_only: bool = False
) -> Steps[dict[TopicPartition, int]]:
    """The log start offset (EARLIEST) or the log end offset (LATEST) of each partition."""
    names = list(partitions)
    if not names:
        return {}
    found = yield from list_offsets(cluster, dict.fromkeys(names, end), committed_only=committed_only)
    ends = {}
    for partition in names:
        at = found[partition]
        if isinstance(at, KgctlError):
            raise at
        ends[partition] = at.offset
    return ends


def given_offsets(cluster: Cluster, given: Mapping[TopicPartition, int]) -> Steps[dict[TopicPartition, int]]:
    """Check the user's offsets against the logs. A negative one counts back from the end; -1 is the last record."""
    first = yield from log_ends(cluster, given, EARLIEST)
    last = yield from log_ends(cluster, given, LATEST)
    chosen = {}
    for partition, offset in given.items():
        if offset < 0:
            offset = max(first[partition], last[partition] + offset)
        if not first[partition] <= offset <= last[partition]:
            raise KgctlError(
                f"{partition} has no offset {offset}: its log starts at {first[partition]} and ends before {last[partition]}"
            )
        chosen[partition] = offset
    return chosen
