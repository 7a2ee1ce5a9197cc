"""How to connect, for other processes of the same run: over a pipe, in a private file, or in the bytes of a task.

Never in arguments, and never in Spark's configuration, which Spark shows and logs.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from broker.config.properties import format_properties
from broker.light_dataclasses import dataclass, field
from broker.secret_names import is_secret
from broker.security.secret import Secret
from kgctl.client.net.connector import DEFAULT_CLIENT_ID, ConnectionSettings
from kgctl.contexts.connecting import DEFAULT_TIMEOUT_S, connection_with
from kgctl.contexts.names import BOOTSTRAP, CLIENT_ID


@dataclass(frozen=True, slots=True)
class PortableSettings(ConnectionSettings):
    """Settings of a connection that a task takes along: their secrets are pickled too."""

    properties: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    def __reduce__(self) -> tuple[object, ...]:
        return portable, (dict(self.properties), self.client_id, self.timeout)


def portable(
    properties: Mapping[str, str | Secret], client_id: str = DEFAULT_CLIENT_ID, timeout: float = DEFAULT_TIMEOUT_S
) -> PortableSettings:
    """Settings from connection properties with Kafka's names, of which a client id counts more than `client_id`."""
    texts = revealed(properties)
    hidden = {name: Secret(text) if is_secret(name) else text for name, text in texts.items()}
    made = connection_with(hidden, client_id=client_id, timeout=timeout)
    values = {name: getattr(made, name) for name in ConnectionSettings.__dataclass_fields__}
    return PortableSettings(**values, properties=tuple(texts.items()))


def revealed(properties: Mapping[str, str | Secret]) -> dict[str, str]:
    """The properties as texts. For another process only: never print them."""
    return {name: value.reveal() if isinstance(value, Secret) else value for name, value in properties.items()}


def has_security(properties: Mapping[str, str | Secret]) -> bool:
    """Whether more than an address is needed to connect."""
    return bool(properties.keys() - {BOOTSTRAP, CLIENT_ID})


def secrets_in(properties: Mapping[str, str | Secret]) -> list[str]:
    return [name for name in properties if is_secret(name)]


def write_private(path: Path, properties: Mapping[str, str | Secret]) -> None:
    """A new client.properties that only this user can read. Raises FileExistsError."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with open(descriptor, "w", encoding="utf-8") as file:
        file.write(format_properties(revealed(properties)))
