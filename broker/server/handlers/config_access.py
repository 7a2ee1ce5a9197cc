"""Who may see or change the configs of a resource."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.protocol.acls import CLUSTER_NAME, Operation, ResourceType
from broker.protocol.errors import ErrorCode
from broker.server.guards import Acl

if TYPE_CHECKING:
    from broker.server.access import Access

# KIP-133: the types of resources in requests about configs.
TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32

_PROTECTED_BY = {
    TOPIC: (ResourceType.TOPIC, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
    GROUP: (ResourceType.GROUP, ErrorCode.GROUP_AUTHORIZATION_FAILED),
    **dict.fromkeys(
        (BROKER, BROKER_LOGGER, CLIENT_METRICS), (ResourceType.CLUSTER, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    ),
}


def config_denial(access: Access, operation: Operation, kind: int, name: str) -> ErrorCode | None:
    """The error of a client that may not do this to the configs of a resource. Unknown types are for the handler to refuse."""
    protected = _PROTECTED_BY.get(kind)
    if protected is None:
        return None
    resource, error = protected
    allowed = access.allows(operation, resource, CLUSTER_NAME if resource is ResourceType.CLUSTER else name)
    return None if allowed else error


def config_acls(operation: Operation) -> tuple[Acl, ...]:
    return tuple(Acl(operation, kind) for kind in (ResourceType.TOPIC, ResourceType.CLUSTER, ResourceType.GROUP))
