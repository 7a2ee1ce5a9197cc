"""The operations that a client is authorized for, as the bit fields of KIP-430: all of them, because there are no ACLs."""

from __future__ import annotations

from broker.protocol.acls import ResourceType
from broker.server.access import UNRESTRICTED

NOT_ASKED = -(2**31)
TOPIC_OPERATIONS = UNRESTRICTED.operations_of(ResourceType.TOPIC, "")
CLUSTER_OPERATIONS = UNRESTRICTED.operations_of(ResourceType.CLUSTER, "")
