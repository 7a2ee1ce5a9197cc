"""Evaluations made by hand, as the job evaluate writes them."""

from __future__ import annotations

import threading
from pathlib import Path

from kgctl.pipelines.progress import Progress
from kgctl.pipelines.results.delivery import Delivery
from kgctl.pipelines.settings import RunSettings
from kgctl.pipelines.tables.newest import MEASURED
from tests.kgctl.pipelines.report.tables import commit

NOON = 1_704_110_400_000
MINUTE = 60_000


def evaluate(out: Path, minute: int, **statuses: str) -> None:
    """Commit one evaluation: the statuses of the partitions of each group, separated by blanks."""
    at = NOON + minute * MINUTE
    rows = [
        {
            "group": group,
            "topic": "orders",
            "part": part,
            "at": at,
            "status": status,
            "complete": 1.0,
            "lag": 0 if status == "OK" else 10 + part,
            "reasons": [] if status == "OK" else [f"why {status}"],
        }
        for group, words in statuses.items()
        for part, status in enumerate(words.split())
    ]
    commit(out, "health", rows, f"evaluate-{at}", {MEASURED: at})


class Run:
    """A run with these sinks, and the notes that its user sees."""

    def __init__(
        self,
        out: Path,
        *sinks: str,
        bootstrap: str = "127.0.0.1:1",
        jobs: tuple[str, ...] = ("evaluate",),
        **settings: object,
    ) -> None:
        self.notes: list[str] = []
        chosen = RunSettings(jobs, bootstrap, str(out), sinks=sinks, timeout_s=15.0, **settings)  # type: ignore[arg-type]
        self.delivery = Delivery(chosen, "cluster-1", self._note, threading.Event())
        self.delivery.after_round()

    def _note(self, progress: Progress) -> None:
        if progress.kind == "note":
            self.notes.append(progress.text)
