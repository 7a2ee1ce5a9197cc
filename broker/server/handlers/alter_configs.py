"""AlterConfigs and IncrementalAlterConfigs: change topic configs, and broker options that may change at run time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from broker.protocol.acls import Operation
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.alter_configs import AlterConfigsRequest, AlterConfigsResponse
from broker.protocol.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from broker.server.broker_layers import BrokerLayers
from broker.server.config_rows import DYNAMIC_OPTIONS
from broker.server.declaration import FEWER_ENTRIES, Declaration
from broker.server.guards import DENIALS, in_handler
from broker.server.handlers.config_access import BROKER, CLIENT_METRICS, GROUP, TOPIC, config_acls, config_denial
from broker.server.handlers.describe_configs import broker_name_error
from broker.server.own_configs import BadConfig, check_own_configs
from broker.server.topic_names import name_error
from broker.storage import TOPIC_CONFIGS

if TYPE_CHECKING:
    from broker.server.access import Access
    from broker.server.exchange import Exchange
    from broker.server.resources import Resources

SET, DELETE, APPEND, SUBTRACT = range(4)
_OWN = (GROUP, CLIENT_METRICS)
# Only brokers have defaults that apply to all.
DEFAULTS_REFUSED = {
    TOPIC: "Default topic resources are not allowed.",
    GROUP: "Default group resources are not allowed.",
    CLIENT_METRICS: "Subscription name can't be empty",
}
_TOPIC_CONFIG_OF = {config.synonym: config for config in TOPIC_CONFIGS.values()}


class _Refused(Exception):
    """Leave one resource unchanged; its row gets the code and the message."""

    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code = code


def alter_configs(request: AlterConfigsRequest, exchange: Exchange, resources: Resources) -> AlterConfigsResponse:
    """Set the named configs of each resource, and reset all others to their defaults."""
    times_named = Counter((row.resource_type, row.resource_name) for row in request.resources)
    access = resources.access(exchange.connection)
    responses = []
    for asked in request.resources:
        key = asked.resource_type, asked.resource_name
        code, message = ErrorCode.NONE, None
        try:
            _check_names((config.name for config in asked.configs), times_named[key])
            wanted = _given((config.name, config.value) for config in asked.configs)
            present = _present(*key, resources, access)
            changes = dict.fromkeys(present) | wanted
            _change(*key, changes, present, resources, access, only_check=request.validate_only)
        except _Refused as refused:
            code, message = refused.code, str(refused)
        responses.append(
            AlterConfigsResponse.Response(
                error_code=code, error_message=message, resource_type=key[0], resource_name=key[1]
            )
        )
    return AlterConfigsResponse(responses=responses)


def incremental_alter_configs(
    request: IncrementalAlterConfigsRequest, exchange: Exchange, resources: Resources
) -> IncrementalAlterConfigsResponse:
    times_named = Counter((row.resource_type, row.resource_name) for row in request.resources)
    access = resources.access(exchange.connection)
    responses = []
    for asked in request.resources:
        key = asked.resource_type, asked.resource_name
        code, message = ErrorCode.NONE, None
        try:
            _check_names((config.name for config in asked.configs), times_named[key])
            given = _given((row.name, row.value) for row in asked.configs if row.config_operation != DELETE)
            present = _present(*key, resources, access)
            changes = {row.name: _new_value(row, given.get(row.name), key[0], present) for row in asked.configs}
            _change(*key, changes, present, resources, access, only_check=request.validate_only)
        except _Refused as refused:
            code, message = refused.code, str(refused)
        responses.append(
            IncrementalAlterConfigsResponse.Response(
                error_code=code, error_message=message, resource_type=key[0], resource_name=key[1]
            )
        )
    return IncrementalAlterConfigsResponse(responses=responses)


def check_topic_configs(configs: Mapping[str, str]) -> str | None:
    """Why these are not valid configs of a topic; None if they are."""
    for name, value in configs.items():
        config = TOPIC_CONFIGS.get(name)
        if config is None:
            return f"Unknown topic config name: {name}"
        try:
            config.check(value)
        except ValueError as error:
            return str(error)
    shortest = int(configs.get("min.compaction.lag.ms", TOPIC_CONFIGS["min.compaction.lag.ms"].default))
    longest = int(configs.get("max.compaction.lag.ms", TOPIC_CONFIGS["max.compaction.lag.ms"].default))
    if shortest > longest:
        return f"min.compaction.lag.ms ({shortest}) is more than max.compaction.lag.ms ({longest})"
    return None


def _check_names(names: Iterable[str], times_named: int) -> None:
    if times_named > 1:
        raise _Refused(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
    if any(times > 1 for times in Counter(names).values()):
        raise _Refused(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")


def _check_access(access: Access, kind: int, name: str) -> None:
    code = config_denial(access, Operation.ALTER_CONFIGS, kind, name)
    if code is not None:
        raise _Refused(code, DENIALS[code])


def _present(kind: int, name: str, resources: Resources, access: Access) -> Mapping[str, str]:
    """The configs set on the resource itself. As in Kafka, changes of the broker are validated before they are authorized."""
    if kind != BROKER:
        _check_access(access, kind, name)
    if not name and kind in DEFAULTS_REFUSED:
        raise _Refused(ErrorCode.INVALID_REQUEST, DEFAULTS_REFUSED[kind])
    if kind == TOPIC:
        topic = resources.log.topics.get(name)
        if topic is not None:
            return topic.configs
        invalid = name_error(name)
        if invalid is not None:
            raise _Refused(ErrorCode.INVALID_TOPIC_EXCEPTION, invalid)
        raise _Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist.")
    if kind == BROKER:
        wrong = broker_name_error(name, resources)
        if wrong is not None:
            raise _Refused(ErrorCode.INVALID_REQUEST, wrong)
        return BrokerLayers(resources).of(name)
    if kind in _OWN:
        return resources.own_configs().of(kind, name)
    raise _Refused(ErrorCode.INVALID_REQUEST, f"Unknown resource type {kind}")


def _given(configs: Iterable[tuple[str, str | None]]) -> dict[str, str]:
    values = dict(configs)
    nulls = [name for name, value in values.items() if value is None]
    if nulls:
        raise _Refused(ErrorCode.INVALID_REQUEST, f"Null value not supported for : {', '.join(nulls)}")
    return {name: value for name, value in values.items() if value is not None}


def _new_value(
    config: IncrementalAlterConfigsRequest.Config, given: str | None, kind: int, present: Mapping[str, str]
) -> str | None:
    operation = config.config_operation
    if given is None or operation == SET:
        return given
    if operation not in (APPEND, SUBTRACT):
        raise _Refused(ErrorCode.INVALID_REQUEST, f"Unknown operations type {operation}")
    declared = TOPIC_CONFIGS.get(config.name) if kind == TOPIC else _TOPIC_CONFIG_OF.get(config.name)
    if declared is None or declared.type != "LIST" or kind in _OWN:
        name = "APPEND" if operation == APPEND else "SUBTRACT"
        raise _Refused(ErrorCode.INVALID_CONFIG, f"Can't {name} to key {config.name} because its type is not LIST.")
    old = present.get(config.name, declared.default)
    items = old.split(",") if old else []
    for item in given.split(","):
        if operation == APPEND and item not in items:
            items.append(item)
        elif operation == SUBTRACT and item in items:
            items.remove(item)
    return ",".join(items)


def _change(
    kind: int,
    name: str,
    changes: Mapping[str, str | None],
    present: Mapping[str, str],
    resources: Resources,
    access: Access,
    *,
    only_check: bool,
) -> None:
    wanted = {key: value for key, value in {**present, **changes}.items() if value is not None}
    if kind == TOPIC:
        problem = check_topic_configs(wanted)
    elif kind == BROKER:
        problem = _check_options(wanted)
    else:
        problem = None
        try:
            check_own_configs(kind, wanted, resources.config)
        except BadConfig as bad:
            raise _Refused(bad.code, str(bad)) from None
    if problem is not None:
        raise _Refused(ErrorCode.INVALID_CONFIG, problem)
    _check_access(access, kind, name)
    if only_check:
        return
    if kind == TOPIC:
        resources.log.alter_topic_configs(name, changes)
    elif kind == BROKER:
        BrokerLayers(resources).alter(name, changes)
    else:
        resources.own_configs().alter(kind, name, changes)


def _check_options(options: Mapping[str, str]) -> str | None:
    fixed = sorted(options.keys() - DYNAMIC_OPTIONS)
    if fixed:
        names = ", ".join(fixed)
        raise _Refused(ErrorCode.INVALID_REQUEST, f"Cannot update these configs dynamically: Set({names})")
    for name, value in options.items():
        try:
            _TOPIC_CONFIG_OF[name]._replace(name=name).check(value)
        except ValueError as error:
            # An unfortunate code that Kafka keeps for old clients (KAFKA-13609).
            raise _Refused(ErrorCode.INVALID_REQUEST, str(error)) from None
    return check_topic_configs({_TOPIC_CONFIG_OF[name].name: value for name, value in options.items()})


_GUARD = in_handler(*config_acls(Operation.ALTER_CONFIGS))
REQUESTS = (
    Declaration(AlterConfigsRequest, alter_configs, _GUARD, max_entries=FEWER_ENTRIES),
    Declaration(IncrementalAlterConfigsRequest, incremental_alter_configs, _GUARD, max_entries=FEWER_ENTRIES),
)
