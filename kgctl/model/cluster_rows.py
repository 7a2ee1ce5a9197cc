"""Rows that describe a cluster: its brokers, features, API versions and log directories."""

from __future__ import annotations

from broker.light_dataclasses import dataclass
from kgctl.model.failure import RowError


@dataclass(frozen=True, slots=True)
class BrokerRow:
    """A broker as the cluster advertises it. What its configs and log directories say is None if it is not known.

    `release` is the release of Kafka to which the cluster's metadata are finalized.
    """

    broker: int
    address: str
    rack: str | None
    controller: bool
    fenced: bool
    cluster_id: str | None
    release: str | None = None
    listeners: tuple[str, ...] = ()
    log_dirs: tuple[str, ...] = ()
    partitions: int | None = None
    size_bytes: int | None = None
    error: RowError | None = None


@dataclass(frozen=True, slots=True)
class FeatureRow:
    """A feature of the cluster (KIP-584): the finalized level, 0 if it is disabled, and the levels that all brokers support."""

    feature: str
    level: int
    release: str | None
    min_level: int | None
    max_level: int | None


@dataclass(frozen=True, slots=True)
class ApiRow:
    """The versions of one request that a broker offers, and the one that kgctl uses; `api` is the number if kgctl does not know it."""

    broker: int
    api_key: int | None
    api: str | None
    min_version: int | None = None
    max_version: int | None = None
    used_version: int | None = None
    error: RowError | None = None


@dataclass(frozen=True, slots=True)
class LogDirRow:
    """A log directory of a broker; total and usable bytes of its volume are known from Kafka 3.3 on."""

    broker: int
    log_dir: str | None
    partitions: int | None = None
    size_bytes: int | None = None
    total_bytes: int | None = None
    usable_bytes: int | None = None
    error: RowError | None = None
