"""Which version of a request a node and this client have in common."""

from __future__ import annotations

from broker.protocol.errors import ErrorCode
from broker.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from broker.protocol.wire_types import Message
from kgctl.client.net.errors import BrokerError, KgctlError, Unsupported
from kgctl.client.net.steps import Endpoint
from kgctl.client.network.nodes import Peer

NEWEST = ApiVersionsRequest.VERSIONS[-1]


def common_version(
    peer: Peer, request: type[Message], min_version: int = 0, max_version: int = 1 << 15
) -> int | Unsupported | None:
    """The highest version within the bounds that both sides know; None if the node has not been asked yet."""
    if peer.ranges is None:
        return None
    ours = request.VERSIONS
    low, high = peer.ranges.get(request.API_KEY) or (1, 0)
    version = min(high, ours[-1], max_version)
    if version < max(low, ours[0], min_version):
        name = request.__name__.removesuffix("Request")
        return Unsupported(f"{peer.node.endpoint}: the broker does not offer {name} in a suitable version")
    return version


def read_versions(peer: Peer, answer: ApiVersionsResponse, version: int) -> int | KgctlError | None:
    """Remember what a node offers; None. Or the version in which to ask again (KIP-511), or an error."""
    ranges = {row.api_key: (row.min_version, row.max_version) for row in answer.api_keys}
    if answer.error_code == ErrorCode.UNSUPPORTED_VERSION and version:
        low, high = ranges.get(ApiVersionsRequest.API_KEY, (0, 0))
        return min(high, NEWEST) if low <= min(high, NEWEST) < version else 0
    if answer.error_code:
        return BrokerError(answer.error_code, str(peer.node.endpoint))
    peer.ranges = ranges
    peer.features = {row.name: row.max_version_level for row in answer.finalized_features}
    return None


def silent(endpoint: Endpoint) -> str:
    return f"{endpoint}: it accepts connections but does not answer: it hangs, needs TLS, or is not Kafka"
