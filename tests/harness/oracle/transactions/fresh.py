"""Walks of fresh seeds: recorded from a real Kafka, then compared on the core and over a socket."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from tests.harness.oracle.record import Recording
from tests.harness.oracle.transactions import on_core, replay
from tests.harness.oracle.transactions.kafka import SETTINGS, TransactionalKafka
from tests.harness.oracle.transactions.record import read, record, write
from tests.harness.oracle.verdict import Verdict
from tests.harness.reference_kafka import VERSION


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
    verdict.remark(made)
    return verdict
