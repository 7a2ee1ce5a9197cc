"""The settings of a run as one value, which goes to the Spark process as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kgctl.client.net.connector import ConnectionSettings

SOURCES = ("kgctl", "kafka")


@dataclass(frozen=True, slots=True)
class RunSettings:
    """`since` is earliest, latest or a time in ms since 1970; `trigger_s`, `step_s` and `scan_every_s` are in seconds.

    `max_outage_s`: how long a run that follows waits for a cluster that does not answer.
    `topics` is a regular expression for whole names of topics, for the jobs about topics; None leaves the choice to the job.
    Without jobs, `archived` are the topics to archive; with `archives_all`, those that exist; up to `until_ms` since 1970.
    `connection_properties` are those that `bootstrap` leaves out, secrets included. `read_only`: commit no positions.
    `sinks` are as the command line has them, but complete: URLs, not files with URLs. `repeat_s`: after how many seconds a
    sink gets a fault again. `fail_on`: the status that makes the run fail.
    """

    jobs: tuple[str, ...]
    bootstrap: str
    out: str
    source: str = "kgctl"
    since: str | int = "earliest"
    follow: bool = False
    trigger_s: float = 10.0
    max_outage_s: float = 900.0
    step_s: float = 60.0
    topics: str | None = None
    scan_every_s: float = 3600.0
    table_format: str = "parquet"
    max_offsets_per_trigger: int | None = None
    checkpoint: str | None = None
    master: str = "local[*]"
    remote: str | None = None
    conf: tuple[tuple[str, str], ...] = ()
    source_options: tuple[tuple[str, str], ...] = ()
    quick: bool = False
    report: bool = False
    timeout_s: float = 30.0
    log_file: str = ""
    read_only: bool = False
    sinks: tuple[str, ...] = field(default=(), repr=False)
    webhook_headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    repeat_s: float = 4 * 3600.0
    fail_on: str | None = None
    archived: tuple[str, ...] = ()
    archives_all: bool = False
    isolation_level: str = "read_committed"
    until_ms: int | None = None
    connection_properties: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    @property
    def is_archive(self) -> bool:
        """Whether the run archives topics, instead of running jobs."""
        return bool(self.archived) or self.archives_all

    @property
    def out_dir(self) -> Path:
        return Path(self.out)

    @property
    def checkpoint_dir(self) -> Path:
        """The folder that holds one checkpoint per streaming job."""
        return Path(self.checkpoint) if self.checkpoint else self.out_dir / "_checkpoints"

    def table_dir(self, table: str) -> Path:
        return self.out_dir / table

    def connection(self, client_id: str, timeout_s: float | None = None) -> ConnectionSettings:
        """How to reach the cluster, also for tasks on other machines."""
        from kgctl.contexts.handover import portable

        return portable(self.properties, client_id, self.timeout_s if timeout_s is None else timeout_s)

    @property
    def properties(self) -> dict[str, str]:
        """All connection properties, secrets included."""
        return {**dict(self.connection_properties), "bootstrap.servers": self.bootstrap}

    def to_json(self) -> str:
        return json.dumps(asdict(self))


def from_json(text: str) -> RunSettings:
    fields = json.loads(text)
    for name in ("conf", "source_options", "webhook_headers", "connection_properties"):
        fields[name] = tuple((key, value) for key, value in fields[name])
    for name in ("jobs", "archived", "sinks"):
        fields[name] = tuple(fields[name])
    return RunSettings(**fields)
