"""Records incidents on a broker as the tables of a run: `python -m tests.kgctl.pipelines.incidents.record FOLDER`. Takes eight minutes.

Groups read topics that get some hundred records per second, and commit every second. After BEGIN_S seconds, for LASTS_S seconds:

healthy   reads on
spike     gets ten times as many records, for SPIKE_S seconds only
stuck     stands still, and then reads what has piled up
slow      reads a part of what is written, to the end of the recording
storm     has no lasting member: one joins and leaves again and again
"""

from __future__ import annotations

import contextlib
import shutil
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from confluent_kafka import Consumer, KafkaException, Producer

from broker.local import LocalBroker
from kgctl.pipelines.tables.manifest import TableFolder
from tests.harness.commandline import Kgctl, member_of
from tests.kgctl.pipelines.runs import run

GROUPS = ("healthy", "spike", "stuck", "slow")
PARTITIONS, EACH_LOOP, SLOW_PER_S = 5, 5, 25
BEGIN_S, LASTS_S, END_S = 180, 100, 390
SPIKE_S, SPIKE = 8, 10
TABLES = ("f_lag", "f_commit", "f_rebalance")


class Recording:
    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._start = time.monotonic()

    @property
    def now_s(self) -> float:
        return time.monotonic() - self._start

    @property
    def is_incident(self) -> bool:
        return BEGIN_S <= self.now_s < BEGIN_S + LASTS_S

    def produce(self) -> None:
        producer = Producer({"bootstrap.servers": self._bootstrap, "linger.ms": 20})
        while self.now_s < END_S:
            is_spike = BEGIN_S <= self.now_s < BEGIN_S + SPIKE_S
            for group in GROUPS:
                count = EACH_LOOP * (SPIKE if group == "spike" and is_spike else 1)
                for number in range(count):
                    producer.produce(group, b"v", partition=number % PARTITIONS)
            producer.poll(0.1)
        producer.flush(10)

    def consumer(self, group: str) -> Consumer:
        consumer = Consumer(
            {
                "bootstrap.servers": self._bootstrap,
                "group.id": group,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
            }
        )
        consumer.subscribe([group])
        return consumer

    def consume(self, group: str) -> None:
        consumer, second, read = self.consumer(group), 0, 0
        while self.now_s < END_S:
            is_stuck = group == "stuck" and self.is_incident
            is_slow = group == "slow" and self.now_s >= BEGIN_S
            limit = 0 if is_stuck else SLOW_PER_S if is_slow else 10_000
            if read < limit:
                read += len(consumer.consume(min(500, limit - read), 0.1))
            else:
                time.sleep(0.1)
            if int(self.now_s) > second:
                second = int(self.now_s)
                if read:
                    self._commit(consumer)
                read = 0
        consumer.close()

    def flap(self) -> None:
        while self.now_s < END_S:
            with member_of(Kgctl(self._bootstrap), "storm", {"storm": [0]}):
                time.sleep(0.2)
            while not self.is_incident and self.now_s < END_S:
                time.sleep(0.1)

    @staticmethod
    def _commit(consumer: Consumer) -> None:
        # During a rebalance it fails; the next second commits again.
        with contextlib.suppress(KafkaException):
            consumer.commit(asynchronous=False)


def main(folder: Path) -> None:
    with LocalBroker({"group.initial.rebalance.delay.ms": 0}) as broker:
        kgctl = Kgctl(broker.bootstrap_servers)
        for group in (*GROUPS, "storm"):
            assert kgctl("topics", "create", group, "--partitions", PARTITIONS).exit_code == 0
        recording = Recording(broker.bootstrap_servers)
        tasks: list[Callable[[], None]] = [recording.produce, recording.flap]
        threads = [threading.Thread(target=task) for task in tasks]
        threads += [threading.Thread(target=recording.consume, args=(group,)) for group in GROUPS]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        done = run(kgctl, folder / "run", "decode", "lag", "rebalances", "commit_rates", "--once", "--step", "1")
        assert done.returncode == 0, done.stderr
    for table in TABLES:
        for number, file in enumerate(TableFolder(folder / "run" / table).files()):
            shutil.copy(file, folder / f"{table}-{number}.parquet")
    (folder / "incident-begin").write_text(f"{time.time() - recording.now_s + BEGIN_S:.0f}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
