"""ListConfigResources: the resources that have configs. Groups and client metrics have some only once they are set."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.protocol.acls import Operation
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.list_config_resources import ListConfigResourcesRequest, ListConfigResourcesResponse
from broker.server.declaration import Declaration
from broker.server.guards import on_cluster
from broker.server.handlers.config_access import BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP, TOPIC

if TYPE_CHECKING:
    from collections.abc import Iterable

    from broker.server.exchange import Exchange
    from broker.server.resources import Resources

TYPES = (TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP)
TYPES_SINCE = 1


def list_config_resources(
    request: ListConfigResourcesRequest, exchange: Exchange, resources: Resources
) -> ListConfigResourcesResponse:
    if exchange.version < TYPES_SINCE:
        types = [CLIENT_METRICS]
    else:
        types = list(dict.fromkeys(request.resource_types)) or [*TYPES]
    if not set(types) <= set(TYPES):
        return _refuse(request, ErrorCode.UNSUPPORTED_VERSION)
    rows = [
        ListConfigResourcesResponse.ConfigResource(resource_name=name, resource_type=kind)
        for kind in types
        for name in _names(kind, resources)
    ]
    return ListConfigResourcesResponse(config_resources=rows)


def _names(kind: int, resources: Resources) -> Iterable[str]:
    if kind == TOPIC:
        return resources.log.topics
    return [str(resources.node_id)] if kind in (BROKER, BROKER_LOGGER) else resources.own_configs().names(kind)


def _refuse(request: ListConfigResourcesRequest, code: ErrorCode) -> ListConfigResourcesResponse:
    return ListConfigResourcesResponse(error_code=code, config_resources=[])


REQUESTS = (
    Declaration(ListConfigResourcesRequest, list_config_resources, on_cluster(Operation.DESCRIBE_CONFIGS, _refuse)),
)
