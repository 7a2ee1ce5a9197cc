"""The only place that opens connections: how to reach a cluster, and what a client shares while it talks to one."""

from __future__ import annotations

import time
from types import TracebackType
from typing import TYPE_CHECKING, TypeVar

from broker.light_dataclasses import dataclass, field
from kgctl.client.net.cluster import Cluster
from kgctl.client.net.connection import Connection
from kgctl.client.net.driver import BlockingDriver
from kgctl.client.net.opening import BY_SYSTEM, Locks, Opening, SocketBuffers
from kgctl.client.net.security import PLAINTEXT, Security
from kgctl.client.net.steps import Endpoint, Steps

if TYPE_CHECKING:
    from kgctl.client.net.tracing import Trace

T = TypeVar("T")

DEFAULT_CLIENT_ID = "kgctl"


@dataclass(frozen=True, slots=True)
class ConnectionSettings:
    """How to reach a cluster. `timeout` bounds one operation, in seconds; an operation may need several requests.

    `read_only`: requests that change something are not sent. `trace` is called for each connection and each request.
    """

    bootstrap: tuple[Endpoint, ...]
    client_id: str = DEFAULT_CLIENT_ID
    timeout: float = 30.0
    security: Security = PLAINTEXT
    read_only: bool = False
    trace: Trace | None = field(default=None, repr=False, compare=False)
    buffers: SocketBuffers = BY_SYSTEM


class Connector:
    """Runs steps over shared connections, and opens connections.

    For one thread. Close it, or use it in a `with`.
    """

    def __init__(self, settings: ConnectionSettings) -> None:
        self.settings = settings
        self.cluster = Cluster(settings.bootstrap)
        # A reading of time.monotonic() after which no operation continues, whatever its own time limit is.
        self.deadline: float | None = None
        self._locks = Locks(settings.security)
        # Half of the time per request: a node that hangs leaves time to ask another one, or to report the others' answers.
        self._driver = BlockingDriver(self.connect, request_timeout=settings.timeout / 2)

    def __enter__(self) -> Connector:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def run(self, steps: Steps[T], timeout: float | None = None) -> T:
        """Carry out the steps within `timeout` seconds, by default the operation timeout of the settings."""
        limit = self.settings.timeout if timeout is None else timeout
        if self.deadline is not None:
            limit = max(0.0, min(limit, self.deadline - time.monotonic()))
        return self._driver.run(steps, limit)

    def connect(self, endpoint: Endpoint, deadline: float) -> Connection:
        """A new connection, secured as the settings say. Deadlines are readings of time.monotonic()."""
        connection = self.opening(endpoint, deadline).run()
        connection.is_read_only = self.settings.read_only
        return connection

    def opening(self, endpoint: Endpoint, deadline: float) -> Opening:
        """A new connection, to be opened step by step."""
        settings = self.settings
        return Opening(endpoint, self._locks, settings.client_id, deadline, settings.trace, settings.buffers)

    @property
    def is_connected(self) -> bool:
        """Whether shared connections are open."""
        return self._driver.is_connected

    def close(self) -> None:
        """Close the shared connections. The connector stays usable: the next steps open new ones."""
        self._driver.close()
