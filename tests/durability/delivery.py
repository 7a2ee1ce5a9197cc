"""Records through `Producer` and the programs of docs/clients.md, once for each delivery guarantee, under kill -9.

A round is one kill of the broker and of the program. What counts is what the programs have printed, or have written in transactions that committed.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random

from broker.local import LocalBroker
from kgctl import Admin, Consumer, Producer, TopicPartition
from kgctl.client.net.errors import KgctlError
from kgctl.client.producer.core.batch import RecordMetadata
from tests.durability.parts import Violation
from tests.harness.clusters import CONFIG
from tests.harness.delivery_programs import (
    AT_LEAST_ONCE,
    AT_MOST_ONCE,
    EXACTLY_ONCE,
    GROUPS,
    INPUT,
    OUTPUT,
    PREFIX,
    PRODUCERS,
    SHORT_SESSION,
    Running,
)
from tests.harness.ports import kept_address

RECORDS = 1_000_000
PARTITIONS = 4
GUARANTEES = (EXACTLY_ONCE, AT_LEAST_ONCE, AT_MOST_ONCE)
# How far the producer may be ahead of the committed offsets, so that kills hit both: a part of all records, and at least so many.
AHEAD, LEAST_AHEAD = 0.1, 5_000
STALLED_S = 90.0
QUIET_S = 1.0
LOOK_S = 0.05


def run(directory: Path, seed: int, rounds: int, report: Callable[[str], None]) -> dict[str, object]:
    figures: dict[str, object] = {"records": RECORDS, "kills": rounds}
    for guarantee in GUARANTEES:
        at = directory / GROUPS[guarantee]
        at.mkdir()
        figures[guarantee.lower()] = _Soak(guarantee, at, Random(seed), rounds, report).run()
    return figures


class _Soak:
    """One guarantee, with a broker of its own."""

    def __init__(
        self, guarantee: str, directory: Path, random: Random, kills: int, report: Callable[[str], None]
    ) -> None:
        self._guarantee, self._directory, self._report = guarantee, directory, report
        # One kill at a random moment of each strip.
        self._kills = [int((number + random.random()) * RECORDS / kills) for number in range(kills)]
        self._broker = LocalBroker(config=CONFIG, data_dir=directory / "data", listen=kept_address())
        self._reached = 0
        self._failed: list[KgctlError] = []
        self._source = threading.Thread(target=self._produce, name="source")
        self._program: Running
        self._observer: Consumer
        self._is_over = threading.Event()

    def run(self) -> dict[str, object]:
        began = time.monotonic()
        with self._broker as broker:
            self._bootstrap = broker.bootstrap_servers
            with Admin(self._bootstrap) as admin:
                admin.create_topics([INPUT, OUTPUT], partitions=PARTITIONS)
            self._start_program()
            try:
                self._source.start()
                with Consumer(bootstrap_servers=self._bootstrap, group_id=GROUPS[self._guarantee]) as self._observer:
                    self._kill_and_finish()
            finally:
                self._is_over.set()
                self._program.kill()
                self._source.join()
            is_in_kafka = self._guarantee == EXACTLY_ONCE
            counts = self._results() if is_in_kafka else Counter(map(int, self._program.printed()))
        return {**self._judged(counts), "seconds": round(time.monotonic() - began)}

    def _start_program(self) -> None:
        self._program = Running(self._guarantee, self._bootstrap, self._directory / "printed", SHORT_SESSION)

    def _kill_and_finish(self) -> None:
        for number, reached in enumerate(self._kills, 1):
            self._wait(lambda reached=reached: self._progress() >= reached, f"kill {number}")  # type: ignore[misc]
            self._broker.kill()
            self._program.kill()
            self._broker.restart()
            self._start_program()
            self._report(f"{self._guarantee}: kill {number} behind {self._reached} of {RECORDS} records")
        self._wait(self._is_complete, "the end")
        if self._guarantee == AT_MOST_ONCE:  # the last ones are committed, and being processed
            size = -1
            while size != (size := self._program.size()):
                time.sleep(QUIET_S)

    # -- the records

    def _produce(self) -> None:
        """Send all records, only so far ahead of the program."""

        def delivered(metadata: RecordMetadata, error: KgctlError | None) -> None:
            if error is not None:
                self._failed.append(error)

        with Producer(bootstrap_servers=self._bootstrap, **PRODUCERS[self._guarantee]) as producer:  # type: ignore[arg-type]
            for number in range(RECORDS):
                if number % 100 == 0:
                    while number - self._reached - len(self._failed) > max(AHEAD * RECORDS, LEAST_AHEAD):
                        if self._is_over.wait(LOOK_S):
                            return
                producer.send(INPUT, b"%d" % number, on_delivery=delivered)

    def _progress(self) -> int:
        """How many records the program has committed."""
        committed = self._observer.committed(_partitions(INPUT))
        self._reached = sum(found.offset for found in committed.values() if found is not None)
        return self._reached

    def _is_complete(self) -> bool:
        is_sending, reached = self._source.is_alive(), self._progress()
        return not is_sending and reached == sum(self._observer.end_offsets(_partitions(INPUT)).values())

    def _wait(self, condition: Callable[[], bool], what: str) -> None:
        """Wait until it holds. Raises Violation if nothing is committed meanwhile for a long time."""
        reached, since = self._reached, time.monotonic()
        while not condition():
            self._program.check()
            if self._reached != reached:
                reached, since = self._reached, time.monotonic()
            if time.monotonic() - since > STALLED_S:
                raise Violation(f"{self._guarantee}: no progress behind {reached} records, before {what}")
            time.sleep(LOOK_S)

    def _results(self) -> Counter[int]:
        """How often each record is in a transaction that committed."""
        found: Counter[int] = Counter()
        with Consumer(
            bootstrap_servers=self._bootstrap, auto_offset_reset="earliest", isolation_level="read_committed"
        ) as consumer:
            consumer.assign(_partitions(OUTPUT))
            ends = consumer.end_offsets(_partitions(OUTPUT))
            while any(consumer.position(partition) < end for partition, end in ends.items()):
                found.update(int(record.value.removeprefix(PREFIX)) for record in consumer.poll())
        return found

    def _judged(self, counts: Counter[int]) -> dict[str, object]:
        missing = [number for number in range(RECORDS) if number not in counts]
        twice = [number for number, count in counts.items() if count > 1]
        strange = [number for number in counts if not 0 <= number < RECORDS]
        for what, numbers, is_allowed in (
            ("lost", missing, self._guarantee == AT_MOST_ONCE),
            ("processed twice", twice, self._guarantee == AT_LEAST_ONCE),
            ("never sent", strange, False),
        ):
            if numbers and not is_allowed:
                raise Violation(f"{self._guarantee}: {len(numbers)} records are {what}, such as {numbers[:5]}")
        return {"lost": len(missing), "twice": len(twice), "not acknowledged": len(self._failed)}


def _partitions(topic: str) -> list[TopicPartition]:
    return [TopicPartition(topic, number) for number in range(PARTITIONS)]
