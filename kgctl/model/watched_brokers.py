"""The brokers of a cluster as the dashboard shows them."""

from __future__ import annotations

from collections.abc import Mapping

from broker.light_dataclasses import dataclass, field
from kgctl.model.cluster_rows import BrokerRow, LogDirRow
from kgctl.model.failure import RowError
from kgctl.model.findings import ClusterFinding

FLUSHES = "flushes"


@dataclass(frozen=True, slots=True)
class BrokerStatus:
    """What kgctl's broker counts about itself. `times` has for each request, and for FLUSHES, how often it took how long.

    The keys of the counts are buckets of `broker.protocol.latency_buckets`. A size of None is not known.
    """

    broker: int
    wall_ms: int
    started_ms: int
    durability: str
    store_bytes: int | None
    wal_bytes: int | None
    max_connections: int
    connections: Mapping[str, int] = field(default_factory=dict)
    times: Mapping[str, Mapping[int, int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class BrokerSeen:
    """A broker at the address that it advertises. `lagging` counts its replicas that are not in sync; `error`: it does not answer."""

    broker: int
    address: str
    controller: bool
    leaders: int
    replicas: int
    lagging: int
    error: RowError | None = None


@dataclass(frozen=True, slots=True)
class BrokersSnapshot:
    """`at_s` is of a monotonic clock, `wall_ms` since 1970. `findings` are those of the doctor that are not ok."""

    at_s: float
    wall_ms: int
    brokers: tuple[BrokerSeen, ...]
    topics: int
    partitions: int
    findings: tuple[ClusterFinding, ...] = ()
    statuses: tuple[BrokerStatus, ...] = ()


@dataclass(frozen=True, slots=True)
class BrokerDetails:
    """What changes slowly: racks, releases, and log directories."""

    rows: tuple[BrokerRow, ...]
    log_dirs: tuple[LogDirRow, ...] = ()
    missing: tuple[RowError, ...] = ()


@dataclass(frozen=True, slots=True)
class RequestFigures:
    """A kind of request: how often it ran, per second and since the start, and how long it took; times in seconds."""

    name: str
    total: int
    rate: float | None
    p50_s: float | None
    p99_s: float | None
    slowest_s: float | None


@dataclass(frozen=True, slots=True)
class BrokerFigures:
    """The requests of a broker over the last minute. `seconds` is that time; None: figures are since the start of the broker."""

    status: BrokerStatus
    requests: tuple[RequestFigures, ...]
    flushes: RequestFigures | None
    rate: float | None
    seconds: float | None
