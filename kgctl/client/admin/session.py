"""What all parts of the blocking admin client share: its connections, and how it runs steps."""

from __future__ import annotations

from types import TracebackType
from typing import Self, TypeVar

from kgctl.client.admin.operation import Blocking
from kgctl.client.net.connector import ConnectionSettings, Connector
from kgctl.client.net.steps import Steps

T = TypeVar("T")


class Session(Blocking):
    """Connections to one cluster, for one thread."""

    def __init__(self, connection: ConnectionSettings) -> None:
        self._connector = Connector(connection)
        self.cluster = self._connector.cluster
        self.seconds = connection.timeout

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._connector.close()

    def stop_at(self, deadline: float) -> None:
        """Let nothing continue after this reading of time.monotonic(), whatever time limits the settings have."""
        self._connector.deadline = deadline

    def run(self, steps: Steps[T], seconds: float | None = None) -> T:
        """Carry out the steps within this time, by default that of the settings."""
        return self._connector.run(steps, seconds)
