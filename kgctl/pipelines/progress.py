"""Progress of a run as the Spark process reports it: one JSON line per message."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass


@dataclass(frozen=True, slots=True)
class Progress:
    """`kind` is ready, starting, started, job, progress, done, failed, note or timing; times in seconds.

    `records` were read by a stream, `rows` written by a batch job. `behind` counts offsets to the ends of the logs,
    `behind_by_partition` as {topic: {partition: offsets}} where there are any; `metrics` are those of Spark's connector. A `timing`
    has the `seconds` of a `phase` and, for a batch, those of its `parts`. A `failed` that `says_all` makes Spark's log unnecessary.
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
    metrics: dict[str, str] | None = None
    behind_by_partition: dict[str, dict[str, int]] | None = None
    exit_code: int | None = None
    phase: str | None = None
    seconds: float | None = None
    parts: dict[str, float] | None = None
    says_all: bool | None = None

    def to_json(self) -> str:
        return json.dumps({key: value for key, value in asdict(self).items() if value not in (None, "", {})})


def from_json(text: str) -> Progress:
    """Raises ValueError or TypeError if the line is something else."""
    return Progress(**json.loads(text))
