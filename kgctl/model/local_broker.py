"""The state of the local broker, as `kgctl broker` shows it."""

from __future__ import annotations

from broker.light_dataclasses import dataclass

# UNRESPONSIVE: the process exists and has written its ready file, but it does not answer a request.
RUNNING, STARTING, STOPPED, UNRESPONSIVE = "running", "starting", "stopped", "unresponsive"


@dataclass(frozen=True, slots=True)
class LocalBrokerRow:
    """Times are UTC in ISO 8601. `unimplemented_options` are accepted but ignored.

    `reason` says why the broker is not running: how the last run ended, or how an unresponsive broker fails to answer.
    `security_protocol` is that of `address`, the first listener; `client_properties` is the configuration of a client, after --secure.
    `metrics` is the URL of the metrics for Prometheus.
    `ended` is absent for a broker that was killed.
    """

    state: str
    address: str | None
    pid: int | None
    durability: str | None
    started: str | None
    data_dir: str
    log_file: str
    unimplemented_options: tuple[str, ...] = ()
    ended: str | None = None
    reason: str | None = None
    security_protocol: str | None = None
    client_properties: str | None = None
    other_listeners: tuple[str, ...] = ()
    metrics: str | None = None


@dataclass(frozen=True, slots=True)
class LogLineRow:
    """One line of the broker's log. A line that continues an entry, as in a traceback, has only a message."""

    time: str | None
    level: str | None
    logger: str | None
    message: str
