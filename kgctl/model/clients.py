"""Rows about the clients of a broker."""

from __future__ import annotations

from collections.abc import Mapping

from broker.light_dataclasses import dataclass, field
from kgctl.model.failure import RowError


@dataclass(frozen=True, slots=True)
class ClientRow:
    """A connection of a client. Times are ms, since 1970 or as durations; `number` counts the connections of the broker.

    `principal` is None before the client has authenticated. `groups` and `transactional_ids` are those that it used on this
    connection, `client_instance_id` is that of its telemetry (KIP-714).
    """

    broker_id: int
    number: int
    host: str
    port: int
    client_id: str | None
    software_name: str | None
    software_version: str | None
    principal: str | None
    listener: str
    security_protocol: str
    connected_at_ms: int
    age_ms: int
    idle_ms: int
    requests: int
    bytes_in: int
    bytes_out: int
    last_request: str | None
    groups: tuple[str, ...]
    transactional_ids: tuple[str, ...]
    client_instance_id: str | None


@dataclass(frozen=True, slots=True)
class ClientRows:
    """The connections of all brokers that answered, and the errors of the brokers that did not."""

    rows: tuple[ClientRow, ...]
    errors: tuple[RowError, ...] = ()


@dataclass(frozen=True, slots=True)
class ClientMetric:
    """One value that a client pushed (KIP-714). Without `metric`, the client pushed nothing yet, or what cannot be read.

    `kind` is gauge, sum or histogram; `observations` are those of a histogram, whose value is their sum. `is_delta`: the value
    counts since the push before. `value` is None if it is not a number. Times are ms since 1970.
    """

    broker_id: int
    client_id: str | None
    client_instance_id: str
    software_name: str | None
    software_version: str | None
    host: str
    port: int
    interval_ms: int
    subscribed: tuple[str, ...]
    pushes: int
    pushed_at_ms: int | None
    metric: str | None = None
    kind: str | None = None
    unit: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    value: float | None = None
    observations: int | None = None
    is_delta: bool | None = None
    error: RowError | None = None
