"""Configs of topics, brokers and their loggers, groups and client metrics."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TypeVar

from broker.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResponse
from broker.protocol.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from broker.protocol.messages.list_config_resources import ListConfigResourcesRequest, ListConfigResourcesResponse
from broker.protocol.wire_types import Message
from kgctl.client.admin.configs import ALL_BROKERS, BROKER, CLIENT_METRICS, GROUP, LOGGER, TOPIC, Resource
from kgctl.client.admin.groups import list_groups
from kgctl.client.net.cluster import Ask, Cluster
from kgctl.client.net.errors import BrokerError, KgctlError
from kgctl.client.net.steps import Steps
from kgctl.compat.configs.options import BROKERS, GROUPS, LOGGERS, METRICS, TOPICS, Entity
from kgctl.compat.hash_order import in_hash_order
from kgctl.compat.java_errors import no_such_config, of_code
from kgctl.compat.options import UsageError
from kgctl.compat.tool import Ended, Session
from kgctl.exit_codes import NOT_FOUND
from kgctl.journal.items import configs_changed
from kgctl.journal.results import Outcome
from kgctl.model.items import CONFIG

R = TypeVar("R", bound=Message)
# Kafka's numbers of the resources, and of the sources of what was set dynamically for one of them.
_RESOURCE = {TOPICS: 2, BROKERS: 4, LOGGERS: 8, METRICS: 16, GROUPS: 32}
_DYNAMIC = {TOPICS: 1, BROKERS: 2, METRICS: 7, GROUPS: 8}
_DYNAMIC_DEFAULT = 3
_SOURCES = {
    1: "DYNAMIC_TOPIC_CONFIG",
    2: "DYNAMIC_BROKER_CONFIG",
    3: "DYNAMIC_DEFAULT_BROKER_CONFIG",
    4: "STATIC_BROKER_CONFIG",
    5: "DEFAULT_CONFIG",
    6: "DYNAMIC_BROKER_LOGGER_CONFIG",
    7: "DYNAMIC_CLIENT_METRICS_CONFIG",
    8: "DYNAMIC_GROUP_CONFIG",
}
_KINDS = {TOPICS: TOPIC, BROKERS: BROKER, LOGGERS: LOGGER, METRICS: CLIENT_METRICS, GROUPS: GROUP}
_SET, _DELETE = 0, 1
_TOPIC_NAME = re.compile(r"[a-zA-Z0-9._-]{1,249}")


# --- describe ---


def describe_resources(session: Session, entity: Entity, *, is_all: bool) -> Ended:
    kind, name = entity.kind, entity.names[0] if entity.names else None
    is_old = session.host.dialect == "3.9"
    if name is not None and not is_all and not is_old:
        _check_topic(kind, name)
        is_default = not name and kind in (BROKERS, LOGGERS)
        if not is_default and name not in _existing(session, kind):
            session.out(f"The {kind[:-1]} '{name}' doesn't exist and doesn't have dynamic config.\n")
            return Ended(NOT_FOUND, 0)
    names = [name] if name is not None else _existing(session, kind)
    for one in [*names, *([""] if name is None and kind == BROKERS else [])]:
        if one:
            session.out(f"{'All' if is_all else 'Dynamic'} configs for {kind[:-1]} {one} are:\n")
        else:
            session.out(f"Default configs for {kind} in the cluster are:\n")
        for row in _rows(session, kind, one, is_all=is_all):
            synonyms = ", ".join(f"{_SOURCES.get(s.source, 'UNKNOWN')}:{s.name}={_text(s.value)}" for s in row.synonyms)
            is_sensitive = str(row.is_sensitive).lower()
            session.out(f"  {row.name}={_text(row.value)} sensitive={is_sensitive} synonyms={{{synonyms}}}\n")
    return Ended(0, 0)


def _check_topic(kind: str, name: str) -> None:
    if kind == TOPICS and (not _TOPIC_NAME.fullmatch(name) or name in (".", "..")):
        raise UsageError(f"Topic name is invalid: {name!r}")


def _existing(session: Session, kind: str) -> list[str]:
    """The names of all entities of a kind, in the order of the tool."""
    cluster = session.admin.cluster
    if kind == TOPICS:
        topics = session.run(cluster.metadata(), "listTopics").topics
        return in_hash_order(topic.name or "" for topic in topics)
    if kind in (BROKERS, LOGGERS):
        return [str(node.node_id) for node in session.run(cluster.metadata([]), "describeCluster").brokers]
    request = ListConfigResourcesRequest(resource_types=[_RESOURCE[kind]])
    lowest = 1 if kind == GROUPS else 0
    asked = cluster.ask_any(request, ListConfigResourcesResponse, min_version=lowest)
    listed = [row.resource_name for row in session.run(asked, "listConfigResources").config_resources]
    if kind == GROUPS:
        listed += [row.group for row in session.run(list_groups(cluster), "listGroups").groups]
    return list(dict.fromkeys(listed))


def _rows(session: Session, kind: str, name: str, *, is_all: bool) -> list[DescribeConfigsResponse.Config]:
    resource = DescribeConfigsRequest.Resource(
        resource_type=_RESOURCE[kind], resource_name=name, configuration_keys=None
    )
    request = DescribeConfigsRequest(resources=[resource], include_synonyms=True)
    asked = _at(session.admin.cluster, kind, name, request, DescribeConfigsResponse)
    (result,) = session.run(asked, "describeConfigs").results
    if result.error_code:
        raise of_code(result.error_code, result.error_message).within()
    source = _DYNAMIC_DEFAULT if kind == BROKERS and not name else _DYNAMIC.get(kind)
    is_any = is_all or source is None
    return sorted((row for row in result.configs if is_any or row.config_source == source), key=lambda row: row.name)


def _at(cluster: Cluster, kind: str, name: str, request: Message, response: type[R]) -> Steps[R]:
    """Ask the broker itself about its configs, any broker about others."""
    if kind in (BROKERS, LOGGERS) and name:
        for node in (yield from cluster.all_nodes()):
            if str(node.node_id) == name:
                return (yield from cluster.ask(Ask(node.endpoint, request, response)))
        raise KgctlError(f"there is no broker {name}")
    return (yield from cluster.ask_any(request, response))


def _text(value: str | None) -> str:
    return "null" if value is None else value


# --- alter ---


def alter_resource(session: Session, entity: Entity, values: Mapping[str, str], removed: Sequence[str]) -> None:
    """Raises JavaError, UsageError."""
    kind, name = entity.kind, entity.names[0]
    known = {row.name: row.value for row in _rows(session, kind, name, is_all=False)}
    if kind == LOGGERS:
        missing = [logger for logger in (*removed, *values) if logger not in known]
        if missing:
            raise no_such_config(f"Invalid broker logger(s): {','.join(missing)}")
    missing = [config for config in removed if config not in known]
    if missing:
        raise no_such_config(f"Invalid config(s): {','.join(missing)}")
    if kind == BROKERS and session.host.dialect == "3.9":
        # That release sends all configs again, and does not know the sensitive ones.
        kept = [config for config, value in known.items() if value is None and config not in (*values, *removed)]
        if kept:
            about = f"missing entries: Set({', '.join(kept)})"
            raise UsageError(f"All sensitive broker config entries must be specified for --alter, {about}")
    session.host.may_change([name] if name else [])
    operations = [(config, _DELETE, "") for config in removed] + [(key, _SET, text) for key, text in values.items()]
    configs = [
        IncrementalAlterConfigsRequest.Config(name=config, config_operation=operation, value=value)
        for config, operation, value in operations
    ]
    resource = IncrementalAlterConfigsRequest.Resource(
        resource_type=_RESOURCE[kind], resource_name=name, configs=configs
    )
    request = IncrementalAlterConfigsRequest(resources=[resource])
    changed = Resource(_KINDS[kind], name or ALL_BROKERS)
    answer = session.change(
        "configs set" if values else "configs unset",
        lambda: configs_changed(session.admin, {changed: {**dict.fromkeys(removed), **values}}),
        lambda: session.run(
            _at(session.admin.cluster, kind, name, request, IncrementalAlterConfigsResponse), "incrementalAlterConfigs"
        ),
        lambda answer: _outcomes(changed, [*removed, *values], answer),
        "incrementalAlterConfigs",
    )
    (row,) = answer.responses
    if row.error_code:
        raise of_code(row.error_code, row.error_message).within()


def _outcomes(resource: Resource, names: Sequence[str], answer: IncrementalAlterConfigsResponse) -> list[Outcome]:
    (row,) = answer.responses
    error = BrokerError(row.error_code, str(resource), row.error_message) if row.error_code else None
    return [Outcome.of((CONFIG, *resource, name), error) for name in names]
