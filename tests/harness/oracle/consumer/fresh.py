"""Walks of fresh seeds: recorded from a real Kafka, then compared on the core and over a socket."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from tests.harness.oracle.consumer import on_core, replay
from tests.harness.oracle.consumer.files import read, write
from tests.harness.oracle.consumer.kafka import SETTINGS, SETTLE_S, KafkaOfKind
from tests.harness.oracle.consumer.record import record
from tests.harness.oracle.record import Recording
from tests.harness.oracle.verdict import Verdict
from tests.harness.reference_kafka import VERSION


def check(path: Path) -> Verdict:
    """Compare a recording on the core and over a socket."""
    header, walks = read(path)
    settings = on_core.settings_of(header)
    core = [found for walk in walks for found in on_core.play_walk(walk, settings)]
    return Verdict(path, walks, core, replay.on_our_broker(header, walks))


def record_fresh(seeds: Iterable[int], kind: str, path: Path) -> Recording:
    """Record from a real Kafka that is started for this."""
    with KafkaOfKind(kind) as kafka:
        made = record(kafka.address, seeds, kind, SETTLE_S)
    header = {"recorded_from": f"Apache Kafka {VERSION}", "kind": kind, "settings": SETTINGS[kind]}
    write(path, header, made.walks)
    return made


def record_and_check(seeds: Iterable[int], kind: str, path: Path) -> Verdict:
    made = record_fresh(seeds, kind, path)
    verdict = check(path)
    verdict.remark(made)
    return verdict
