"""What all parts of the blocking admin client share: its connections, and how it runs steps."""

from __future__ import annotations

from types import TracebackType
from typing import Self, TypeVar

from kgctl.client.admin.operation import Blocking
from kgctl.client.net.connector import ConnectionSettings, Connector
from kgctl.client.net.lifetime import WrongProcess, warn_unclosed, watch
from kgctl.client.net.steps import Steps

T = TypeVar("T")


class Session(Blocking):
    """Connections to one cluster, for one thread."""

    def __init__(self, connection: ConnectionSettings) -> None:
        self._connector = Connector(connection)
        self.cluster = self._connector.cluster
        self.seconds = connection.timeout
        self._foreign: WrongProcess | None = None
        watch(self, Session._forked)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        connector: Connector | None = getattr(self, "_connector", None)
        if connector is not None and connector.is_connected and self._foreign is None:
            warn_unclosed(self, connector.settings.client_id)
            connector.close()

    def _forked(self, error: WrongProcess) -> None:
        """This is a copy in a forked process, where requests would get mixed up with those of the parent."""
        self._foreign = error

    def close(self) -> None:
        self._connector.close()

    def stop_at(self, deadline: float) -> None:
        """Let nothing continue after this reading of time.monotonic(), whatever time limits the settings have."""
        self._connector.deadline = deadline

    def run(self, steps: Steps[T], seconds: float | None = None) -> T:
        """Carry out the steps within this time, by default that of the settings."""
        if self._foreign is not None:
            raise self._foreign.with_traceback(None)
        return self._connector.run(steps, seconds)
