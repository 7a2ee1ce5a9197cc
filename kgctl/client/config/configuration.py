"""The options of one client, read from keyword arguments or from properties."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from kgctl.client.config import every_client
from kgctl.client.config.option import BadOption, Option
from kgctl.client.net.connector import ConnectionSettings
from kgctl.client.net.opening import SocketBuffers
from kgctl.client.net.security import PLAINTEXT, Security
from kgctl.client.network.settings import NetworkSettings

if TYPE_CHECKING:
    from broker.security.secret import Secret

Client: TypeAlias = Literal["admin", "consumer", "producer"]
CLIENTS: tuple[Client, ...] = ("admin", "consumer", "producer")
_SECURITY = ("ssl.", "sasl.", "security.protocol", "enable.ssl.")
_NETWORK = (
    "request.timeout.ms",
    "reconnect.backoff.ms",
    "reconnect.backoff.max.ms",
    "retry.backoff.ms",
    "retry.backoff.max.ms",
    "socket.connection.setup.timeout.ms",
    "socket.connection.setup.timeout.max.ms",
    "metadata.max.age.ms",
    "metadata.recovery.strategy",
    "metadata.recovery.rebootstrap.trigger.ms",
)
_NEVER_MS = 1 << 60


class Configuration:
    """`configuration["linger.ms"]` is the value of an option or its default, in the type of the option."""

    def __init__(self, client: Client, values: Mapping[str, Any], security: Mapping[str, str | Secret]) -> None:
        self.client = client
        self._declared = options_of(client)
        self._values, self._security = values, security

    def __getitem__(self, name: str) -> Any:
        return self._values[name] if name in self._values else self._declared[name].default

    def is_given(self, name: str) -> bool:
        """Whether the user has set an option, whatever to."""
        return name in self._values

    def connection(self, client_id: str = "kgctl") -> ConnectionSettings:
        """How to reach the cluster. Raises BadOption, BadAddress and BadSecurity. `client_id` counts if none is given."""
        from kgctl.client.net.bootstrap import parse

        servers = ",".join(self["bootstrap.servers"])
        if not servers:
            raise BadOption("bootstrap.servers: it is missing; give the address of a broker, HOST:PORT")
        timeout_ms = self["default.api.timeout.ms"] if "default.api.timeout.ms" in self._declared else 60_000
        return ConnectionSettings(
            parse(servers),
            self["client.id"] or client_id,
            timeout_ms / 1000,
            security=self._read_security(),
            buffers=SocketBuffers(self["send.buffer.bytes"], self["receive.buffer.bytes"]),
        )

    def network(self, client_id: str = "kgctl", **others: Any) -> NetworkSettings:
        """The settings of the client's network. `others` come first."""
        found = {name.replace(".", "_"): self[name] for name in _NETWORK}
        idle = self["connections.max.idle.ms"]
        found["connections_max_idle_ms"] = idle if idle >= 0 else _NEVER_MS
        for name in ("metadata.max.idle.ms", "max.in.flight.requests.per.connection", "allow.auto.create.topics"):
            if name in self._declared:
                found[name.replace(".", "_")] = self[name]
        return NetworkSettings(**{"client_id": self["client.id"] or client_id, **found, **others})

    def _read_security(self) -> Security:
        if not self._security:
            return PLAINTEXT
        from kgctl.client.net.client_properties import security_from

        return security_from(self._security)


def from_keywords(client: Client, given: Mapping[str, Any]) -> Configuration:
    """Options as keyword arguments. Raises BadOption for an unknown name, with the nearest one, and for a bad value."""
    return _read(
        client, {name.replace("_", "."): value for name, value in given.items()}, lambda name: name.replace(".", "_")
    )


def from_properties(client: Client, given: Mapping[str, Any]) -> Configuration:
    """Options by Kafka's names, as in a properties file that several clients may share: options of others are skipped."""
    others = {name for other in CLIENTS for name in options_of(other)} - options_of(client).keys()
    return _read(client, {name: value for name, value in given.items() if name not in others}, lambda name: name)


def options_of(client: Client) -> dict[str, Option]:
    """All options of a client by name. Its own declaration of an option comes before the common one."""
    from importlib import import_module

    module = import_module(f"kgctl.client.config.{client}")
    rows = (*every_client.OPTIONS, *every_client.IGNORED, *module.OPTIONS, *module.IGNORED)
    return {option.name: option for option in rows}


def _read(client: Client, given: Mapping[str, Any], spell: Callable[[str], str]) -> Configuration:
    declared = options_of(client)
    values: dict[str, Any] = {}
    security: dict[str, str | Secret] = {}
    for name, value in given.items():
        option = declared.get(name)
        if option is not None:
            if not option.is_ignored:
                values[name] = option.read(value)
        elif name.startswith(_SECURITY):
            if value is not None:
                security[name] = _text(value)
        else:
            raise _unknown(name, declared, spell)
    return Configuration(client, values, security)


def _text(value: Any) -> str | Secret:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int | float) else value


def _unknown(name: str, declared: Mapping[str, Option], spell: Callable[[str], str]) -> BadOption:
    from difflib import get_close_matches

    from kgctl.client.net.client_properties import KNOWN_NAMES

    close = get_close_matches(name, [*declared, *KNOWN_NAMES], 1)
    return BadOption(f"{spell(name)}: unknown option" + (f"; did you mean {spell(close[0])}?" if close else ""))
