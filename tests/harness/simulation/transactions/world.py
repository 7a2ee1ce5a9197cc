"""The world of one seed: successive brokers on one disk, workers, readers and faults."""

from __future__ import annotations

import contextlib
import math
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from random import Random
from unittest.mock import patch

from broker.server.features import TRANSACTION_VERSION
from broker.storage import StorageError, flush, housekeeping
from broker.storage.store import evidence
from tests.harness.simulation.clock import MS, SECOND, Clock
from tests.harness.simulation.network import Link
from tests.harness.simulation.terms import ensure
from tests.harness.simulation.transactions.broker import Broker
from tests.harness.simulation.transactions.disk import Fault, WorldDisk
from tests.harness.simulation.transactions.faults import Faults
from tests.harness.simulation.transactions.judge import Judge
from tests.harness.simulation.transactions.membership import Membership
from tests.harness.simulation.transactions.reader import Reader
from tests.harness.simulation.transactions.scripts import Client
from tests.harness.simulation.transactions.worker import GROUP, INPUT, OUTPUT, Worker

WALL_MS = 1_700_000_000_000
SHM = Path("/dev/shm")
CHECK_EVERY = 24  # turns of the broker
# Longer than any transaction timeout, session and rebalance together.
CALM_US, CALM_CHECK_US = 300 * SECOND, 300 * MS


@dataclass(frozen=True)
class Outcome:
    """The figures of one world."""

    seed: int
    level: int
    events: int
    simulated_us: int
    brokers: int
    commits: int
    delivered: int
    codes: Counter[tuple[str, int]]
    digest: str


class World:
    """Runs one seed: `events` with faults, then without, until every transaction has ended and every worker has committed."""

    broker_type = Broker

    def __init__(self, seed: int, events: int, print_line: Callable[[str], None] | None = None) -> None:
        self._seed = seed
        self._wanted = events
        self._print_line = print_line
        self._digest = blake2b(digest_size=8)
        self.random = random = Random(seed)
        self.clock = Clock()
        self.level = random.choice([0, 1, 2, 2])
        self.faults = Faults.draw(random)
        if self.level < 2 or self.faults.level_us is not None:
            # Before KIP-890, a late copy of a request can become part of the next transaction.
            self.faults.repeat = 0.0
        self.inputs, self.outputs = random.choice([1, 2, 4]), random.choice([1, 2, 3])
        self.reading_us = random.choice([SECOND, 5 * SECOND])
        self.look_us = random.choice([0, 0, 3 * MS])
        self.links: dict[Link, None] = {}
        self.directory = tempfile.mkdtemp(prefix="kgctl-world-", dir=SHM if SHM.is_dir() else None)
        self.disk = WorldDisk(random)
        self.judge = self._make_judge()
        self._turns = self._events = self._number = 0
        self._in_chaos = True
        self._dead_broker: Broker | None = None
        self.workers = self._make_workers()
        self.readers = self._make_readers()
        self._clients = [Client(self, worker.name, worker.script) for worker in self.workers]
        self._reading = [Client(self, reader.name, reader.script) for reader in self.readers]

    def _make_judge(self) -> Judge:
        return Judge(self)

    def _make_readers(self) -> list[Reader]:
        return [Reader(self, f"reader {n}", is_committed=n != 1) for n in range(2)]

    def _make_workers(self) -> list[Worker]:
        count, everything = self.random.choice([2, 2, 3]), list(range(self.inputs))
        if self.random.random() < 0.5:
            return [
                Worker(self, f"member {n}", f"t{n}", Membership(GROUP, self.inputs), everything) for n in range(count)
            ]
        # Two workers for each transactional id: each start of one makes a zombie of the other.
        ids = self.random.choice([1, 2])
        return [
            Worker(self, f"worker {n}.{twin}", f"t{n}", None, everything[n::ids])
            for n in range(ids)
            for twin in range(2)
        ]

    # ---- the course of events ----------------------------------------------------------------------------------------

    def run(self) -> Outcome:
        try:
            with _without_real_time():
                return self._run()
        finally:
            self._close()
            shutil.rmtree(self.directory, ignore_errors=True)

    def _run(self) -> Outcome:
        self._start_broker()
        for client in (*self._clients, *self._reading):
            self.clock.later(self.random.randrange(SECOND), client.start)
        self._schedule_faults()
        while self._events < self._wanted:
            self.step()
        self._calm_down()
        self._end()
        return Outcome(
            self._seed,
            self.level,
            self._events,
            self.clock.us,
            self._number,
            self.judge.commits,
            sum(len(passage.delivered) for reader in self.readers for passage in reader.passages),
            self.judge.codes,
            self._digest.hexdigest(),
        )

    def step(self) -> None:
        """Run the next event, outside the broker or in it."""
        loop = self.broker.loop
        turn_us, next_us = loop.next_turn_us(), self.clock.next_us()
        if turn_us is None or (next_us is not None and next_us < turn_us):
            self._events += 1
            self.clock.step()
            return
        self.clock.us = max(self.clock.us, turn_us)
        before = loop.callbacks
        try:
            loop.turn()
        except (StorageError, Fault):
            # The flusher has learned of it, or the disk failed where nobody waits.
            self.crash_broker("storage failed")
        self._events += loop.callbacks - before
        self._turns += 1
        if self._turns % CHECK_EVERY == 0 and not loop.dead and loop.idle and not self.broker.log.dirty:
            self.judge.audit(self.broker)

    def _calm_down(self) -> None:
        self.note("calm")
        self._in_chaos = False
        self.faults = Faults(delay_us=60 * MS)
        self.disk.repair()
        survivors = {
            worker.transactional_id: client for worker, client in zip(self.workers, self._clients, strict=True)
        }
        for worker, client in zip(self.workers, self._clients, strict=True):
            if survivors[worker.transactional_id] is not client or (worker.is_member and self.happens(0.2)):
                client.crash()
            if survivors[worker.transactional_id] is client:
                client.pause(0)
                if not client.alive and not self._stays_dead(client):
                    client.start()
        for client in self._reading:
            client.pause(0)

    def _stays_dead(self, client: Client) -> bool:
        """A dead member need not come back: then only the timeout ends its transaction, for which the others wait."""
        others = [other for other in self._clients if other is not client and other.alive]
        return self.workers[0].is_member and bool(others) and self.happens(0.7)

    def _end(self) -> None:
        """Workers commit again, then stop; then nothing is open, and readers read to the end."""
        alive = [
            worker
            for worker, client in zip(self.workers, self._clients, strict=True)
            if client.alive and worker.has_work
        ]
        commits = {worker.name: worker.committed for worker in self.workers}
        if self.workers[0].is_member:
            # Those commit to whom the group assigns partitions.
            self._wait(
                lambda: any(w.committed > commits[w.name] for w in self.workers) or not alive, "no member commits"
            )
        else:
            self._wait(lambda: all(w.committed > commits[w.name] for w in alive), "a worker does not commit")
        for worker in self.workers:
            worker.stopping = True
        self._wait(lambda: not any(client.alive for client in self._clients), "a worker cannot stop")
        self._wait(self._is_settled, "a transaction stays open, or readers stay behind")
        broker = self.broker
        self.judge.check(broker)
        self.judge.check_passages(broker, [passage for reader in self.readers for passage in reader.passages])

    def _is_settled(self) -> bool:
        log = self.broker.log
        if self.broker.loop.dead or log.dirty:
            return False
        for index in range(self.outputs):
            found = log.partition(OUTPUT, index)
            assert found is not None
            if found.last_stable_offset < found.high_watermark:
                return False
            if any(reader._reading[index].end < found.high_watermark for reader in self.readers):
                return False
        return not log.pending_offsets.all()

    def _wait(self, is_true: Callable[[], bool], complaint: str) -> None:
        until_us = self.clock.us + CALM_US
        while not is_true():
            ensure(self.clock.us < until_us, f"{complaint} after the faults have ended")
            check_us = self.clock.us + CALM_CHECK_US
            self.clock.at(check_us, lambda: None)
            while self.clock.us < check_us:
                self.step()

    # ---- for all parts -----------------------------------------------------------------------------------------------

    def happens(self, probability: float) -> bool:
        return probability > 0 and self.random.random() < probability

    def delay_us(self) -> int:
        return self.random.randrange(50, self.faults.delay_us + 1)

    def new_id(self) -> str:
        return f"{self.random.getrandbits(64):016x}"

    def wall_ms(self) -> int:
        return WALL_MS + self.clock.us // MS

    def note(self, *what: object) -> None:
        """Add to the course of the world, which a seed must repeat exactly."""
        line = f"{self.clock.us} {what}"
        self._digest.update(line.encode())
        if self._print_line is not None:
            self._print_line(line)

    # ---- brokers -----------------------------------------------------------------------------------------------------

    def _start_broker(self) -> None:
        self._close()
        self._number += 1
        self.note("broker starts", self._number)
        self.judge.restarted()
        self.broker = broker = self.broker_type(self, self._number)
        if self._number == 1:
            self._prepare(broker)
        broker.recover()
        ensure(not broker.log.losses, f"the log reports losses: {broker.log.losses}")
        self.judge.check(broker)

    def _prepare(self, broker: Broker) -> None:
        log = broker.log
        log.create_topic(INPUT, self.inputs, {})
        log.create_topic(OUTPUT, self.outputs, {})
        log.set_feature_level(TRANSACTION_VERSION, self.level)
        log.flush()

    def crash_broker(self, why: str) -> None:
        loop = self.broker.loop
        if loop.dead:
            return
        # Without the path, which no two runs share.
        self.note("broker dies", why.partition(" /")[0])
        loop.dead = True
        for link in list(self.links):
            link.broker_died()
        self.links.clear()
        self.clock.later(self.random.randrange(50 * MS, 2 * SECOND), self._start_broker)

    def _close(self) -> None:
        if hasattr(self, "broker"):
            self.broker.close()
            if self.disk.failed or self.random.random() < 0.3:
                self.note("power cut")
                self.disk.cut_power()
            self.disk.repair()

    # ---- faults ------------------------------------------------------------------------------------------------------

    def _schedule_faults(self) -> None:
        faults = self.faults
        for mean_us, act in (
            (faults.kill_us, lambda: self.crash_broker("killed")),
            (faults.disk_us, lambda: self.disk.fail_after(self.random.randrange(1, 40))),
            (faults.broker_pause_us, lambda: self.broker.loop.stop(self.random.randrange(20 * SECOND))),
            (faults.client_crash_us, self._crash_client),
            (faults.client_pause_us, self._pause_client),
            (faults.sweep_us, self._sweep),
            (faults.level_us, self._change_level),
        ):
            if mean_us is not None:
                self._schedule(mean_us, act)

    def _schedule(self, mean_us: int, act: Callable[[], None]) -> None:
        self.clock.later(int(self.random.expovariate(1 / mean_us)), self._strike, mean_us, act)

    def _strike(self, mean_us: int, act: Callable[[], None]) -> None:
        if self._in_chaos:
            act()
            self._schedule(mean_us, act)

    def _crash_client(self) -> None:
        client = self.random.choice(self._clients)
        if client.alive:
            client.crash()
            self.clock.later(self.random.choice([100 * MS, 3 * SECOND, 30 * SECOND]), self._start_again, client)

    def _start_again(self, client: Client) -> None:
        if self._in_chaos and not client.alive:
            client.start()

    def _pause_client(self) -> None:
        self.random.choice([*self._clients, *self._reading]).pause(
            self.random.randrange(self.random.choice([SECOND, 30 * SECOND]))
        )

    def _sweep(self) -> None:
        """Housekeeping, as the server does it."""
        self._in_broker(lambda: self.broker.log.sweep(self.wall_ms()))

    def _change_level(self) -> None:
        self.level = self.random.choice([0, 1, 2])
        self.note("transaction.version", self.level)
        self._in_broker(lambda: self.broker.log.set_feature_level(TRANSACTION_VERSION, self.level))

    def _in_broker(self, act: Callable[[], object]) -> None:
        if self.broker.loop.dead:
            return
        try:
            self.broker.log.flush()
            act()
            self.broker.flusher.schedule()
        except (StorageError, Fault) as error:
            self.broker.flusher.fail(error)


@contextlib.contextmanager
def _without_real_time() -> Iterator[None]:
    """Let the storage do nothing every second of real time, and no work in slices of it: a slow machine would change the world."""
    with (
        patch.object(evidence, "MARKER_SYNC_SECONDS", math.inf),
        patch.object(flush, "ENDS_SYNC_SECONDS", math.inf),
        patch.object(housekeeping, "SLICE_SECONDS", math.inf),
    ):
        yield


def run_seed(seed: int, events: int, print_line: Callable[[str], None] | None = None) -> Outcome:
    return World(seed, events, print_line).run()
