"""The admin client: methods are the operations of `operations.py` and block until they have their results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self, overload

from kgctl.client.admin.operations import AdminOperations
from kgctl.client.admin.session import Session
from kgctl.client.net.connector import ConnectionSettings

if TYPE_CHECKING:
    from typing import Unpack

    from kgctl.client.config.admin import AdminOptions


class Admin(AdminOperations, Session):
    """A client of one cluster, for one thread. `default.api.timeout.ms` bounds each method, with all its requests.

    Methods raise a KgctlError when the whole request failed; a part that failed is a row with its error.
    """

    @overload
    def __init__(self, bootstrap_servers: ConnectionSettings) -> None: ...
    @overload
    def __init__(self, bootstrap_servers: str | Sequence[str], **options: Unpack[AdminOptions]) -> None: ...
    def __init__(self, bootstrap_servers: ConnectionSettings | str | Sequence[str], **options: Any) -> None:
        """`HOST:PORT`, several of them, or the settings of a connection. Options have Kafka's names, with underscores."""
        super().__init__(connection_of(bootstrap_servers, options))

    @classmethod
    def from_properties(cls, properties: Mapping[str, Any]) -> Self:
        """A client with options in Kafka's names, as in a properties file. It skips options of other clients."""
        from kgctl.client.config.configuration import from_properties

        return cls(from_properties("admin", properties).connection())


def connection_of(
    bootstrap_servers: ConnectionSettings | str | Sequence[str], options: Mapping[str, Any]
) -> ConnectionSettings:
    """The settings that the arguments of an admin client mean. Raises BadOption, BadAddress and BadSecurity."""
    if isinstance(bootstrap_servers, ConnectionSettings):
        return bootstrap_servers
    from kgctl.client.config.configuration import from_keywords

    return from_keywords("admin", {"bootstrap_servers": bootstrap_servers, **options}).connection()
