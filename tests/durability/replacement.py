"""A data directory that is replaced under a running broker: the old broker leaves at once and harms nothing of the new one."""

from __future__ import annotations

import os
import shutil
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random

from broker.protocol.errors import ErrorCode
from broker.protocol.messages.delete_topics import DeleteTopicsRequest
from broker.protocol.wire_types import DecodeError
from broker.server.failures import HELD
from tests.durability import judge
from tests.durability.images import ALL, Ledger, Writer
from tests.durability.judge import Answers
from tests.durability.parts import Violation
from tests.durability.spawning import Ended, Nursery, Process
from tests.harness.requests import commit_request, produce
from tests.harness.wire_client import ConnectionClosed, WireClient

# The sweeps of the old broker delete, compact and checkpoint as often as they can.
BUSY = ("log.cleaner.backoff.ms=1", "log.retention.check.interval.ms=1", "log.retention.bytes=100")
KEPT = {"retention_ms": "-1", "retention_bytes": "-1", "segment_ms": "1000"}
DOOMED = {"retention_ms": "1", "segment_ms": "1"}
GONE_WITHIN_S = 2.0
SHOWN = 12


def run(directory: Path, seed: int, rounds: int, report: Callable[[str], None]) -> dict[str, object]:
    """A round has the seed `seed + round`."""
    figures: Counter[str] = Counter()
    failures: list[str] = []
    slowest = 0.0
    with Nursery() as nursery:
        for number in range(rounds):
            case = Case(nursery, directory / str(seed + number), Random(seed + number))
            try:
                case.run()
                slowest = max(slowest, case.gone_after_s)
            except (AssertionError, OSError, ConnectionClosed) as error:
                failures.append(f"round {number} (seed {seed + number}; {case.words}): {type(error).__name__}: {error}")
                report(failures[-1])
            finally:
                case.end()
            figures["rounds"] += 1
            figures[case.way] += 1
            figures["records of the new broker"] += case.records
    if failures:
        raise Violation(f"{len(failures)} of {rounds} rounds: " + " | ".join(failures[:SHOWN]))
    return {**figures, "slowest exit of the old broker, ms": round(slowest * 1000)}


class Case:
    def __init__(self, nursery: Nursery, directory: Path, random: Random, fault: str | None = None) -> None:
        directory.mkdir(parents=True)
        self._nursery, self._random, self._fault = nursery, random, fault
        self._directory = directory / "data"
        self._processes: list[Process] = []
        self._clients: list[WireClient] = []
        self.gone_after_s = 0.0
        self.records = 0
        self.way, self.words = "", ""

    def end(self) -> None:
        for client in self._clients:
            client.close()
        for process in self._processes:
            process.kill()

    def run(self) -> None:
        random = self._random
        old = self._spawn()
        ledger = Ledger()
        old_client = old.client()
        self._clients.append(old_client)
        self._fill(old_client, ledger, Writer(ledger, random))
        self.way = random.choice(list(WAYS))
        busy = random.random() < 0.7
        self.words = f"{self.way}, the old broker {'is busy' if busy else 'rests'}"
        if random.random() < 0.3:
            # Work for a sweep of the old broker that finds the new directory.
            old_client.ask(DeleteTopicsRequest(topics=[DeleteTopicsRequest.Topic(name="short")], timeout_ms=1000))
        before = WAYS[self.way](self._directory)
        replaced_at = time.monotonic()
        new = self._spawn_new(replaced_at + GONE_WITHIN_S)
        new_ledger = ledger if before else Ledger()
        writer = Writer(new_ledger, random)
        with new.client() as client:
            self._fill(client, new_ledger, writer, again=before)
            deadline = replaced_at + GONE_WITHIN_S
            while old.code is None and time.monotonic() < deadline:
                if busy:
                    self._use_old(old_client)
                self._fill(client, new_ledger, writer, again=True)
            self.gone_after_s = time.monotonic() - replaced_at
            assert old.code is not None, (
                f"the old broker still runs {GONE_WITHIN_S:g} s after its directory was replaced"
            )
            assert old.code != 0, "the old broker ended as if nothing had happened"
            lines = old.error_lines()
            assert len(lines) == 1, f"not one line: {lines}"
            assert str(self._directory) in lines[0], f"the line does not name the directory: {lines[0]}"
            assert (self._directory / "ready.json").exists(), "the old broker removed the ready file of the new one"
            self._check(client, new_ledger)
        self._random.choice((new.kill, new.stop))()
        again = self._spawn()
        with again.client() as client:
            self._check(client, new_ledger)
        again.kill()
        self.records = sum(len(known.offsets) for known in new_ledger.partitions.values())

    def _spawn(self) -> Process:
        settings = [word for name in BUSY for word in ("--override", name)]
        self._processes.append(self._nursery.spawn(self._directory, *settings, fault=self._fault))
        return self._processes[-1].ready()

    def _spawn_new(self, deadline: float) -> Process:
        """As long as the old broker holds the directory itself, the new one may be refused."""
        while True:
            try:
                return self._spawn()
            except Ended:
                if self._processes[-1].code != HELD or time.monotonic() > deadline:
                    raise
            time.sleep(0.05)

    def _fill(self, client: WireClient, ledger: Ledger, writer: Writer, *, again: bool = False) -> None:
        if not again:
            writer.create(client, "kept", 2, KEPT)
            writer.create(client, "keys", 1, {**ALL, "cleanup_policy": "compact", "min_compaction_lag_ms": str(10**12)})
            writer.create(client, "short", 1, DOOMED)
        for _ in range(6):
            writer.later()
            for topic, (partitions, _) in ledger.topics.items():
                for partition in range(partitions):
                    if topic != "short":
                        writer.produce(client, topic, partition)
        if "short" in ledger.topics and not again:
            for _ in range(5):
                produce(client, "short", b"short")

    def _use_old(self, client: WireClient) -> None:
        """Requests to the old broker. None may succeed: what it writes is gone."""
        try:
            request = self._random.choice(("produce", "commit"))
            if request == "produce":
                code = produce(client, "kept", b"into the void").error_code
            else:
                answer = client.ask(commit_request("g", None, "kept", 1), 8)
                code = answer.topics[0].partitions[0].error_code
        except (ConnectionClosed, OSError, DecodeError):
            return
        assert code != ErrorCode.NONE, f"the old broker acknowledged a {request} after its directory was replaced"

    def _check(self, client: WireClient, ledger: Ledger) -> None:
        for key, known in ledger.partitions.items():
            answers = Answers()
            judge.read_partition(client, key, known, answers, self._random)
            assert not answers.wrong, "; ".join(answers.wrong[:3])
            assert not answers.errors, f"{key} is damaged at {answers.errors[:3]}"
            lost = {batch.base_offset for batch in known.batches} - answers.served[key]
            assert not lost, f"the new broker lost batches of {key}: {sorted(lost)}"
            assert answers.ends[key] == known.end, f"{key} ends at {answers.ends[key]} instead of {known.end}"


# Each returns whether the new broker finds the topics of the old one.


def _remove(directory: Path) -> bool:
    shutil.rmtree(directory)
    return False


def _rename(directory: Path) -> bool:
    directory.rename(directory.with_name("away"))
    return False


def _copy(directory: Path) -> bool:
    """As a restored backup does: same topics, same file names, other inodes."""
    shutil.copytree(directory, directory.with_name("copy"))
    (directory / "ready.json").unlink(missing_ok=True)
    directory.rename(directory.with_name("away"))
    (directory.with_name("copy") / "ready.json").unlink(missing_ok=True)
    directory.with_name("copy").rename(directory)
    return True


def _link(directory: Path) -> bool:
    directory.rename(directory.with_name("away"))
    directory.with_name("elsewhere").mkdir()
    os.symlink("elsewhere", directory)
    return False


def _empty(directory: Path) -> bool:
    """The directory stays, its content goes, the lock included."""
    for path in directory.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    return False


WAYS: dict[str, Callable[[Path], bool]] = {
    "removed": _remove,
    "renamed": _rename,
    "replaced by a copy": _copy,
    "replaced by a link": _link,
    "emptied": _empty,
}
