"""Describes, sets and unsets configs of topics, brokers, broker loggers, groups and client metrics."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from broker.light_dataclasses import replace
from broker.light_named_tuples import NamedTuple
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResponse
from broker.protocol.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from broker.protocol.messages.list_config_resources import ListConfigResourcesRequest, ListConfigResourcesResponse
from broker.protocol.wire_types import Message
from kgctl.client.admin.topics import DEFAULT_SOURCE, SOURCES
from kgctl.client.net.authorization import Asked
from kgctl.client.net.cluster import Ask, Batch, Cluster, Node, chunks
from kgctl.client.net.errors import BrokerError, KgctlError, LeftOut, NotFound, Unsupported
from kgctl.client.net.read_only import ReadOnly
from kgctl.client.net.steps import Steps
from kgctl.model.changes import DONE, FAILED, PLANNED
from kgctl.model.configs import ConfigChange, ConfigRow
from kgctl.model.failure import RowError

TOPIC, BROKER, LOGGER, GROUP, CLIENT_METRICS = "topic", "broker", "broker-logger", "group", "client-metrics"
# KIP-133, KIP-412, KIP-714, KIP-848: the number of each type of resource.
TYPES = {TOPIC: 2, BROKER: 4, LOGGER: 8, CLIENT_METRICS: 16, GROUP: 32}
# What people type for the configs of all brokers; the request has an empty name.
ALL_BROKERS = "default"
_VALUE_TYPES = {
    1: "boolean",
    2: "string",
    3: "int",
    4: "short",
    5: "long",
    6: "double",
    7: "list",
    8: "class",
    9: "password",
}
RESOURCES_PER_REQUEST = 500
_SET, _DELETE = 0, 1
_OWN = {TOPIC: 1, BROKER: 2, ALL_BROKERS: 3, LOGGER: 6, CLIENT_METRICS: 7, GROUP: 8}


class Resource(NamedTuple):
    """What has configs: a topic, a broker by its id, all brokers ("default"), a group, a subscription of metrics."""

    type: str
    name: str

    def __str__(self) -> str:
        if self.type == BROKER and self.name == ALL_BROKERS:
            return "the default of all brokers"
        words = self.type.replace("-", " ")
        return f"{words} {self.name}" if self.type in (BROKER, LOGGER) else f"{words} {self.name!r}"

    @property
    def wire_name(self) -> str:
        return "" if self.type == BROKER and self.name == ALL_BROKERS else self.name

    @property
    def own_source(self) -> int:
        """The source of a value that is set on this resource itself."""
        return _OWN[ALL_BROKERS if self.type == BROKER and self.name == ALL_BROKERS else self.type]


class OwnValue(NamedTuple):
    """A config as it is; `is_own`: it is set on the resource itself. Sensitive values are None."""

    value: str | None
    is_own: bool
    is_sensitive: bool


Found = dict[Resource, "DescribeConfigsResponse.Result | KgctlError"]


def resources_of(cluster: Cluster, kind: str) -> Steps[list[Resource]]:
    """All resources of a type that have configs."""
    if kind == TOPIC:
        answer = yield from cluster.metadata()
        return [Resource(kind, name) for name in sorted(row.name or "" for row in answer.topics)]
    if kind in (BROKER, LOGGER):
        nodes = yield from cluster.all_nodes()
        return [Resource(kind, str(node.node_id)) for node in nodes]
    # Before v1 (Kafka 4.1), only client metrics can be listed.
    request = ListConfigResourcesRequest(resource_types=[TYPES[kind]])
    lowest = 0 if kind == CLIENT_METRICS else 1
    try:
        listed = yield from cluster.ask_any(request, ListConfigResourcesResponse, min_version=lowest)
    except Unsupported as error:
        raise Unsupported(f"the cluster cannot list {kind}s that have configs (Kafka 4.1): name them") from error
    if listed.error_code:
        raise BrokerError(listed.error_code, f"the list of {kind}s", asked=Asked(ListConfigResourcesRequest))
    return [Resource(kind, row.resource_name) for row in sorted(listed.config_resources, key=lambda r: r.resource_name)]


def describe_configs(
    cluster: Cluster, resources: Sequence[Resource], names: Sequence[str] = (), *, all_of_them: bool = False
) -> Steps[list[ConfigRow]]:
    """Configs that differ from the default, all, or those with these names. A resource that fails is a row with its error."""
    found = yield from _described(cluster, resources, names)
    rows: list[ConfigRow] = []
    for resource in resources:
        result = found[resource]
        if isinstance(result, KgctlError):
            rows.append(_failed(resource, result))
            continue
        own = sorted(result.configs, key=lambda row: row.name)
        rows += [_row(resource, row) for row in own if all_of_them or names or row.config_source != DEFAULT_SOURCE]
        absent = [name for name in names if name not in {row.name for row in own}]
        rows += [_failed(resource, NotFound(f"{resource} has no config {name!r}"), name) for name in absent]
    return rows


def own_configs(
    cluster: Cluster, resources: Sequence[Resource], names: Sequence[str] = ()
) -> Steps[dict[Resource, dict[str, OwnValue] | KgctlError]]:
    """The configs of each resource, all or those with these names, and which of them are set on it."""
    found = yield from _described(cluster, resources, names)
    return {
        resource: result
        if isinstance(result, KgctlError)
        else {
            row.name: OwnValue(
                None if row.is_sensitive else row.value, row.config_source == resource.own_source, row.is_sensitive
            )
            for row in result.configs
        }
        for resource, result in found.items()
    }


def plan_configs(
    cluster: Cluster, resources: Sequence[Resource], changes: Mapping[str, str | None]
) -> Steps[list[ConfigChange]]:
    """What would be set, or unset (None), on each resource. The cluster checks it without a change.

    Configs that have the value already, and those to unset that are not set, have the status "same".
    """
    found = yield from _described(cluster, resources, list(changes))
    plan = []
    for resource in resources:
        result = found[resource]
        if isinstance(result, KgctlError):
            plan += [
                ConfigChange(*resource, name, None, value, False, FAILED, result.as_row())
                for name, value in changes.items()
            ]
            continue
        present = {row.name: row for row in result.configs}
        plan += [_planned(resource, name, value, present.get(name)) for name, value in changes.items()]
    checked = yield from _apply(cluster, plan, only_check=True)
    return [replace(row, status=PLANNED) if row.status == DONE else row for row in checked]


def change_configs(cluster: Cluster, plan: Sequence[ConfigChange]) -> Steps[list[ConfigChange]]:
    """Make the changes of the plan: all of a resource, or none."""
    return (yield from _apply(cluster, plan, only_check=False))


def _planned(
    resource: Resource, name: str, value: str | None, present: DescribeConfigsResponse.Config | None
) -> ConfigChange:
    old = None if present is None else present.value
    is_own = present is not None and present.config_source == resource.own_source
    sensitive = present is not None and present.is_sensitive
    # A sensitive value is never sent to clients, so it may differ.
    is_same = not is_own if value is None else is_own and not sensitive and old == value
    if present is not None and present.read_only and resource.type == BROKER:
        error = RowError("INVALID_REQUEST", f"{resource}: {name} is read-only: it can only be set in the broker's file")
        return ConfigChange(*resource, name, old, value, sensitive, FAILED, error)
    if (
        value is None
        and present is None
        and (resource.type in (TOPIC, GROUP) or (resource.type == BROKER and resource.wire_name))
    ):
        # Topics, groups and brokers report every config that they know, so the name is misspelt.
        missing = NotFound(f"{resource} has no config {name!r}").as_row()
        return ConfigChange(*resource, name, None, None, sensitive, FAILED, missing)
    return ConfigChange(*resource, name, old, value, sensitive, "same" if is_same else PLANNED)


def _apply(cluster: Cluster, plan: Sequence[ConfigChange], *, only_check: bool) -> Steps[list[ConfigChange]]:
    """All changes of one resource are applied together, so they are left alone if one of them has an error."""
    wanted: dict[Resource, list[ConfigChange]] = {}
    for row in plan:
        wanted.setdefault(Resource(row.resource_type, row.resource), []).append(row)
    errors = {resource: next((row.error for row in rows if row.error), None) for resource, rows in wanted.items()}
    sent = {
        resource: [row for row in rows if row.status == PLANNED]
        for resource, rows in wanted.items()
        if errors[resource] is None and any(row.status == PLANNED for row in rows)
    }

    def ask(node: Node, some: Sequence[Resource]) -> Batch[Resource]:
        rows = [_alteration(resource, sent[resource]) for resource in some]
        request = IncrementalAlterConfigsRequest(resources=rows, validate_only=only_check)
        return Batch(Ask(node.endpoint, request, IncrementalAlterConfigsResponse), some, _read_altered)

    try:
        found = yield from _at_brokers(cluster, sent, ask)
    except Unsupported as error:
        raise Unsupported(
            "the cluster cannot change single configs (IncrementalAlterConfigs, Kafka 2.3); "
            "AlterConfigs of older clusters would reset all others"
        ) from error
    except ReadOnly:
        if not only_check:
            raise
        found = dict.fromkeys(sent)
    return [_outcome(row, found, errors) for row in plan]


def _outcome(
    row: ConfigChange, found: Mapping[Resource, KgctlError | None], errors: Mapping[Resource, RowError | None]
) -> ConfigChange:
    resource = Resource(row.resource_type, row.resource)
    if row.status != PLANNED or row.error:
        return row
    if errors[resource] is not None:
        return replace(row, status="skipped")
    error = found[resource]
    return replace(row, status=FAILED, error=error.as_row()) if error else replace(row, status=DONE)


def _alteration(resource: Resource, rows: Iterable[ConfigChange]) -> IncrementalAlterConfigsRequest.Resource:
    configs = [
        IncrementalAlterConfigsRequest.Config(
            name=row.config, config_operation=_DELETE if row.new_value is None else _SET, value=row.new_value
        )
        for row in rows
    ]
    return IncrementalAlterConfigsRequest.Resource(
        resource_type=TYPES[resource.type], resource_name=resource.wire_name, configs=configs
    )


def _described(cluster: Cluster, resources: Sequence[Resource], names: Sequence[str]) -> Steps[Found]:
    def ask(node: Node, some: Sequence[Resource]) -> Batch[Resource]:
        rows = [
            DescribeConfigsRequest.Resource(
                resource_type=TYPES[one.type], resource_name=one.wire_name, configuration_keys=list(names) or None
            )
            for one in some
        ]
        request = DescribeConfigsRequest(resources=rows, include_synonyms=True)
        return Batch(Ask(node.endpoint, request, DescribeConfigsResponse), some, _read_described)

    found: Found = yield from _at_brokers(cluster, resources, ask)
    return found


def _at_brokers(
    cluster: Cluster, resources: Iterable[Resource], ask: Callable[[Node, Sequence[Resource]], Batch[Resource]]
) -> Steps[dict[Resource, Any]]:
    """Ask each broker about its own configs and loggers, and any node about the rest."""
    nodes = {str(node.node_id): node for node in (yield from cluster.all_nodes())}
    anyone = yield from cluster.controller()
    found: dict[Resource, Any] = {}
    by_node: dict[Node, list[Resource]] = {}
    for resource in resources:
        if resource.type in (BROKER, LOGGER) and resource.wire_name:
            node = nodes.get(resource.name)
            if node is None:
                found[resource] = NotFound(f"the cluster has no broker {resource.name}")
                continue
            by_node.setdefault(node, []).append(resource)
        else:
            by_node.setdefault(anyone, []).append(resource)
    batches = [ask(node, some) for node, all_ in by_node.items() for some in chunks(all_, RESOURCES_PER_REQUEST)]
    answers = yield from cluster.ask_each([batch.ask for batch in batches])
    for batch, answer in zip(batches, answers, strict=True):
        if isinstance(answer, Unsupported | ReadOnly):
            raise answer
        answered = {} if isinstance(answer, KgctlError) else batch.read(answer)
        lost = answer if isinstance(answer, KgctlError) else None
        found |= {key: lost or LeftOut(str(key)) for key in batch.keys} | answered
    return found


def _read_described(answer: DescribeConfigsResponse) -> Found:
    return {
        (key := _key(row.resource_type, row.resource_name)): _error(
            key, row.error_code, row.error_message, DescribeConfigsRequest
        )
        or row
        for row in answer.results
    }


def _read_altered(answer: IncrementalAlterConfigsResponse) -> dict[Resource, KgctlError | None]:
    return {
        (key := _key(row.resource_type, row.resource_name)): _error(
            key, row.error_code, row.error_message, IncrementalAlterConfigsRequest
        )
        for row in answer.responses
    }


def _key(number: int, name: str) -> Resource:
    kind = next(kind for kind, known in TYPES.items() if known == number)
    return Resource(kind, name or ALL_BROKERS if kind == BROKER else name)


def _error(resource: Resource, code: int, message: str | None, request: type[Message]) -> BrokerError | None:
    if not code:
        return None
    named = {"topic": resource.name} if resource.type == TOPIC else {"group": resource.name}
    asked = Asked(request, **(named if resource.type in (TOPIC, GROUP) else {}))
    if code == ErrorCode.INVALID_REQUEST and resource.type == LOGGER and not message:
        message = "the broker has no configs of loggers"
    return BrokerError(code, str(resource), message or None, asked=asked)


def _row(resource: Resource, row: DescribeConfigsResponse.Config) -> ConfigRow:
    defaults = [one.value for one in row.synonyms if one.source == DEFAULT_SOURCE]
    default = row.value if row.config_source == DEFAULT_SOURCE else next(iter(defaults), None)
    return ConfigRow(
        *resource,
        config=row.name,
        value=None if row.is_sensitive else row.value,
        source=SOURCES.get(row.config_source, "unknown"),
        default=None if row.is_sensitive else default,
        type=_VALUE_TYPES.get(row.config_type),
        read_only=row.read_only,
        sensitive=row.is_sensitive,
    )


def _failed(resource: Resource, error: KgctlError, name: str | None = None) -> ConfigRow:
    return ConfigRow(*resource, config=name, value=None, source=None, error=error.as_row())
