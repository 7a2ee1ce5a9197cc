"""Cycles of kill and restart under load, at times that a seed chooses, followed by a check of everything."""

from __future__ import annotations

import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from broker.protocol.record_batch import batches, check_crc, decode_records
from broker.storage import OFFSETS_TOPIC, Log, LogSettings
from tests.durability.account import Account, fetch_offsets
from tests.durability.load import GROUP, PARTITIONS, SIMPLE_GROUP, TOPIC, Load
from tests.durability.parts import Violation
from tests.durability.victim import Victim
from tests.harness.requests import create_topic
from tests.harness.wire_client import ConnectionClosed, WireClient

LOAD, START_UP, REBALANCE = "under load", "at start-up", "after a rebalance"
# The kinds of ten cycles; a short run starts with one of each.
DECK = (LOAD, REBALANCE, START_UP, LOAD, REBALANCE, LOAD, START_UP, LOAD, REBALANCE, LOAD)
# What is acknowledged to clients that reach the broker.
ACKNOWLEDGED = ("idempotent", "plain", "commits")
REBALANCE_WITHIN_S = 15.0
SETTLE_WITHIN_S = 60.0
POLL_INTERVAL_S = 0.004


@dataclass
class Summary:
    durability: str
    cycles: int = 0
    seconds: float = 0.0
    kills: Counter[str] = field(default_factory=Counter)
    acknowledged: Counter[str] = field(default_factory=Counter)
    records: int = 0
    plain_records_repeated: int = 0
    generations: int = 0
    generations_learned: int = 0
    restored_below_the_newest: int = 0
    members: int = 0
    restart_ms_median: float = 0.0
    restart_ms_most: float = 0.0

    def rows(self) -> dict[str, object]:
        return {**vars(self), "kills": dict(self.kills), "acknowledged": dict(self.acknowledged)}


def run(directory: Path, seed: int, rounds: int, report: Callable[[str], None]) -> dict[str, object]:
    return Run(directory, seed, Victim(directory, durability="power"), report).run(rounds).rows()


class Run:
    """One run in its own directory, which the caller removes."""

    def __init__(self, directory: Path, seed: int, victim: Victim, report: Callable[[str], None]) -> None:
        self._directory, self._victim, self._report = directory, victim, report
        self._random = Random(seed)
        self._restarts_s: list[float] = []
        self._cycle = 0
        self.summary = Summary(victim.durability)

    def run(self, cycles: int) -> Summary:
        """Run the cycles. Raises Violation. All processes end with the call."""
        began, load = time.monotonic(), None
        try:
            self._start()
            with self._victim.client() as client:
                create_topic(client, TOPIC, PARTITIONS)
            load = Load(self._directory, self._victim.bootstrap)
            self._load, self._account = load, Account(load)
            for _ in range(3):
                load.join()
            self._watch(self._settled, SETTLE_WITHIN_S)
            for number, kind in zip(range(1, cycles + 1), self._kinds(), strict=False):
                self._cycle = number
                self._one_cycle(kind)
            self._finish()
        except (AssertionError, OSError, ConnectionClosed) as error:
            raise Violation(f"cycle {self._cycle}: {type(error).__name__}: {error}") from error
        finally:
            if load is not None:
                load.kill()
            self._victim.kill()
            self._sum_up(time.monotonic() - began)
        return self.summary

    def _kinds(self) -> Iterator[str]:
        yield from DECK
        while True:
            yield from self._random.sample(DECK, len(DECK))

    def _one_cycle(self, kind: str) -> None:
        self._wait_for_acknowledgements()
        moment = {LOAD: self._under_load, START_UP: self._under_load, REBALANCE: self._in_a_rebalance}[kind]()
        self._victim.kill()
        self.summary.kills[kind if kind != START_UP else LOAD] += 1
        self._account.read_journals()
        self._account.generations.restarted()
        if kind == START_UP:
            moment = self._killed_at_start()
        took = self._start()
        with self._victim.client() as client:
            self._account.check(client)
            self._account.describe(client)
        self._load.check()
        counts = self._account.acknowledged
        self._report(
            f"cycle {self._cycle}: killed {kind} ({moment}), serving after {took * 1000:.0f} ms, generation"
            f" {self._account.generations.newest}, acknowledged so far: {counts['idempotent'] + counts['plain']} records,"
            f" {counts['commits'] + counts['group commits']} commits"
        )
        self.summary.cycles = self._cycle

    def _start(self) -> float:
        self._victim.spawn()
        self._restarts_s.append(self._victim.wait_until_ready())
        return self._restarts_s[-1]

    # -- the moments

    def _wait_for_acknowledgements(self) -> None:
        """Wait until every client has reached this run of the broker, so that the kill affects them."""
        self._account.read_journals()
        before = self._account.acknowledged.copy()
        # The group takes more than a second to continue: every other kill does not wait for it.
        wanted = (*ACKNOWLEDGED, "group commits") if self._random.random() < 0.5 else ACKNOWLEDGED

        def all_continue(_: str) -> bool:
            self._account.read_journals()
            return all(self._account.acknowledged[what] > before[what] for what in wanted)

        assert self._watch(all_continue, SETTLE_WITHIN_S), f"since the restart: {self._account.acknowledged - before}"

    def _under_load(self) -> str:
        seconds = self._random.uniform(0, 0.8)
        self._watch(lambda state: False, seconds)
        return f"after {seconds:.2f} s"

    def _killed_at_start(self) -> str:
        """Kill the broker one to three more times, during recovery or as it starts to serve."""
        moments = [self._random.uniform(0.03, 0.35) for _ in range(self._random.randrange(1, 4))]
        for moment in moments:
            self._victim.spawn()
            time.sleep(moment)
            self._victim.kill()
            self.summary.kills[START_UP] += 1
        return "after " + ", ".join(f"{moment:.2f}" for moment in moments) + " s"

    def _in_a_rebalance(self) -> str:
        """A member joins or leaves, and the kill hits one step of the rebalance."""
        before = self._account.generations.newest
        state = self._random.choice(("PreparingRebalance", "CompletingRebalance", "Stable"))
        present = len(self._load.present())
        if present > 3 or (present == 3 and self._random.random() < 0.6):
            change = self._load.leave(self._random)
        else:
            change = f"{self._load.join()} joins"

        def is_reached(found: str) -> bool:
            has_moved = self._account.generations.newest > before
            return found == state if state == "PreparingRebalance" else has_moved and found in (state, "Stable")

        reached = self._watch(is_reached, REBALANCE_WITHIN_S)
        time.sleep(self._random.choice((0, 0, self._random.uniform(0, 0.02))))
        return f"{change}, {state}" if reached else f"{change}, {state} was not reached"

    def _watch(self, met: Callable[[str], bool], seconds: float) -> bool:
        """Poll the state of the group until `met` is true of it. False if the time is over."""
        deadline = time.monotonic() + seconds
        with self._victim.client() as client:
            while not met(self._account.describe(client)):
                left = deadline - time.monotonic()
                if left <= 0:
                    self._account.watch_ends(client)
                    return False
                time.sleep(min(left, POLL_INTERVAL_S))
        return True

    def _settled(self, state: str) -> bool:
        self._account.read_journals()
        counts = self._account.acknowledged
        return state == "Stable" and all(counts[what] for what in (*ACKNOWLEDGED, "group commits"))

    # -- the end

    def _finish(self) -> None:
        """Check that everything sent is acknowledged, stored and consumed; check again after a last kill, and in the files."""
        self._load.stop_producers()
        account = self._account
        with self._victim.client() as client:
            account.check(client)
            self._wait_until_consumed(client)
        self._load.stop_members()
        self._victim.kill()
        account.read_journals()
        account.generations.restarted()
        self._start()
        with self._victim.client() as client:
            account.check(client)
            for partition in range(PARTITIONS):
                account.read_records(client, partition, 0)
            commits = {group: fetch_offsets(client, group) for group in (GROUP, SIMPLE_GROUP)}
        account.check_received()
        self._victim.kill()
        self._read_files(commits)

    def _wait_until_consumed(self, client: WireClient) -> None:
        deadline = time.monotonic() + SETTLE_WITHIN_S
        while not self._account.is_consumed:
            assert time.monotonic() < deadline, (
                f"committed {self._account.group_commits}, the log ends at {self._account.high_watermarks}"
            )
            time.sleep(0.02)
            self._account.read_journals()
            self._account.watch_ends(client)

    def _read_files(self, commits: dict[str, dict[int, tuple[int, str]]]) -> None:
        """Open the data directory without a broker, as after damage: every batch of every segment is checked."""
        wall_ms = time.time_ns() // 1_000_000
        log = Log.open(self._victim.data_dir, LogSettings(), wall_ms=wall_ms, accept_loss=True)
        try:
            assert log.losses == [], log.losses
            for index, known in enumerate(self._account.records):
                found = list(_values(log, TOPIC, index))
                assert found == [f"{name} {number}" for name, number in known], f"{TOPIC}-{index} differs in its files"
            for index in range(log.topics[OFFSETS_TOPIC].partition_count):
                for _ in _values(log, OFFSETS_TOPIC, index):
                    pass
            for group, offsets in commits.items():
                assert len(log.groups.offset_rows(group)) == len(offsets), f"offsets of {group} differ in the files"
        finally:
            log.close()

    def _sum_up(self, seconds: float) -> None:
        summary = self.summary
        summary.seconds = round(seconds, 1)
        if self._restarts_s:
            summary.restart_ms_median = round(statistics.median(self._restarts_s) * 1000, 1)
            summary.restart_ms_most = round(max(self._restarts_s) * 1000, 1)
        if hasattr(self, "_account"):
            account = self._account
            summary.acknowledged = account.acknowledged
            summary.records = sum(map(len, account.records))
            summary.plain_records_repeated = account.repeated
            summary.generations = account.generations.newest
            summary.generations_learned = len(account.generations.learned)
            summary.restored_below_the_newest = account.generations.went_back
            summary.members = len(self._load.members)


def _values(log: Log, topic: str, index: int) -> Iterator[str]:
    partition = log.partition(topic, index)
    assert partition is not None
    offset = partition.log_start_offset
    while True:
        found = partition.read(offset, 1 << 20, at_least_one=True)
        content = found if isinstance(found, bytes) else found.tobytes() if found is not None else b""
        if not content:
            return
        for position, header in batches(content):
            assert check_crc(content, position, header), f"{topic}-{index}: a bad batch at {header.base_offset}"
            for record in decode_records(content, position):
                if record.offset >= offset:
                    yield (record.value or b"").decode("utf-8", "replace")
            offset = header.next_offset
