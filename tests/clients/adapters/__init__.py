"""One interface for three independent Kafka clients, so that each scenario is written once."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
CLIENTS = {"confluent-kafka": "librdkafka", "kafka-python": "kafka_python", "aiokafka": "aiokafka_client"}
# kgctl's own client is only a member of groups here.
MEMBERS = {**CLIENTS, "kgctl": "own"}

Headers = tuple[tuple[str, bytes], ...]
OwnershipChange = Callable[[str, list[int]], None]
"""Called with "assigned" or "revoked" and the affected partitions."""


@dataclass(frozen=True)
class Record:
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: Headers
    timestamp_ms: int


@dataclass(frozen=True)
class Place:
    """The position of an acknowledged record."""

    partition: int
    offset: int


@dataclass(frozen=True)
class Membership:
    """How a consumer joins a group."""

    group: str
    topic: str
    client_id: str = "scenario"
    assignor: str = "range"
    session_timeout_ms: int = 6000
    instance: str | None = None
    protocol: str = "classic"  # or "consumer" (KIP-848), of which the broker decides assignor and session timeout
    isolation: str | None = None  # None: the default of the client
    on_change: OwnershipChange = field(default=lambda kind, partitions: None)


@dataclass(frozen=True)
class Credentials:
    """What a client needs for a listener. Without a mechanism it has no SASL, without `ca_file` no TLS."""

    protocol: str
    mechanism: str = ""
    user: str = ""
    password: str = ""
    token: str = ""
    ca_file: Path | None = None
    certificate: Path | None = None
    key: Path | None = None


Options = Mapping[str, Any]
"""Options under the names of the client."""
NO_OPTIONS: Options = {}


@dataclass(frozen=True)
class GroupView:
    """A group as an admin client describes it, with Kafka's names of states."""

    state: str
    protocol: str
    client_ids: list[str]


class Producer(Protocol):
    """Idempotent, acks=all."""

    def send(
        self,
        topic: str,
        value: bytes | None,
        *,
        key: bytes | None = None,
        partition: int | None = None,
        headers: Headers = (),
        timestamp_ms: int | None = None,
    ) -> Future[Place]: ...

    def flush(self, timeout_s: float) -> None: ...

    def close(self) -> None: ...


class TransactionalProducer(Protocol):
    """Has its producer id: `transactional_producer` waits for it."""

    def begin(self) -> None: ...

    def send(self, topic: str, value: bytes, *, partition: int) -> Future[Place]: ...

    def flush(self, timeout_s: float) -> None: ...

    def send_offsets(self, consumer: Consumer, topic: str, next_offsets: Mapping[int, int]) -> None:
        """Make the offsets of a consumer of the same client part of the transaction."""
        ...

    def commit(self) -> None: ...

    def abort(self) -> None: ...

    def close(self) -> None: ...


class Consumer(Protocol):
    """Does not commit automatically."""

    def poll(self, timeout_s: float) -> list[Record]: ...

    def commit(self, topic: str, next_offsets: Mapping[int, int]) -> None: ...

    def committed(self, topic: str, partition: int) -> int | None: ...

    def close(self) -> None: ...


class Admin(Protocol):
    """A client that lacks a call does not list it in `CAN`."""

    def create_topic(self, topic: str, partitions: int) -> None: ...

    def list_topics(self) -> set[str]: ...

    def list_groups(self) -> set[str]: ...

    def describe_group(self, group: str) -> GroupView: ...

    def group_offsets(self, group: str, topic: str) -> dict[int, int]: ...

    def alter_group_offsets(self, group: str, topic: str, next_offsets: Mapping[int, int]) -> None: ...

    def delete_group(self, group: str) -> None: ...

    def close(self) -> None: ...


class Client(Protocol):
    """The interface of each adapter module."""

    CAN: frozenset[str]
    ASSIGNORS: tuple[str, ...]

    def producer(self, bootstrap: str, codec: str = "none", options: Options = NO_OPTIONS) -> Producer: ...

    def member(self, bootstrap: str, membership: Membership, options: Options = NO_OPTIONS) -> Consumer: ...

    def transactional_producer(
        self, bootstrap: str, transactional_id: str, *, timeout_ms: int = 60_000
    ) -> TransactionalProducer: ...

    def reader(
        self, bootstrap: str, topic: str, partitions: Iterable[int], isolation: str | None = None
    ) -> Consumer: ...

    def admin(self, bootstrap: str) -> Admin: ...

    def security(self, credentials: Credentials) -> Options: ...

    def refusal(self, bootstrap: str, options: Options) -> str:
        """The first error of a client that cannot connect."""
        ...


def client_named(name: str) -> Client:
    """The adapter of a client. ImportError if the client is not installed."""
    module: Client = importlib.import_module(f"tests.clients.adapters.{MEMBERS[name]}")  # type: ignore[assignment]
    return module
