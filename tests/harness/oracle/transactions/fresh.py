"""Walks of fresh seeds: recorded from a real Kafka, then compared on the core and over a socket."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.harness.oracle.replay import Difference
from tests.harness.oracle.transactions import on_core, replay
from tests.harness.oracle.transactions.kafka import SETTINGS, TransactionalKafka
from tests.harness.oracle.transactions.record import Recorded, Recording, read, record, write
from tests.harness.reference_kafka import VERSION


@dataclass
class Verdict:
    """The outcome of a recording."""

    path: Path
    walks: list[Recorded]
    core: list[Difference]
    socket: list[Difference]
    remarks: list[str] = field(default_factory=list)

    @property
    def steps(self) -> int:
        return sum(len(walk["steps"]) for walk in self.walks)

    @property
    def differences(self) -> list[Difference]:
        return self.core + self.socket

    def lines(self) -> Iterator[str]:
        yield f"{self.path}: {len(self.walks)} walks, {self.steps} steps" + "".join(f"; {one}" for one in self.remarks)
        for name, found in (("on the core", self.core), ("over a socket", self.socket)):
            yield f"{name}: {len(found)} differences"
            yield from map(str, found[:5])


def check(path: Path) -> Verdict:
    """Compare a recording on the core and over a socket."""
    header, walks = read(path)
    level = header["transaction_version"]
    core = [found for walk in walks for found in on_core.play_walk(walk, level)]
    return Verdict(path, walks, core, replay.on_our_broker(walks, level))


def record_fresh(seeds: Iterable[int], transaction_version: int, path: Path, *, restarts: bool = True) -> Recording:
    """Record from a real Kafka that is started for this."""
    with TransactionalKafka(transaction_version) as kafka:
        made = record(kafka.address, seeds, transaction_version, kafka.restart if restarts else None)
    header = {
        "recorded_from": f"Apache Kafka {VERSION}",
        "transaction_version": transaction_version,
        "settings": SETTINGS,
    }
    write(path, header, made.walks)
    return made


def record_and_check(seeds: Iterable[int], transaction_version: int, path: Path, *, restarts: bool = True) -> Verdict:
    made = record_fresh(seeds, transaction_version, path, restarts=restarts)
    verdict = check(path)
    verdict.remarks += [f"{count} attempts dropped: {why}" for why, count in sorted(made.dropped.items())]
    verdict.remarks += [f"seeds given up: {made.given_up}"] if made.given_up else []
    return verdict
