"""DescribeConfigs: the configs of topics, brokers, groups and client metrics."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from broker.protocol.acls import Operation
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResponse
from broker.server.config_rows import ConfigRow, broker_rows, dynamic_rows, own_rows, topic_rows
from broker.server.declaration import FEWER_ENTRIES, Declaration, Slicing
from broker.server.guards import DENIALS, PASS, Guard, Narrowed, Verdict
from broker.server.handlers.config_access import BROKER, CLIENT_METRICS, GROUP, TOPIC, config_acls, config_denial
from broker.server.topic_names import name_error

if TYPE_CHECKING:
    from broker.server.access import Access
    from broker.server.declaration import SliceHandler
    from broker.server.exchange import Answerable, Exchange
    from broker.server.resources import Resources

UNNAMED = {
    GROUP: "Group name must not be empty",
    CLIENT_METRICS: "Client metrics subscription name must not be empty",
}
Refusal = tuple[ErrorCode, str]


def describe_configs(request: DescribeConfigsRequest, exchange: Exchange, resources: Resources) -> SliceHandler:
    def run(part: DescribeConfigsRequest, answerable: Answerable) -> DescribeConfigsResponse:
        return _describe(part, resources)

    return run


def _describe(request: DescribeConfigsRequest, resources: Resources) -> DescribeConfigsResponse:
    results = []
    for asked in request.resources:
        rows, (code, message) = _rows(asked.resource_type, asked.resource_name, resources)
        keys = set(asked.configuration_keys or ())
        configs = [_config(row, request) for row in rows if not keys or row.name in keys]
        results.append(
            DescribeConfigsResponse.Result(
                error_code=code,
                error_message=message,
                resource_type=asked.resource_type,
                resource_name=asked.resource_name,
                configs=configs,
            )
        )
    return DescribeConfigsResponse(results=results)


def broker_name_error(name: str, resources: Resources) -> str | None:
    """Why the name is not this broker's. Its resource is its node id; "" means the default of all brokers."""
    if not name:
        return None
    try:
        int(name)
    except ValueError:
        return f"Node id must be an integer, but it is: {name}"
    node_id = resources.node_id
    # One spelling only: 01 and +1 would be further resources, each with an answer as long.
    return None if name == str(node_id) else f"Unexpected broker id, expected {node_id}, but received {name}"


def _rows(kind: int, name: str, resources: Resources) -> tuple[Iterable[ConfigRow], Refusal]:
    # Without an error Kafka sends an empty message here, not null.
    fine: Refusal = ErrorCode.NONE, ""
    if kind == TOPIC:
        topic = resources.log.topics.get(name)
        if topic is not None:
            return topic_rows(topic.configs, resources), fine
        invalid = name_error(name)
        if invalid is not None:
            return (), (ErrorCode.INVALID_TOPIC_EXCEPTION, invalid)
        return (), (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "")
    if kind == BROKER:
        wrong = broker_name_error(name, resources)
        if wrong is not None:
            return (), (ErrorCode.INVALID_REQUEST, wrong)
        return (broker_rows(resources) if name else dynamic_rows(resources)), fine
    if kind in UNNAMED:
        return own_rows(kind, name, resources) if name else (), fine if name else (
            ErrorCode.INVALID_REQUEST,
            UNNAMED[kind],
        )
    return (), (ErrorCode.INVALID_REQUEST, f"This broker has no configs of resources of type {kind}.")


def _config(row: ConfigRow, request: DescribeConfigsRequest) -> DescribeConfigsResponse.Config:
    synonyms = row.synonyms if request.include_synonyms else []
    return DescribeConfigsResponse.Config(
        name=row.name,
        value=row.value,
        read_only=row.read_only,
        config_source=row.source,
        is_sensitive=row.is_sensitive,
        synonyms=[
            DescribeConfigsResponse.Synonym(name=synonym.name, value=synonym.value, source=synonym.source)
            for synonym in synonyms
        ],
        config_type=row.type_number,
        documentation=row.doc if request.include_documentation else None,
    )


def _question(asked: DescribeConfigsRequest.Resource) -> tuple[int, str, frozenset[str]]:
    return asked.resource_type, asked.resource_name, frozenset(asked.configuration_keys or ())


def _check(request: DescribeConfigsRequest, access: Access, exchange: Answerable, resources: Resources) -> Verdict:
    denied = []
    allowed = []
    for asked in request.resources:
        code = config_denial(access, Operation.DESCRIBE_CONFIGS, asked.resource_type, asked.resource_name)
        if code is None:
            allowed.append(asked)
        else:
            denied.append(_denied(asked, code))
    if not denied:
        return PASS
    request.resources = allowed

    def complete(response: DescribeConfigsResponse) -> DescribeConfigsResponse:
        response.results += denied
        return response

    return Narrowed(request, complete)


def _denied(asked: DescribeConfigsRequest.Resource, code: ErrorCode) -> DescribeConfigsResponse.Result:
    return DescribeConfigsResponse.Result(
        error_code=code,
        error_message=DENIALS[code],
        resource_type=asked.resource_type,
        resource_name=asked.resource_name,
        configs=[],
    )


REQUESTS = (
    Declaration(
        DescribeConfigsRequest,
        describe_configs,
        Guard(_check, *config_acls(Operation.DESCRIBE_CONFIGS)),
        # A resource has some forty configs, each with its synonyms.
        Slicing("resources", "results", _question, 5),
        max_entries=FEWER_ENTRIES,
    ),
)
