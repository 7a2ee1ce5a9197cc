"""kafka-configs for topics, brokers, groups and client metrics: shows and changes configs."""

from __future__ import annotations

from collections.abc import Sequence

from broker.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResponse
from broker.protocol.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from broker.protocol.messages.list_config_resources import ListConfigResourcesRequest, ListConfigResourcesResponse
from kgctl.client.admin.configs import ALL_BROKERS, BROKER, CLIENT_METRICS, GROUP, TOPIC, Resource
from kgctl.client.admin.groups import list_groups
from kgctl.client.net.cluster import Ask, Cluster
from kgctl.client.net.errors import BrokerError, KgctlError
from kgctl.client.net.steps import Steps
from kgctl.compat.configs.options import BROKERS, GROUPS, METRICS, TOPICS, Entity, added, deleted, parsed
from kgctl.compat.hash_order import in_hash_order
from kgctl.compat.java_errors import JavaError, of_code
from kgctl.compat.options import Arguments, BadOption, UsageError
from kgctl.compat.tool import DIALECTS, Ended, Host, Session
from kgctl.exit_codes import NOT_FOUND
from kgctl.journal.items import configs_changed
from kgctl.journal.results import Outcome
from kgctl.model.items import CONFIG

SUMMARY = "This tool helps to manipulate and describe entity config for a topic, client, user, broker, ip, client-metrics or group"
# Kafka's numbers of the resources, and of the sources of what was set dynamically for one of them.
_RESOURCE = {TOPICS: 2, BROKERS: 4, METRICS: 16, GROUPS: 32}
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
_KINDS = {TOPICS: TOPIC, BROKERS: BROKER, METRICS: CLIENT_METRICS, GROUPS: GROUP}
_SET, _DELETE = 0, 1
_FAILED = 1


def run(arguments: Sequence[str], host: Host) -> Ended:
    """Raises UsageError."""
    if not arguments or "--help" in arguments:
        raise UsageError(SUMMARY)
    if "--version" in arguments:
        host.out(f"{DIALECTS[host.dialect]}\n")
        return Ended(0, 0)
    try:
        found, entity = parsed(arguments)
        if entity.kind not in _RESOURCE or found.has("bootstrap-controller"):
            raise UsageError(f"kgctl has no {entity.kind} here; see `kgctl users` and docs/compat.md")
        servers, config = found.value("bootstrap-server"), found.value("command-config")
    except BadOption as error:
        raise UsageError(error.message) from error
    try:
        with host.connect(servers, config, None) as admin:
            session = Session(host, admin)
            return _alter(session, found, entity) if found.has("alter") else _describe(session, found, entity)
    except JavaError as error:
        given = " ".join(arguments)
        host.err(f"Error while executing config command with args '{given}'\n{error}\n")
        return Ended(error.exit_code, _FAILED)


# --- describe ---


def _describe(session: Session, found: Arguments, entity: Entity) -> Ended:
    is_all = found.has("all")
    is_checked = entity.name and not is_all and session.host.dialect != "3.9"
    if is_checked and entity.name not in _existing(session, entity.kind):
        about = f"The {entity.kind[:-1]} '{entity.name}' doesn't exist and doesn't have dynamic config."
        session.out(about + "\n")
        return Ended(NOT_FOUND, 0)
    names = [entity.name] if entity.name is not None else _existing(session, entity.kind)
    for name in [*names, *([""] if entity.name is None and entity.kind == BROKERS else [])]:
        if name:
            session.out(f"{'All' if is_all else 'Dynamic'} configs for {entity.kind[:-1]} {name} are:\n")
        else:
            session.out(f"Default configs for {entity.kind} in the cluster are:\n")
        for row in _rows(session, entity.kind, name, is_all=is_all):
            synonyms = ", ".join(f"{_SOURCES.get(s.source, 'UNKNOWN')}:{s.name}={_text(s.value)}" for s in row.synonyms)
            is_sensitive = str(row.is_sensitive).lower()
            session.out(f"  {row.name}={_text(row.value)} sensitive={is_sensitive} synonyms={{{synonyms}}}\n")
    return Ended(0, 0)


def _existing(session: Session, kind: str) -> list[str]:
    """The names of all entities of a kind, in the order of the tool."""
    cluster = session.admin.cluster
    if kind == TOPICS:
        topics = session.run(cluster.metadata(), "listTopics").topics
        return in_hash_order(topic.name or "" for topic in topics)
    if kind == BROKERS:
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
    (result,) = session.run(_at(session.admin.cluster, kind, name, request), "describeConfigs").results
    if result.error_code:
        raise of_code(result.error_code, result.error_message).within()
    source = _DYNAMIC_DEFAULT if kind == BROKERS and not name else _DYNAMIC[kind]
    return sorted((row for row in result.configs if is_all or row.config_source == source), key=lambda row: row.name)


def _at(cluster: Cluster, kind: str, name: str, request: DescribeConfigsRequest) -> Steps[DescribeConfigsResponse]:
    """Ask the broker itself about its configs, any broker about others."""
    if kind == BROKERS and name:
        for node in (yield from cluster.all_nodes()):
            if str(node.node_id) == name:
                return (yield from cluster.ask(Ask(node.endpoint, request, DescribeConfigsResponse)))
        raise KgctlError(f"there is no broker {name}")
    return (yield from cluster.ask_any(request, DescribeConfigsResponse))


def _text(value: str | None) -> str:
    return "null" if value is None else value


# --- alter ---


def _alter(session: Session, found: Arguments, entity: Entity) -> Ended:
    name = entity.name or ""
    values, removed = added(found), deleted(found)
    known = {row.name for row in _rows(session, entity.kind, name, is_all=False)}
    missing = [config for config in removed if config not in known]
    if missing:
        session.err(f"Invalid config(s): {','.join(missing)}\n")
        return Ended(NOT_FOUND, _FAILED)
    session.host.may_change([name] if name else [])
    operations = [(config, _DELETE, "") for config in removed] + [(key, _SET, text) for key, text in values.items()]
    configs = [
        IncrementalAlterConfigsRequest.Config(name=config, config_operation=operation, value=value)
        for config, operation, value in operations
    ]
    resource = IncrementalAlterConfigsRequest.Resource(
        resource_type=_RESOURCE[entity.kind], resource_name=name, configs=configs
    )
    request = IncrementalAlterConfigsRequest(resources=[resource])
    kept = Resource(_KINDS[entity.kind], name or ALL_BROKERS)
    answer = session.change(
        "configs set" if values else "configs unset",
        lambda: configs_changed(session.admin, {kept: {**dict.fromkeys(removed), **values}}),
        lambda: session.run(
            session.admin.cluster.ask_any(request, IncrementalAlterConfigsResponse), "incrementalAlterConfigs"
        ),
        lambda answer: _outcomes(kept, [*removed, *values], answer),
        "incrementalAlterConfigs",
    )
    (row,) = answer.responses
    if row.error_code:
        raise of_code(row.error_code, row.error_message).within()
    if name:
        session.out(f"Completed updating config for {entity.kind[:-1]} {name}.\n")
    else:
        session.out(f"Completed updating default config for {entity.kind} in the cluster.\n")
    return Ended(0, 0)


def _outcomes(resource: Resource, names: Sequence[str], answer: IncrementalAlterConfigsResponse) -> list[Outcome]:
    (row,) = answer.responses
    error = BrokerError(row.error_code, str(resource), row.error_message) if row.error_code else None
    return [Outcome.of((CONFIG, *resource, name), error) for name in names]
