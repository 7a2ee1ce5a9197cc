"""The operations that a client is authorized for, as the bit fields of KIP-430."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.protocol.acls import CLUSTER_NAME, Operation, ResourceType

if TYPE_CHECKING:
    from broker.server.access import Access

NOT_ASKED = -(2**31)


def topic_operations(access: Access, name: str) -> int:
    return access.operations_of(ResourceType.TOPIC, name)


def cluster_operations(access: Access, *, is_asked: bool) -> int:
    if not is_asked:
        return NOT_ASKED
    if not access.allows_on_cluster(Operation.DESCRIBE):
        return 0
    return access.operations_of(ResourceType.CLUSTER, CLUSTER_NAME)
