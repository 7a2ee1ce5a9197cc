"""ConnectionLimits: how many connections there may be at once: in all, on one listener, and from one host."""

from __future__ import annotations

import resource
import sys
from typing import TYPE_CHECKING, cast

from broker.config.option import ConfigError
from broker.light_named_tuples import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from broker.config.config import BrokerConfig

# Files that connections may not take, besides the log's quarter: database, lock, logs, listening sockets, imports.
RESERVED_FILES = 64


class ConnectionLimits(NamedTuple):
    """`of_hosts` has numeric addresses; other hosts may have `per_host` connections."""

    most: int
    per_listener: Mapping[str, int]
    per_host: int
    of_hosts: Mapping[str, int]

    @classmethod
    def of(cls, config: BrokerConfig) -> ConnectionLimits:
        """Raises ConfigError if a host cannot be resolved."""
        per_listener = {
            address.name: cast(int, config.listener_value(address.name, "max.connections")) for address in config.listen
        }
        of_hosts = {
            address: count
            for host, count in config.connections_per_host
            for address in _addresses("max.connections.per.ip.overrides", host)
        }
        most = min(config.max_connections, _room_for_connections())
        return cls(most, per_listener, config.max_connections_per_ip, of_hosts)

    def of_host(self, host: str) -> int:
        return self.of_hosts.get(host, self.per_host)


def _addresses(option: str, host: str) -> list[str]:
    import socket

    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError as error:
        raise ConfigError(f"{option}: cannot resolve {host}: {error.strerror or error}") from None
    return [str(address[0]) for *_, address in found]


def _room_for_connections() -> int:
    """How many files connections may take; the log keeps a reserve, because it fails if it cannot open a file."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return sys.maxsize if limit == resource.RLIM_INFINITY else max(limit - limit // 4 - RESERVED_FILES, limit // 4)
