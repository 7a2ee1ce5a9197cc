"""Walks of fresh seeds: recorded from a real Kafka, then compared on the core and over a socket."""

from __future__ import annotations

import re
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from broker.local import LocalBroker
from tests.harness.oracle import over_socket, replay
from tests.harness.oracle.choices import Dropped
from tests.harness.oracle.over_socket import Address, address_of
from tests.harness.oracle.record import Patience, Recording, record, record_walk, write
from tests.harness.oracle.replay import Difference
from tests.harness.oracle.requests import TOPICS
from tests.harness.oracle.verdict import Verdict
from tests.harness.reference_kafka import VERSION, ReferenceKafka

# Kafka's check removes an Empty group without offsets at once, even one that has just given out an id.
KAFKA_ONLY = {"offsets.retention.check.interval.ms": "86400000"}
SETTINGS = {
    "classic": {"group.initial.rebalance.delay.ms": 0},
    "max-size": {"group.initial.rebalance.delay.ms": 0, "group.max.size": 2},
}
STEP = re.compile(r"step (\d+) ")
Walk = dict[str, Any]
Header = dict[str, Any]


def on_core(header: Header, walks: Iterable[Walk]) -> list[Difference]:
    """Every difference between the walks and our coordinator, without sockets."""
    settings = replay.settings_of(header)
    return [found for walk in walks for found in replay.play_walk(walk, settings, header["topics"])]


def over_a_socket(header: Header, walks: Iterable[Walk], at_once: int = 2) -> list[Difference]:
    """The first differences of each walk on a broker that is started for this."""
    with LocalBroker(config=header["settings"]) as kafka, ThreadPoolExecutor(at_once) as pool:
        address = address_of(kafka.bootstrap_servers)
        over_socket.make_topics(address, header["topics"])
        return [found for walk in pool.map(lambda one: over_socket.play_walk(address, one), walks) for found in walk]


def check(path: Path) -> Verdict:
    """Compare a recording on the core and over a socket."""
    header, walks = replay.read(str(path.resolve()))
    return Verdict(path, walks, on_core(header, walks), over_a_socket(header, walks))


def record_fresh(seeds: Iterable[int], variant: str, path: Path) -> Verdict:
    """Record from a real Kafka that is started for this, and compare."""
    settings = SETTINGS[variant]
    with ReferenceKafka({name: str(value) for name, value in settings.items()} | KAFKA_ONLY) as kafka:
        address = address_of(kafka.bootstrap_servers)
        made = record(address, seeds)
        again = _record_again(address, made, settings)
    write(path, made.walks, settings, f"Apache Kafka {VERSION}")
    verdict = check(path)
    verdict.remark(made)
    verdict.remarks += [f"recorded again with longer waits because of {where}" for where in again]
    return verdict


def _record_again(address: Address, made: Recording, settings: dict[str, int]) -> list[str]:
    """Record a walk that differs once more with longer waits: a late answer must not count as a different answer."""
    header = {"settings": settings, "topics": TOPICS}
    out = []
    for place, walk in enumerate(made.walks):
        found = on_core(header, [walk])
        if not found:
            continue
        try:
            slow = record_walk(address, walk["seed"], walk["attempt"], Patience().times(4))
        except Dropped:
            continue
        differing = STEP.search(found[0].where)
        assert differing is not None, found[0].where
        if _requests(walk, int(differing[1])) == _requests(slow, int(differing[1])):
            made.walks[place] = slow
            out.append(found[0].where)
    return out


def _requests(walk: Walk, up_to: int) -> list[Any]:
    return [(step["client"], step["api"], step["version"], step["request"]) for step in walk["steps"][:up_to]]
