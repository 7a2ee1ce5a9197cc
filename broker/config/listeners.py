"""Listener addresses: parse and check `listeners` and `advertised.listeners`. One PLAINTEXT listener is served."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from broker.config.options import ConfigError

EVERY_INTERFACE = ("", "0.0.0.0", "::")


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A host and a port. An empty host means every interface; port 0 lets the system choose."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def is_loopback(self) -> bool:
        import socket

        # Numeric addresses first: a name lookup loads Python's IDNA tables.
        if self.host in ("localhost", "::1"):
            return True
        if self.host.startswith("127."):
            try:
                socket.inet_pton(socket.AF_INET, self.host)
            except OSError:
                pass
            else:
                return True

        try:
            found = socket.getaddrinfo(self.host or None, self.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        except OSError:
            return False
        return all(str(address[0]).startswith("127.") or address[0] == "::1" for *_, address in found)


class NamedAddress(NamedTuple):
    """One entry of `listeners` or `advertised.listeners`."""

    name: str
    security_protocol: str
    endpoint: Endpoint


class ListenerNames(NamedTuple):
    """What listener names mean: the security protocol of each, and the names that belong to a controller."""

    protocols: Mapping[str, str]
    controllers: tuple[str, ...]

    @classmethod
    def parse(cls, protocol_map: tuple[str, ...], controllers: tuple[str, ...]) -> ListenerNames:
        """From the values of `listener.security.protocol.map` and `controller.listener.names`."""
        return cls(dict(entry.rsplit(":", 1) for entry in protocol_map if ":" in entry), controllers)


def parse_listen_address(text: str, names: ListenerNames) -> NamedAddress:
    """The single entry of the option `listeners`, ignoring those of controllers."""
    found = _parse_listeners("listeners", text, names)
    if len(found) != 1:
        raise ConfigError(f"listeners={text}: give exactly one PLAINTEXT listener")
    return found[0]


def parse_advertised_address(text: str, names: ListenerNames) -> NamedAddress:
    """The single entry of the option `advertised.listeners`, ignoring those of controllers."""
    found = _parse_listeners("advertised.listeners", text, names)
    if len(found) != 1 or found[0].endpoint.host in EVERY_INTERFACE:
        raise ConfigError(f"advertised.listeners={text}: give exactly one address that clients can reach")
    return found[0]


def _parse_listeners(option: str, text: str, names: ListenerNames) -> list[NamedAddress]:
    found = []
    for entry in filter(None, (part.strip() for part in text.split(","))):
        name, separator, address = entry.partition("://")
        if not separator:
            raise ConfigError(f"{option}={text}: {entry!r} is not NAME://HOST:PORT")
        if name in names.controllers:
            continue
        protocol = names.protocols.get(name)
        if protocol is None:
            raise ConfigError(f"{option}={text}: listener.security.protocol.map has no protocol for {name}")
        if protocol != "PLAINTEXT":
            raise ConfigError(f"{option}={text}: the protocol of {name} is {protocol}; only PLAINTEXT is supported")
        found.append(NamedAddress(name, protocol, parse_endpoint(option, address)))
    return found


def parse_endpoint(option: str, text: str) -> Endpoint:
    """HOST:PORT as given to `option`. Raises ConfigError."""
    host, separator, port = text.strip().rpartition(":")
    bare = host[1:-1] if host[:1] == "[" and host[-1:] == "]" else host
    if not separator or not (port.isascii() and port.isdigit()) or int(port) > 65535 or (":" in host and bare == host):
        raise ConfigError(f"{option} {text}: not HOST:PORT (put an IPv6 host in brackets; a port is at most 65535)")
    return Endpoint(bare, int(port))
