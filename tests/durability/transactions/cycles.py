"""Cycles of kill and restart under transactional load, at times that a seed chooses, each followed by a check."""

from __future__ import annotations

import statistics
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from broker.storage import Log, LogSettings
from tests.durability.parts import Violation
from tests.durability.transactions.account import Account
from tests.durability.transactions.committed import READ_UNCOMMITTED, RETRY_S, stable_ends
from tests.durability.transactions.load import ASSIGNED, SOURCES, SUBSCRIBED, Load, output_of
from tests.durability.transactions.values import INPUT, PARTITIONS
from tests.durability.victim import Victim
from tests.harness.requests import create_topic
from tests.harness.wire_client import ConnectionClosed, WireClient

PROGRESS_WITHIN_S = 60.0
LOAD, START_UP = "under load", "at start-up"
REPLACED = 0.2  # the share of cycles that replace a copier


@dataclass
class Summary:
    cycles: int = 0
    seconds: float = 0.0
    kills: Counter[str] = field(default_factory=Counter)
    counts: Counter[str] = field(default_factory=Counter)
    restart_ms_median: float = 0.0
    restart_ms_most: float = 0.0

    def rows(self) -> dict[str, object]:
        return {**vars(self), "kills": dict(self.kills), "counts": dict(sorted(self.counts.items()))}


def run(directory: Path, seed: int, rounds: int, report: Callable[[str], None]) -> dict[str, object]:
    victim = Victim(directory, durability="power")
    return Run(directory, seed, victim, report, groups=(ASSIGNED, SUBSCRIBED)).run(rounds).rows()


class Run:
    """One run in its own directory, which the caller removes."""

    def __init__(
        self,
        directory: Path,
        seed: int,
        victim: Victim,
        report: Callable[[str], None],
        *,
        groups: tuple[str, ...] = (ASSIGNED,),
    ) -> None:
        self._directory, self._victim, self._report, self._groups = directory, victim, report, groups
        self._random = Random(seed)
        self._restarts_s: list[float] = []
        self._cycle = 0
        self.summary = Summary()

    def run(self, cycles: int) -> Summary:
        """Run the cycles. Raises Violation. All processes end with the call."""
        began, load = time.monotonic(), None
        try:
            self._start()
            with self._victim.client() as client:
                for topic in (INPUT, *map(output_of, self._groups)):
                    create_topic(client, topic, PARTITIONS)
            load = self._load = Load(self._directory, self._victim.bootstrap, self._groups)
            self._account = Account(load)
            for number in range(1, cycles + 1):
                self._cycle = number
                self._one_cycle()
            self._finish()
        except (AssertionError, OSError, ConnectionClosed) as error:
            raise Violation(f"cycle {self._cycle}: {type(error).__name__}: {error}") from error
        finally:
            if load is not None:
                load.kill()
                self.summary.counts = self._account.counts
            self._victim.kill()
            self.summary.seconds = round(time.monotonic() - began, 1)
            in_ms = [second * 1000 for second in self._restarts_s]
            self.summary.restart_ms_median = round(statistics.median(in_ms), 1)
            self.summary.restart_ms_most = round(max(in_ms), 1)
        return self.summary

    def _one_cycle(self) -> None:
        self._wait_for_progress()
        changed = f", {self._load.replace_copier(self._random)}" if self._random.random() < REPLACED else ""
        seconds = self._random.uniform(0, 0.5)
        time.sleep(seconds)
        self._kill(LOAD)
        while self._random.random() < 0.25:
            self._victim.spawn()
            time.sleep(self._random.uniform(0.03, 0.35))
            self._kill(START_UP)
        took = self._start()
        with self._victim.client() as client:
            self._account.check(client)
        self._load.check()
        counts = self._account.counts
        self._report(
            f"cycle {self._cycle}: killed after {seconds:.2f} s{changed}, serving after {took * 1000:.0f} ms,"
            f" {counts['visible']} records committed so far"
        )
        self.summary.cycles = self._cycle

    def _kill(self, moment: str) -> None:
        self._victim.kill()
        self.summary.kills[moment] += 1

    def _start(self) -> float:
        self._victim.spawn()
        self._restarts_s.append(self._victim.wait_until_ready())
        return self._restarts_s[-1]

    def _wait_for_progress(self) -> None:
        """Wait until the sources and the copiers of fixed partitions have committed in this run of the broker.

        Also until each source has aborted once in any run, so that the first check meets both ends.
        """
        account = self._account
        account.read_journals()
        before = account.counts.copy()
        wanted = [f"{name} committed" for name in SOURCES]
        wanted += [f"{name} copied" for name, (group, _) in self._load.copiers.items() if group == ASSIGNED]
        deadline = time.monotonic() + PROGRESS_WITHIN_S
        aborts = [f"{name} aborted" for name in SOURCES]
        while not (
            all(account.counts[what] > before[what] for what in wanted) and all(map(account.counts.get, aborts))
        ):
            self._victim.check()
            self._load.check()
            assert time.monotonic() < deadline, f"no progress: {account.counts - before}"
            time.sleep(RETRY_S)
            account.read_journals()

    # -- the end

    def _finish(self) -> None:
        """Let everything be copied; check that nothing is half or hangs, again after a last kill, and in the files."""
        self._load.stop_sources()
        deadline = time.monotonic() + PROGRESS_WITHIN_S
        with self._victim.client() as client:
            while True:
                self._account.check(client)
                if self._account.is_copied() and self._nothing_hangs(client):
                    break
                assert time.monotonic() < deadline, "not everything that is committed was copied"
                time.sleep(0.05)
        self._load.kill()
        self._kill(LOAD)
        self._start()
        with self._victim.client() as client:
            self._account.check(client)
            self._account.check_whole()
            for topic in (self._account.input, *self._account.outputs.values()):
                topic.read_again(client)
        self._victim.kill()
        log = Log.open(self._victim.data_dir, LogSettings(), wall_ms=time.time_ns() // 1_000_000, accept_loss=True)
        try:
            assert log.losses == [], log.losses
        finally:
            log.close()

    def _nothing_hangs(self, client: WireClient) -> bool:
        topics = [INPUT, *map(output_of, self._groups)]
        return all(
            stable_ends(client, topic, PARTITIONS) == stable_ends(client, topic, PARTITIONS, READ_UNCOMMITTED)
            for topic in topics
        )
