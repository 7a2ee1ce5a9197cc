"""What a NetworkClient asks its engine to do. A link is one connection, by number; numbers are never used twice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from broker.light_named_tuples import NamedTuple
from kgctl.client.net.steps import Endpoint


class Connect(NamedTuple):
    """Open a connection within `timeout_ms`, then call `connected` or `lost`."""

    link: int
    endpoint: Endpoint
    timeout_ms: int


class Write(NamedTuple):
    """Send the buffers of one request. `is_unanswered`: call `written` once they are with the operating system."""

    link: int
    buffers: Sequence[bytes | memoryview]
    is_unanswered: bool = False


class Close(NamedTuple):
    """Close a connection, or stop opening it. The network expects no further event of this link, and ignores any."""

    link: int


Command: TypeAlias = Connect | Write | Close
