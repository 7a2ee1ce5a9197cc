"""Listener addresses: parse and check `listeners`, `advertised.listeners` and `listener.security.protocol.map`."""

from __future__ import annotations

from collections.abc import Mapping

from broker.config.option import ConfigError
from broker.light_dataclasses import dataclass
from broker.light_named_tuples import NamedTuple

EVERY_INTERFACE = ("", "0.0.0.0", "::")
SECURITY_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")


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

    @property
    def uses_tls(self) -> bool:
        return self.security_protocol.endswith("SSL")

    @property
    def uses_sasl(self) -> bool:
        return self.security_protocol.startswith("SASL")


class ListenerNames(NamedTuple):
    """What listener names mean: the security protocol of each, and the names that belong to a controller."""

    protocols: Mapping[str, str]
    controllers: frozenset[str]

    @classmethod
    def parse(cls, protocol_map: tuple[str, ...], controllers: tuple[str, ...]) -> ListenerNames:
        """From the values of `listener.security.protocol.map` and `controller.listener.names`. As in Kafka, the case of
        names does not matter."""
        protocols = {}
        for entry in protocol_map:
            name, separator, protocol = entry.upper().rpartition(":")
            if not separator or protocol.strip() not in SECURITY_PROTOCOLS:
                raise ConfigError(
                    f"listener.security.protocol.map={','.join(protocol_map)}: {entry!r} is not NAME:PROTOCOL with one of "
                    f"{', '.join(SECURITY_PROTOCOLS)}"
                )
            protocols[name.strip()] = protocol.strip()
        return cls(protocols, frozenset(name.upper() for name in controllers))


def parse_listen_addresses(text: str, names: ListenerNames) -> list[NamedAddress]:
    """The entries of the option `listeners`, except those of controllers: at least one."""
    found = _parse_listeners("listeners", text, names)
    if not found:
        raise ConfigError(f"listeners={text}: give at least one listener")
    ports: dict[int, NamedAddress] = {}
    for address in found:
        port = address.endpoint.port
        other = ports.setdefault(port, address) if port else address
        # Kafka allows one IPv4 and one IPv6 address with the same port.
        if other is not address and (":" in other.endpoint.host) == (":" in address.endpoint.host):
            raise ConfigError(
                f"listeners={text}: {other.name} and {address.name} have the same port; give each its own"
            )
    return found


def parse_advertised_addresses(text: str, names: ListenerNames) -> list[NamedAddress]:
    """The entries of the option `advertised.listeners`, except those of controllers."""
    found = _parse_listeners("advertised.listeners", text, names)
    if not found or any(address.endpoint.host in EVERY_INTERFACE for address in found):
        raise ConfigError(f"advertised.listeners={text}: give addresses that clients can reach")
    return found


def _parse_listeners(option: str, text: str, names: ListenerNames) -> list[NamedAddress]:
    found: dict[str, NamedAddress] = {}
    for entry in filter(None, (part.strip() for part in text.split(","))):
        given, separator, address = entry.partition("://")
        if not separator:
            raise ConfigError(f"{option}={text}: {entry!r} is not NAME://HOST:PORT")
        name = given.upper()
        if name in names.controllers:
            continue
        protocol = names.protocols.get(name)
        if protocol is None:
            raise ConfigError(f"{option}={text}: listener.security.protocol.map has no protocol for {name}")
        if name in found:
            raise ConfigError(f"{option}={text}: two listeners have the name {name}")
        found[name] = NamedAddress(name, protocol, parse_endpoint(option, address))
    return list(found.values())


def parse_endpoint(option: str, text: str) -> Endpoint:
    """HOST:PORT as given to `option`. Raises ConfigError."""
    host, separator, port = text.strip().rpartition(":")
    bare = host[1:-1] if host[:1] == "[" and host[-1:] == "]" else host
    if not separator or not (port.isascii() and port.isdigit()) or int(port) > 65535 or (":" in host and bare == host):
        raise ConfigError(f"{option} {text}: not HOST:PORT (put an IPv6 host in brackets; a port is at most 65535)")
    return Endpoint(bare, int(port))


def parse_host_counts(option: str, text: str) -> list[tuple[str, int]]:
    """host:number pairs, separated by commas. Raises ConfigError."""
    found = []
    for entry in filter(None, (part.strip() for part in text.split(","))):
        host, _, count = entry.rpartition(":")
        if not host or not (count.isascii() and count.isdigit()):
            raise ConfigError(f"{option}={text}: {entry!r} is not HOST:NUMBER")
        found.append((host[1:-1] if host[:1] == "[" else host, int(count)))
    return found
