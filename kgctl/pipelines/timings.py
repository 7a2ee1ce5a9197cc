"""The phases of a run and how long each took, as events among its progress. Does not import Spark."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from kgctl.pipelines.progress import Progress

MEANINGS = {
    "process": "Python starts",
    "java": "Java is found",
    "cluster": "cluster and folder are checked",
    "jvm": "the JVM starts, and Python loads Spark",
    "session": "Spark makes a session",
    "query": "the query is planned and started",
    "job": "the whole job",
    "end": "Spark ends",
}
_PARTS = 4
Emit = Callable[[Progress], None]


@dataclass(frozen=True, slots=True)
class Timings:
    """Reports each phase when it ends; phases may overlap."""

    emit: Emit

    @contextlib.contextmanager
    def phase(self, name: str, job: str | None = None) -> Iterator[None]:
        """A phase that fails is not reported."""
        began = time.monotonic()
        yield
        self.took(name, time.monotonic() - began, job)

    def took(self, name: str, seconds: float, job: str | None = None) -> None:
        self.emit(Progress("timing", phase=name, seconds=round(seconds, 3), job=job))


def timing_of_batch(job: str, number: int, durations_ms: Mapping[str, int]) -> Progress:
    """A micro-batch of a stream: Spark's durations, whose whole is `triggerExecution`."""
    parts = {name: ms / 1000 for name, ms in durations_ms.items() if name != "triggerExecution" and ms}
    whole = durations_ms.get("triggerExecution", 0) / 1000
    return Progress("timing", phase="batch", seconds=whole, job=job, batch=number, parts=parts)


def timing_line(event: Progress) -> str:
    """The job, the phase, its seconds, and what it means or what took longest in a batch."""
    name = f"{event.phase} {event.batch}" if event.batch is not None else str(event.phase)
    what = MEANINGS.get(str(event.phase), "")
    if event.parts:
        largest = sorted(event.parts.items(), key=lambda part: -part[1])[:_PARTS]
        what = ", ".join(f"{part} {seconds:.1f}" for part, seconds in largest)
    return f"{event.job or '':<11} {name:<9} {event.seconds or 0.0:>7.1f} s  {what}".rstrip()


UNTIMED = Timings(lambda _: None)
