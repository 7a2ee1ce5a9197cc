"""Which version of a request a node and we both know, for those who talk over a connection of their own."""

from __future__ import annotations

from broker.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from broker.protocol.wire_types import Message
from kgctl.client.net.cluster import Ask, Cluster, Node
from kgctl.client.net.errors import Unsupported
from kgctl.client.net.steps import Steps


def highest_version(cluster: Cluster, node: Node, request: type[Message], max_version: int) -> Steps[int]:
    """The highest version up to `max_version` that both know; asks the node if it was never asked. Unsupported if none."""
    if cluster.range_of(node.endpoint, request.API_KEY) is None:
        question = ApiVersionsRequest(client_software_name="kgctl", client_software_version="0.1")
        yield from cluster.ask(Ask(node.endpoint, question, ApiVersionsResponse))
    version = cluster.highest_version(node.endpoint, request, max_version=max_version)
    if isinstance(version, Unsupported):
        raise version
    return version
