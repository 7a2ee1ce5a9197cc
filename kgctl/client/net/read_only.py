"""Which requests only read: on a read-only connection, no other request leaves this process."""

from __future__ import annotations

from broker.protocol.wire_types import Message
from kgctl.client.net.errors import KgctlError

_READS = (
    "ApiVersionsRequest",
    "FetchRequest",
    "FindCoordinatorRequest",
    "MetadataRequest",
    "OffsetFetchRequest",
    "OffsetForLeaderEpochRequest",
    "SaslAuthenticateRequest",
    "SaslHandshakeRequest",
)


class ReadOnly(KgctlError):
    """A change was refused here, and not by the cluster."""

    name = "READ_ONLY"


def check_reads(request: Message) -> None:
    """Raises ReadOnly. A request that is new here counts as a change, unless its name says otherwise."""
    name = type(request).__name__
    if name not in _READS and not name.startswith(("Describe", "List")) and not name.endswith("DescribeRequest"):
        raise ReadOnly(f"{name.removesuffix('Request')} is refused: the context is read-only")
