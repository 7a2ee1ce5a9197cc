"""Walks of fresh seeds: recorded from a real Kafka, then compared on the core and over a socket."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from tests.harness.oracle.consumer import on_core, replay
from tests.harness.oracle.consumer.files import Recorded, read, write
from tests.harness.oracle.consumer.kafka import RESTARTS, SETTINGS, SETTLE_S, KafkaOfKind
from tests.harness.oracle.consumer.record import record
from tests.harness.oracle.consumer.recovery import RecoveringPlayer
from tests.harness.oracle.record import Recording
from tests.harness.oracle.replay import Difference
from tests.harness.oracle.verdict import Verdict
from tests.harness.reference_kafka import VERSION


def check(path: Path) -> Verdict:
    """Compare a recording on the core and over a socket."""
    header, walks = read(path)
    core = [found for walk in walks for found in core_differences(header, walk)]
    # Restarts are compared on the core only.
    over_socket = [] if header.get("kind") == RESTARTS else replay.on_our_broker(header, walks)
    return Verdict(path, walks, core, over_socket)


def core_differences(header: Recorded, walk: Recorded) -> list[Difference]:
    """On a core that restarts when Kafka did."""
    return on_core.differences(walk, RecoveringPlayer(walk, on_core.settings_of(header), crashes=0.0))


def record_fresh(seeds: Iterable[int], kind: str, path: Path) -> Recording:
    """Record from a real Kafka that is started for this."""
    with KafkaOfKind(kind) as kafka:
        made = record(kafka.address, seeds, kind, SETTLE_S, kafka.restart if kind == RESTARTS else None)
    header = {"recorded_from": f"Apache Kafka {VERSION}", "kind": kind, "settings": SETTINGS[kind]}
    write(path, header, made.walks)
    return made


def record_and_check(seeds: Iterable[int], kind: str, path: Path) -> Verdict:
    made = record_fresh(seeds, kind, path)
    verdict = check(path)
    verdict.remark(made)
    return verdict
