"""What a run is told: the choices of a person as one value, which goes to the process with Spark as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

SOURCES = ("kgctl", "kafka")


@dataclass(frozen=True, slots=True)
class RunSettings:
    """Times are in ms since 1970, or EARLIEST or LATEST; `trigger_s` and `step_s` in seconds."""

    jobs: tuple[str, ...]
    bootstrap: str
    out: str
    source: str = "kgctl"
    since: str | int = "earliest"
    until: int | None = None
    follow: bool = False
    trigger_s: float = 10.0
    step_s: float = 60.0
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

    @property
    def out_dir(self) -> Path:
        return Path(self.out)

    @property
    def checkpoint_dir(self) -> Path:
        return Path(self.checkpoint) if self.checkpoint else self.out_dir / "_checkpoints"

    def table_dir(self, table: str) -> Path:
        return self.out_dir / table

    def to_json(self) -> str:
        return json.dumps(asdict(self))


def from_json(text: str) -> RunSettings:
    told = json.loads(text)
    for name in ("conf", "source_options"):
        told[name] = tuple((key, value) for key, value in told[name])
    told["jobs"] = tuple(told["jobs"])
    return RunSettings(**told)


@dataclass(frozen=True, slots=True)
class Progress:
    """One line of what a run tells: `kind` is starting, started, job, progress, done, failed or note; times in s.

    `records` were read by a stream, `rows` written by any other job; `behind` counts records.
    """

    kind: str
    text: str = ""
    job: str | None = None
    rows: int | None = None
    records: int | None = None
    records_per_s: float | None = None
    behind: int | None = None
    eta_s: float | None = None
    batch: int | None = None
    exit_code: int | None = None

    def to_json(self) -> str:
        return json.dumps({key: value for key, value in asdict(self).items() if value not in (None, "")})


def progress_from_json(text: str) -> Progress:
    """ValueError or TypeError where the line is something else."""
    return Progress(**json.loads(text))
