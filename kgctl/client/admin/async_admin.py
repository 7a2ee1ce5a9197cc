"""The admin client for asyncio: the same operations, awaited."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar, overload

from kgctl.client.admin.admin import connection_of
from kgctl.client.admin.operation import Awaiting
from kgctl.client.admin.operations import AdminOperations
from kgctl.client.engine.steps_driver import StepsDriver
from kgctl.client.net.cluster import Cluster
from kgctl.client.net.connector import ConnectionSettings
from kgctl.client.net.lifetime import WrongProcess, warn_unclosed, watch
from kgctl.client.net.steps import Steps
from kgctl.client.network.settings import NetworkSettings

if TYPE_CHECKING:
    from typing import Unpack

    from kgctl.client.config.admin import AdminOptions

T = TypeVar("T")


class AsyncAdmin(AdminOperations, Awaiting):
    """A client of one cluster, for one asyncio loop. Use it in an `async with`, or `close` it.

    Its methods are those of `Admin`, as coroutines; several may run at a time.
    """

    @overload
    def __init__(self, bootstrap_servers: ConnectionSettings) -> None: ...
    @overload
    def __init__(self, bootstrap_servers: str | Sequence[str], **options: Unpack[AdminOptions]) -> None: ...
    def __init__(self, bootstrap_servers: ConnectionSettings | str | Sequence[str], **options: Any) -> None:
        """`HOST:PORT`, several of them, or the settings of a connection. Options have Kafka's names, with underscores."""
        self._connection = connection_of(bootstrap_servers, options)
        self.cluster = Cluster(self._connection.bootstrap)
        self.seconds = self._connection.timeout
        self._driver: StepsDriver | None = None
        self._foreign: WrongProcess | None = None
        watch(self, AsyncAdmin._forked)

    @classmethod
    def from_properties(cls, properties: Mapping[str, Any]) -> Self:
        """A client with options in Kafka's names, as in a properties file. It skips options of other clients."""
        from kgctl.client.config.configuration import from_properties

        return cls(from_properties("admin", properties).connection())

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections. The next method opens new ones."""
        driver, self._driver = self._driver, None
        if driver is not None and self._foreign is None:
            driver.close()

    def __del__(self) -> None:
        driver: StepsDriver | None = getattr(self, "_driver", None)
        if driver is not None and driver.engine.is_open:
            warn_unclosed(self, self._connection.client_id)
            driver.engine.abandon()

    def _forked(self, error: WrongProcess) -> None:
        """This is a copy in a forked process."""
        self._foreign = error
        if self._driver is not None:
            self._driver.engine.forked(error)

    async def run(self, steps: Steps[T], seconds: float | None = None) -> T:
        if self._foreign is not None:
            raise self._foreign.with_traceback(None)
        if self._driver is None:
            connection = self._connection
            settings = NetworkSettings(client_id=connection.client_id, read_only=connection.read_only)
            # Half of the time per request: a node that hangs leaves time to ask another one.
            self._driver = StepsDriver(connection, settings, self.seconds / 2)
        return await self._driver.run(steps, self.seconds if seconds is None else seconds)
