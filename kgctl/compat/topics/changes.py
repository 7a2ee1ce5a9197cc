"""`--create`, `--alter` and `--delete`."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar

from broker.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsResponse
from broker.protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from broker.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from broker.protocol.wire_types import ZERO_UUID, Message
from kgctl.client.admin.topics import BROKER_DEFAULT, SERVER_WAIT_MS
from kgctl.client.net.cluster import Ask
from kgctl.client.net.errors import BrokerError
from kgctl.client.net.steps import Steps
from kgctl.compat.java_errors import JavaError, illegal_argument, of_code
from kgctl.compat.options import Arguments
from kgctl.compat.tool import Session
from kgctl.compat.topics.describe import existing
from kgctl.journal.items import partitions_added, topics_created, topics_deleted
from kgctl.journal.results import Outcome
from kgctl.model.items import PARTITIONS, TOPIC

R = TypeVar("R", bound=Message)
_MOST_REPLICAS = 32767
_COLLIDING = (
    "WARNING: Due to limitations in metric names, topics with a period ('.') or underscore ('_') could collide. To avoid "
    "issues it is best to use either, but not both.\n"
)


def run_create(session: Session, arguments: Arguments) -> None:
    name = arguments.value("topic") or ""
    request = CreateTopicsRequest(topics=[_new_topic(arguments, name)], timeout_ms=SERVER_WAIT_MS)
    if "." in name or "_" in name:
        session.out(_COLLIDING)
    factor, partitions = arguments.number("replication-factor"), arguments.number("partitions")
    if factor is not None and not 1 <= factor <= _MOST_REPLICAS:
        raise illegal_argument(f"The replication factor must be between 1 and {_MOST_REPLICAS} inclusive")
    if partitions is not None and partitions < 1:
        raise illegal_argument("The partitions must be greater than 0")
    session.host.may_change([name])
    answer = session.change(
        "topics create",
        lambda: topics_created(session.admin, [name]),
        lambda: _ask(session, request, CreateTopicsResponse, "createTopics"),
        lambda answer: _outcomes(TOPIC, answer.topics),
        "createTopics",
    )
    (row,) = answer.topics
    error = of_code(row.error_code, row.error_message) if row.error_code else None
    if error and error.name == "TOPIC_ALREADY_EXISTS" and arguments.has("if-not-exists"):
        return
    if error:
        raise error.within()
    session.out(f"Created topic {name}.\n")


def run_alter(session: Session, arguments: Arguments) -> None:
    names = existing(session, arguments)
    if not names:
        return
    count = arguments.number("partitions") or 0
    session.host.may_change(names)
    assignments = [CreatePartitionsRequest.Assignment(broker_ids=one.broker_ids) for one in _assignments(arguments)]
    rows = [CreatePartitionsRequest.Topic(name=name, count=count, assignments=assignments or None) for name in names]
    request = CreatePartitionsRequest(topics=rows, timeout_ms=SERVER_WAIT_MS)
    answer = session.change(
        "topics alter",
        lambda: partitions_added(session.admin, names, count),
        lambda: _ask(session, request, CreatePartitionsResponse, "createPartitions"),
        lambda answer: _outcomes(PARTITIONS, answer.results),
        "createPartitions",
    )
    _raise_first(answer.results)


def run_delete(session: Session, arguments: Arguments) -> None:
    names = existing(session, arguments)
    if not names:
        return
    session.host.may_change(names)
    rows = [DeleteTopicsRequest.Topic(name=name, topic_id=ZERO_UUID) for name in names]
    request = DeleteTopicsRequest(topics=rows, topic_names=names, timeout_ms=SERVER_WAIT_MS)
    answer = session.change(
        "topics delete",
        lambda: topics_deleted(session.admin, names),
        lambda: _ask(session, request, DeleteTopicsResponse, "deleteTopics"),
        lambda answer: _outcomes(TOPIC, answer.responses),
        "deleteTopics",
    )
    _raise_first(answer.responses)


def _outcomes(kind: str, rows: Any) -> list[Outcome]:
    errors = {
        row.name: BrokerError(row.error_code, f"topic {row.name!r}", row.error_message) if row.error_code else None
        for row in rows
    }
    setting = PARTITIONS if kind == PARTITIONS else None
    return [Outcome.of((kind, name, setting), error) for name, error in errors.items()]


def _raise_first(rows: Any) -> None:
    for row in rows:
        if row.error_code:
            raise of_code(row.error_code, row.error_message).within()


def _ask(session: Session, request: Message, response: type[R], call: str) -> R:
    """Ask the controller."""

    def steps() -> Steps[R]:
        cluster = session.admin.cluster
        node = yield from cluster.controller()
        return (yield from cluster.ask(Ask(node.endpoint, request, response)))

    asked: Callable[[], Steps[R]] = steps
    return session.run(asked(), call)


def _new_topic(arguments: Arguments, name: str) -> CreateTopicsRequest.Topic:
    configs = _configs(arguments)
    assignments = _assignments(arguments)
    partitions, factor = arguments.number("partitions"), arguments.number("replication-factor")
    return CreateTopicsRequest.Topic(
        name=name,
        num_partitions=BROKER_DEFAULT if partitions is None or assignments else max(partitions, BROKER_DEFAULT),
        replication_factor=BROKER_DEFAULT if factor is None or assignments else min(max(factor, -1), _MOST_REPLICAS),
        assignments=assignments,
        configs=configs,
    )


def _configs(arguments: Arguments) -> list[CreateTopicsRequest.Config]:
    pairs = [re.split(r"\s*=\s*", text) for text in arguments.values("config")]
    if any(len(pair) != 2 or not pair[1] for pair in pairs):
        raise illegal_argument(
            'requirement failed: Invalid topic config: all configs to be added must be in the format "key=val".'
        )
    values = {name.strip(): value.strip() for name, value in pairs}
    return [CreateTopicsRequest.Config(name=name, value=value) for name, value in values.items()]


def _assignments(arguments: Arguments) -> list[CreateTopicsRequest.Assignment]:
    """Raises JavaError."""
    text = arguments.value("replica-assignment") or ""
    found: list[CreateTopicsRequest.Assignment] = []
    for number, brokers in enumerate(text.split(",") if text else ()):
        try:
            nodes = [int(broker) for broker in brokers.split(":")]
        except ValueError as error:
            raise illegal_argument(f'For input string: "{brokers}"') from error
        repeated = [node for at, node in enumerate(nodes) if node in nodes[:at]]
        if repeated:
            shown = ",".join(map(str, dict.fromkeys(repeated)))
            kind = "org.apache.kafka.server.common.AdminCommandFailedException"
            raise JavaError(kind, f"Partition replica lists may not contain duplicate entries: {shown}")
        if found and len(nodes) != len(found[0].broker_ids):
            kind = "org.apache.kafka.server.common.AdminOperationException"
            raise JavaError(kind, f"Partition {number} has different replication factor: {nodes}")
        found.append(CreateTopicsRequest.Assignment(partition_index=number, broker_ids=nodes))
    return found
