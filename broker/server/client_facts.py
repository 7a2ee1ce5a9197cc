"""What the broker knows about the client of one connection: its software, its traffic, and the groups and transactions it uses."""

from __future__ import annotations

import time

# How many groups, and how many transactional ids, are remembered of one connection, and how much of any name.
MOST_NAMES = 8
LONGEST_NAME = 249
NO_KEY = -1


class ClientFacts:
    """Facts of one connection. `number` counts the connections since the start; 0 means that it was not admitted.

    The client says what its software is (KIP-511), what its id is in each request, and what its instance is in requests about
    telemetry (KIP-714).
    """

    __slots__ = (
        "bytes_in",
        "bytes_out",
        "client_id",
        "groups",
        "instance_id",
        "last_key",
        "number",
        "port",
        "requests",
        "since_ms",
        "software_name",
        "software_version",
        "transactional_ids",
    )

    def __init__(self) -> None:
        self.number = 0
        self.port = 0
        self.since_ms = time.time_ns() // 1_000_000
        self.software_name = self.software_version = ""
        self.client_id: str | None = None
        self.instance_id: bytes | None = None
        self.last_key = NO_KEY
        self.requests = self.bytes_in = self.bytes_out = 0
        self.groups: tuple[str, ...] = ()
        self.transactional_ids: tuple[str, ...] = ()

    def name(self, client_id: str | None) -> None:
        """The client has another id than before."""
        self.client_id = client_id and client_id[:LONGEST_NAME]

    def run(self, software_name: str, software_version: str) -> None:
        """The client says what its software is."""
        self.software_name, self.software_version = software_name[:LONGEST_NAME], software_version[:LONGEST_NAME]

    def use_group(self, name: str) -> None:
        """The client is a member of the group, or commits offsets for it."""
        if name not in self.groups:
            self.groups = _with(self.groups, name)

    def leave_group(self, name: str) -> None:
        if name in self.groups:
            self.groups = tuple(each for each in self.groups if each != name)

    def use_transactional_id(self, name: str) -> None:
        if name not in self.transactional_ids:
            self.transactional_ids = _with(self.transactional_ids, name)


def _with(names: tuple[str, ...], name: str) -> tuple[str, ...]:
    """The names used last; one that no group should have is left out."""
    return (*names[1 - MOST_NAMES :], name) if 0 < len(name) <= LONGEST_NAME else names
