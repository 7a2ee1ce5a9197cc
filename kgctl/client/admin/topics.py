"""Lists, describes, creates and deletes topics."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from broker.protocol.errors import ErrorCode
from broker.protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from broker.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from broker.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResponse
from broker.protocol.messages.metadata import MetadataRequest, MetadataResponse
from broker.protocol.wire_types import ZERO_UUID, Message
from kgctl.client.admin.offsets import EARLIEST, LATEST, OffsetAt, list_offsets
from kgctl.client.net.authorization import Asked
from kgctl.client.net.cluster import Ask, Batch, Cluster, Node, chunks
from kgctl.client.net.errors import BrokerError, KgctlError, TimedOut
from kgctl.client.net.steps import Pause, Steps
from kgctl.model.changes import DONE, FAILED, TopicChange
from kgctl.model.failure import RowError
from kgctl.model.topic_partition import TopicPartition
from kgctl.model.topics import TopicConfigRow, TopicPartitionRow, TopicRow

BROKER_DEFAULT = -1
TOPIC = 2
SOURCES = {
    1: "topic",
    2: "broker (dynamic)",
    3: "cluster (dynamic)",
    4: "broker (static)",
    5: "default",
    6: "broker logger",
    7: "client metrics",
    8: "group",
}
DEFAULT_SOURCE = 5
# The broker answers once all brokers know the topic; the request bounds that.
SERVER_WAIT_MS = 10_000
TOPICS_PER_REQUEST = 1000


def list_topics(cluster: Cluster, topics: Sequence[str] | None = None) -> Steps[list[TopicRow]]:
    answer = yield from cluster.metadata(topics)
    return [_topic_row(topic) for topic in sorted(answer.topics, key=lambda topic: topic.name or "")]


def _topic_row(topic: MetadataResponse.Topic) -> TopicRow:
    replicas = max((len(row.replica_nodes) for row in topic.partitions), default=0)
    return TopicRow(
        topic.name or "",
        len(topic.partitions),
        replicas,
        topic.is_internal,
        _error(topic.error_code, topic.name or ""),
    )


def describe_topics(cluster: Cluster, topics: Sequence[str] | None = None) -> Steps[list[TopicPartitionRow]]:
    """A row per partition; None describes all topics. A missing topic is one row with its error."""
    answer = yield from cluster.metadata(None if topics is None else sorted(set(topics)))
    keys = [
        TopicPartition(topic.name or "", row.partition_index) for topic in answer.topics for row in topic.partitions
    ]
    starts = yield from list_offsets(cluster, dict.fromkeys(keys, EARLIEST))
    ends = yield from list_offsets(cluster, dict.fromkeys(keys, LATEST))
    rows = []
    for topic in sorted(answer.topics, key=lambda topic: topic.name or ""):
        if topic.error_code:
            rows.append(TopicPartitionRow(topic.name or "", None, error=_error(topic.error_code, topic.name or "")))
        for partition in sorted(topic.partitions, key=lambda row: row.partition_index):
            key = TopicPartition(topic.name or "", partition.partition_index)
            rows.append(_partition_row(key, partition, starts[key], ends[key]))
    return rows


def _partition_row(
    key: TopicPartition, row: MetadataResponse.Partition, start: OffsetAt | KgctlError, end: OffsetAt | KgctlError
) -> TopicPartitionRow:
    first = start.offset if isinstance(start, OffsetAt) else None
    last = end.offset if isinstance(end, OffsetAt) else None
    failed = next((found.as_row() for found in (start, end) if isinstance(found, KgctlError)), None)
    return TopicPartitionRow(
        topic=key.topic,
        partition=key.partition,
        leader=row.leader_id if row.leader_id >= 0 else None,
        leader_epoch=row.leader_epoch if row.leader_epoch >= 0 else None,
        replicas=tuple(row.replica_nodes),
        isr=tuple(row.isr_nodes),
        log_start_offset=first,
        log_end_offset=last,
        records=None if first is None or last is None else last - first,
        error=(BrokerError(row.error_code, str(key)).as_row() if row.error_code else None) or failed,
    )


def topic_configs(cluster: Cluster, topics: Sequence[str], *, all_of_them: bool = False) -> Steps[list[TopicConfigRow]]:
    """Settings that differ from the default, or all. Sensitive values are None, as brokers send them."""
    results: list[DescribeConfigsResponse.Result] = []
    for some in chunks(sorted(set(topics)), TOPICS_PER_REQUEST):
        resources = [
            DescribeConfigsRequest.Resource(resource_type=TOPIC, resource_name=topic, configuration_keys=None)
            for topic in some
        ]
        answer = yield from cluster.ask_any(DescribeConfigsRequest(resources=resources), DescribeConfigsResponse)
        results += answer.results
    rows = []
    for result in sorted(results, key=lambda result: result.resource_name):
        if result.error_code:
            error = _error(result.error_code, result.resource_name, result.error_message, DescribeConfigsRequest)
            rows.append(TopicConfigRow(result.resource_name, "", None, "", error))
        for row in sorted(result.configs, key=lambda row: row.name):
            if all_of_them or row.config_source != DEFAULT_SOURCE:
                source = SOURCES.get(row.config_source, "unknown")
                rows.append(TopicConfigRow(result.resource_name, row.name, row.value, source))
    return rows


def create_topics(
    cluster: Cluster,
    topics: Sequence[str],
    *,
    partitions: int | None = None,
    replicas: int | None = None,
    configs: Mapping[str, str] | None = None,
    note: Callable[[str], None] = lambda _: None,
) -> Steps[list[TopicChange]]:
    """Create topics; None leaves a number to the broker (Kafka 2.4). A row for each, with its error if refused.

    `note` receives warnings that concern no single row.
    """
    settings = [CreateTopicsRequest.Config(name=name, value=value) for name, value in sorted((configs or {}).items())]
    count = BROKER_DEFAULT if partitions is None else partitions
    factor = BROKER_DEFAULT if replicas is None else replicas
    lowest = 4 if BROKER_DEFAULT in (count, factor) else 0

    def make(node: Node, names: list[str]) -> list[Batch[str]]:
        return [batch(node, some) for some in chunks(names, TOPICS_PER_REQUEST)]

    def batch(node: Node, names: Sequence[str]) -> Batch[str]:
        rows = [
            CreateTopicsRequest.Topic(
                name=name, num_partitions=count, replication_factor=factor, assignments=[], configs=settings
            )
            for name in names
        ]
        request = CreateTopicsRequest(topics=rows, timeout_ms=SERVER_WAIT_MS)
        return Batch(Ask(node.endpoint, request, CreateTopicsResponse, lowest), names, _read_created)

    def repeated(name: str, result: TopicChange | KgctlError) -> TopicChange | KgctlError:
        already = isinstance(result, BrokerError) and result.code == ErrorCode.TOPIC_ALREADY_EXISTS
        return TopicChange(name, partitions, replicas, DONE) if already else result

    found = yield from cluster.at_controller(topics, make, repeated)
    made = [name for name, result in found.items() if isinstance(result, TopicChange)]
    try:
        yield from _wait_until_served(cluster, made)
    except KgctlError as error:
        note(f"Warning: the new topics may not be usable yet: {error}")
    return [
        TopicChange(name, partitions, replicas, FAILED, result.as_row()) if isinstance(result, KgctlError) else result
        for name, result in sorted(found.items())
    ]


def _wait_until_served(cluster: Cluster, topics: Sequence[str]) -> Steps[None]:
    """Wait until the brokers know the topics; until then, requests about them fail."""
    waiting = list(topics)
    for wait in cluster.retry_waits:
        if not waiting:
            return
        answer = yield from cluster.metadata(waiting)
        waiting = [
            row.name or "" for row in answer.topics if row.error_code or any(p.leader_id < 0 for p in row.partitions)
        ]
        if waiting:
            try:
                yield Pause(wait, f"topic {waiting[0]!r} has no leaders yet")
            except TimedOut:
                return


def _read_created(answer: CreateTopicsResponse) -> dict[str, TopicChange | KgctlError]:
    return {
        row.name: (
            BrokerError(
                row.error_code,
                f"topic {row.name!r}",
                row.error_message,
                asked=Asked(CreateTopicsRequest, topic=row.name),
            )
            if row.error_code
            else TopicChange(row.name, _known(row.num_partitions), _known(row.replication_factor), DONE)
        )
        for row in answer.topics
    }


def plan_deletion(cluster: Cluster, topics: Sequence[str]) -> Steps[list[TopicChange]]:
    """The topics to delete. One that does not exist, or is internal, is a row with its error."""
    answer = yield from cluster.metadata(sorted(set(topics)))
    rows = [_topic_row(topic) for topic in sorted(answer.topics, key=lambda topic: topic.name or "")]
    return [
        TopicChange(row.topic, None, None, FAILED, row.error)
        if row.error
        else TopicChange(row.topic, row.partitions, row.replicas, FAILED, _internal(row.topic))
        if row.internal
        else TopicChange(row.topic, row.partitions, row.replicas)
        for row in rows
    ]


def _internal(topic: str) -> RowError:
    """Kafka would delete an internal topic, and with it every committed offset."""
    return RowError("INTERNAL_TOPIC", f"topic {topic!r}: internal topics cannot be deleted")


def delete_topics(cluster: Cluster, plan: Sequence[TopicChange]) -> Steps[list[TopicChange]]:
    """Delete the topics of the plan; rows that failed in the plan stay as they are."""

    def make(node: Node, names: list[str]) -> list[Batch[str]]:
        return [batch(node, some) for some in chunks(names, TOPICS_PER_REQUEST)]

    def batch(node: Node, names: Sequence[str]) -> Batch[str]:
        request = DeleteTopicsRequest(
            topics=[DeleteTopicsRequest.Topic(name=name, topic_id=ZERO_UUID) for name in names],
            topic_names=list(names),
            timeout_ms=SERVER_WAIT_MS,
        )
        return Batch(Ask(node.endpoint, request, DeleteTopicsResponse), names, read)

    def read(answer: DeleteTopicsResponse) -> dict[str, KgctlError | None]:
        return {
            row.name or "": BrokerError(
                row.error_code,
                f"topic {row.name!r}",
                row.error_message,
                asked=Asked(DeleteTopicsRequest, topic=row.name or ""),
            )
            if row.error_code
            else None
            for row in answer.responses
        }

    def repeated(_: str, result: KgctlError | None) -> KgctlError | None:
        already = isinstance(result, BrokerError) and result.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return None if already else result

    found = yield from cluster.at_controller([row.topic for row in plan if not row.error], make, repeated)
    return [row if row.error else _outcome(row, found[row.topic]) for row in plan]


def _outcome(row: TopicChange, error: KgctlError | None) -> TopicChange:
    if error:
        return TopicChange(row.topic, row.partitions, row.replicas, FAILED, error.as_row())
    return TopicChange(row.topic, row.partitions, row.replicas, DONE)


def _known(number: int) -> int | None:
    return None if number < 0 else number


def _error(
    code: int, topic: str, message: str | None = None, request: type[Message] = MetadataRequest
) -> RowError | None:
    """The error of a topic as a part of its row."""
    return BrokerError(code, f"topic {topic!r}", message, asked=Asked(request, topic=topic)).as_row() if code else None
