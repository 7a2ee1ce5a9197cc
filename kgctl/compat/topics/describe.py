"""`--list` and `--describe`."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping, Sequence

from broker.light_dataclasses import dataclass
from broker.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResponse
from broker.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
)
from broker.protocol.messages.metadata import MetadataResponse
from broker.protocol.wire_types import ZERO_UUID
from kgctl.client.admin.topics import DEFAULT_SOURCE, TOPIC, TOPICS_PER_REQUEST
from kgctl.client.net.cluster import Cluster, chunks
from kgctl.client.net.errors import Unsupported
from kgctl.client.net.steps import Steps
from kgctl.compat.hash_order import as_java_sorts, in_hash_order, of_described_topics
from kgctl.compat.java_errors import ILLEGAL_ARGUMENT, RUNTIME, JavaError, illegal_argument, of_code
from kgctl.compat.options import Arguments
from kgctl.compat.tool import Session
from kgctl.compat.topics.options import REPORTS
from kgctl.exit_codes import NOT_FOUND, USAGE

_INTERNAL = ("__consumer_offsets", "__transaction_state", "__share_group_state")
# Of an id in base64, with padding.
_ID_CHARACTERS = 24
Partition = DescribeTopicPartitionsResponse.Partition


@dataclass(frozen=True, slots=True)
class Topic:
    """`has_elr`: whether the cluster names eligible leader replicas."""

    name: str
    topic_id: bytes
    partitions: Sequence[Partition]
    has_elr: bool


def run_list(session: Session, arguments: Arguments) -> None:
    session.out("\n".join(matching(session, arguments)) + "\n")


def matching(session: Session, arguments: Arguments) -> list[str]:
    """The names that --topic matches, sorted. Raises JavaError."""
    answer = session.run(session.admin.cluster.metadata(), "listTopics")
    hides = arguments.has("exclude-internal")
    shown = (topic for topic in answer.topics if not (hides and (topic.is_internal or topic.name in _INTERNAL)))
    names = as_java_sorts(topic.name or "" for topic in shown)
    wanted = arguments.value("topic")
    if wanted is None:
        return names
    text = re.sub("[\"']+$", "", re.sub("^[\"']+", "", wanted.strip().replace(",", "|").replace(" ", "")))
    try:
        pattern = re.compile(text)
    except re.error:
        raise JavaError(RUNTIME, f"{text} is an invalid regex.", "BAD_VALUE", USAGE) from None
    return [name for name in names if pattern.fullmatch(name)]


def existing(session: Session, arguments: Arguments) -> list[str]:
    """The same; raises JavaError if there are none, unless --if-exists."""
    names, wanted = matching(session, arguments), arguments.value("topic")
    if wanted and not names and not arguments.has("if-exists"):
        shown = f"Optional[{wanted}]" if session.host.dialect == "3.9" else wanted
        raise JavaError(ILLEGAL_ARGUMENT, f"Topic '{shown}' does not exist as expected", "NOT_FOUND", NOT_FOUND)
    return names


# --- describe ---


def run_describe(session: Session, arguments: Arguments) -> None:
    if arguments.has("if-exists") and arguments.has("topic") and arguments.has("topic-id"):
        session.out(
            "Only topic id will be used when both --topic and --topic-id are specified and topicId is not "
            "Uuid.ZERO_UUID\n"
        )
    wanted = arguments.value("topic-id")
    names = _with_id(session, arguments, wanted) if wanted else existing(session, arguments)
    found = describe(session, names)
    configs = _configs(session, list(found))
    cluster = session.run(session.admin.cluster.metadata([]), "describeCluster")
    live = {node.node_id for node in cluster.brokers}
    for name in of_described_topics(found):
        _show_topic(session, arguments, found[name], configs[name], live)


def describe(session: Session, names: Sequence[str]) -> dict[str, Topic]:
    """Raises JavaError."""
    found = session.run(_described(session.admin.cluster, names), "describeTopicPartitions") if names else []
    topics = {}
    for topic, has_elr in found:
        if topic.error_code:
            raise of_code(topic.error_code).within()
        partitions = sorted(topic.partitions, key=lambda row: row.partition_index)
        topics[topic.name or ""] = Topic(topic.name or "", topic.topic_id, partitions, has_elr)
    return topics


def _described(
    cluster: Cluster, names: Sequence[str]
) -> Steps[list[tuple[DescribeTopicPartitionsResponse.Topic, bool]]]:
    """In pages, or from the metadata of an older broker, which knows no eligible leader replicas."""
    topics = [DescribeTopicPartitionsRequest.Topic(name=name) for name in sorted(names)]
    request = DescribeTopicPartitionsRequest(topics=topics)
    pages: dict[str, DescribeTopicPartitionsResponse.Topic] = {}
    while True:
        try:
            answer = yield from cluster.ask_any(request, DescribeTopicPartitionsResponse)
        except Unsupported:
            metadata = yield from cluster.metadata(list(names))
            return [(_without_elr(topic), False) for topic in metadata.topics]
        for topic in answer.topics:
            pages.setdefault(topic.name or "", topic)
            if pages[topic.name or ""] is not topic:
                pages[topic.name or ""].partitions += topic.partitions
        if answer.next_cursor is None:
            return [(topic, True) for topic in pages.values()]
        cursor = answer.next_cursor
        request.cursor = DescribeTopicPartitionsRequest.Cursor(
            topic_name=cursor.topic_name, partition_index=cursor.partition_index
        )


def _without_elr(topic: MetadataResponse.Topic) -> DescribeTopicPartitionsResponse.Topic:
    partitions = [
        Partition(
            partition_index=row.partition_index,
            leader_id=row.leader_id,
            replica_nodes=row.replica_nodes,
            isr_nodes=row.isr_nodes,
            offline_replicas=row.offline_replicas,
        )
        for row in topic.partitions
    ]
    return DescribeTopicPartitionsResponse.Topic(
        error_code=topic.error_code, name=topic.name, topic_id=topic.topic_id, partitions=partitions
    )


def _with_id(session: Session, arguments: Arguments, wanted: str) -> list[str]:
    _check_id(wanted)
    answer = session.run(session.admin.cluster.metadata(), "listTopics")
    names = [topic.name or "" for topic in answer.topics if _text_of(topic.topic_id) == wanted]
    if not names and not arguments.has("if-exists"):
        about = f"TopicId '{wanted}' does not exist as expected"
        raise JavaError(ILLEGAL_ARGUMENT, about, "NOT_FOUND", NOT_FOUND)
    return names


def _check_id(text: str) -> None:
    """Raises JavaError unless this is base64 of an id's 16 bytes."""
    if len(text) > _ID_CHARACTERS:
        about = f"Input string with prefix `{text[:_ID_CHARACTERS]}` is too long to be decoded as a base64 UUID"
        raise illegal_argument(about)
    wrong = next((letter for letter in text.rstrip("=") if not re.fullmatch("[-_A-Za-z0-9]", letter)), None)
    if wrong is not None:
        raise illegal_argument(f"Illegal base64 character {ord(wrong):x}")
    size = len(text.rstrip("=")) * 6 // 8
    if size != len(ZERO_UUID):
        about = "bytes, which is not equal to the expected 16 bytes of a base64-encoded UUID"
        raise illegal_argument(f"Input string `{text}` decoded as {size} {about}")


def _configs(session: Session, names: Sequence[str]) -> dict[str, DescribeConfigsResponse.Result]:
    found: dict[str, DescribeConfigsResponse.Result] = {}
    for some in chunks(names, TOPICS_PER_REQUEST):
        resources = [
            DescribeConfigsRequest.Resource(resource_type=TOPIC, resource_name=name, configuration_keys=None)
            for name in some
        ]
        request = DescribeConfigsRequest(resources=resources)
        answer = session.run(session.admin.cluster.ask_any(request, DescribeConfigsResponse), "describeConfigs")
        for result in answer.results:
            if result.error_code:
                raise of_code(result.error_code, result.error_message).within()
            found[result.resource_name] = result
    return found


# --- what is shown ---


def _show_topic(
    session: Session, arguments: Arguments, topic: Topic, configs: DescribeConfigsResponse.Result, live: set[int]
) -> None:
    values = {row.name: row for row in configs.configs}
    changed = {name: row for name, row in values.items() if row.config_source != DEFAULT_SOURCE}
    is_report = arguments.has(*REPORTS)
    if not is_report and (changed or not arguments.has("topics-with-overrides")):
        pairs = [f"{name}={_or_null(values[name].value)}" for name in in_hash_order(values) if name in changed]
        parts = [f"Topic: {topic.name}"]
        if topic.topic_id != ZERO_UUID:
            parts.append(f"TopicId: {_text_of(topic.topic_id)}")
        parts += [f"PartitionCount: {len(topic.partitions)}"]
        parts += [f"ReplicationFactor: {len(topic.partitions[0].replica_nodes)}", f"Configs: {','.join(pairs)}"]
        session.out("\t".join(parts) + "\n")
    if arguments.has("topics-with-overrides"):
        return
    least = {name: row.value for name, row in values.items()}.get("min.insync.replicas") or "1"
    for row in topic.partitions:
        if not is_report or any(arguments.has(name) for name in _reported(row, int(least), live)):
            session.out(_line_of(topic, row))


def _reported(row: Partition, least: int, live: set[int]) -> Sequence[str]:
    """The reports in which the partition appears."""
    in_sync = len(row.isr_nodes)
    holds: Mapping[str, bool] = {
        "under-replicated-partitions": len(row.replica_nodes) > in_sync,
        "unavailable-partitions": row.leader_id not in live,
        "under-min-isr-partitions": row.leader_id < 0 or in_sync < least,
        "at-min-isr-partitions": in_sync == least,
    }
    return [name for name, is_so in holds.items() if is_so]


def _line_of(topic: Topic, row: Partition) -> str:
    elr = _nodes(row.eligible_leader_replicas or []) if topic.has_elr else "N/A"
    last = _nodes(row.last_known_elr or []) if topic.has_elr else "N/A"
    parts = [
        f"Topic: {topic.name}",
        f"Partition: {row.partition_index}",
        f"Leader: {row.leader_id if row.leader_id >= 0 else 'none'}",
        f"Replicas: {_nodes(row.replica_nodes)}",
        f"Isr: {_nodes(row.isr_nodes)}",
        f"Elr: {elr}",
        f"LastKnownElr: {last}",
    ]
    return "\t" + "\t".join(parts) + "\n"


def _nodes(nodes: Sequence[int]) -> str:
    return ",".join(map(str, nodes))


def _or_null(value: str | None) -> str:
    return "null" if value is None else value


def _text_of(topic_id: bytes) -> str:
    return base64.urlsafe_b64encode(topic_id).decode().rstrip("=")
