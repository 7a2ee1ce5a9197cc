"""Damaged TLS conversations and large answers: nothing leaks, and every byte arrives."""

from __future__ import annotations

import os
import random
import socket
from collections.abc import Callable, Mapping
from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition

from broker.local import LocalBroker
from tests.durability.parts import Violation
from tests.harness.damaged_tls import converse

RECORDS, RECORD_BYTES = 100, 1_000_000
CONVERSATIONS = 500
# What the allocator may take more after the first round.
MOST_GROWTH_KB = 20_000
PATIENCE_S = 60.0


def run(directory: Path, seed: int, rounds: int, report: Callable[[str], None]) -> Mapping[str, object]:
    randomness = random.Random(seed)
    values = [randomness.randbytes(RECORD_BYTES) for _ in range(RECORDS)]
    with LocalBroker(data_dir=directory / "data", security="SSL") as kafka:
        secured = {
            "bootstrap.servers": kafka.bootstrap_servers,
            "security.protocol": "SSL",
            "ssl.ca.location": str(kafka.ca_file),
        }
        producer = Producer(secured | {"message.max.bytes": "2000000"})
        for value in values:
            producer.produce("large", value)
            producer.poll(0)
        if producer.flush(PATIENCE_S):
            raise Violation("round 0: the records were not acknowledged")
        first: tuple[int, int] | None = None
        for number in range(1, rounds + 1):
            host, _, port = kafka.bootstrap_servers.rpartition(":")
            for _ in range(CONVERSATIONS):
                with socket.create_connection((host, int(port)), timeout=PATIENCE_S) as sock:
                    converse(sock, randomness)
            if _consumed(secured) != values:
                raise Violation(f"round {number}: the records differ")
            memory_kb, files = _usage(kafka.pid)
            first = first or (memory_kb, files)
            report(f"round {number}: {memory_kb} KB, {files} files")
            if memory_kb - first[0] > MOST_GROWTH_KB or files > first[1] + 5:
                raise Violation(
                    f"round {number}: {memory_kb} KB and {files} files after {first[0]} KB and {first[1]} files"
                )
    return {"conversations": rounds * CONVERSATIONS, "megabytes": rounds * RECORDS * RECORD_BYTES // 1_000_000}


def _consumed(secured: dict[str, str]) -> list[bytes]:
    limits = {"fetch.max.bytes": "50000000", "fetch.message.max.bytes": "50000000", "group.id": "readers"}
    consumer = Consumer(secured | limits)
    consumer.assign([TopicPartition("large", 0, 0)])
    found: list[bytes] = []
    while len(found) < RECORDS:
        message = consumer.poll(PATIENCE_S)
        if message is None or message.error():
            break
        found.append(message.value())
    consumer.close()
    return found


def _usage(pid: int) -> tuple[int, int]:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") // 1024, len(os.listdir(f"/proc/{pid}/fd"))
