"""`kill -9` at every change of a file while transactions are written and ended, and often again during the next start.

Every other start accepts losses: there are none.
"""

from __future__ import annotations

import itertools
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

from broker.protocol.errors import ErrorCode
from tests.durability.parts import Violation
from tests.durability.spawning import Ended, Nursery
from tests.durability.transactions.committed import READ_UNCOMMITTED, committed_offsets, committed_values, stable_ends
from tests.durability.transactions.values import INPUT, PARTITIONS
from tests.harness.requests import create_topic
from tests.harness.transactions import TransactionalProducer
from tests.harness.wire_client import ConnectionClosed, WireClient

PRODUCER, GROUP = "steps", "group"
# Each writes to all partitions, and commits its number as the offset of all of them.
TRANSACTIONS = {1: True, 2: False, 3: True}
"""Whether each commits, by number."""
RECOVERY_STEPS = 40


def run(directory: Path, seed: int, rounds: int, report: Callable[[str], None]) -> dict[str, object]:
    random = Random(seed)
    with Nursery() as nursery:
        prepared = directory / "prepared"
        _prepare(nursery, prepared)
        # The number of changes is unknown until a run was not killed.
        last = next(n for n in itertools.count(50, 50) if not _Round(nursery, directory, prepared, n, random).killed)
        found: Counter[str] = Counter()
        for step in _chosen(last, rounds, random):
            tried = _Round(nursery, directory, prepared, step, random)
            found[tried.outcome] += 1
    report(f"killed at {sum(found.values())} of at most {last} changes: {dict(found)}")
    return {"rounds": sum(found.values()), "outcomes": dict(found)}


def _chosen(last: int, rounds: int, random: Random) -> Iterator[int]:
    """Every step in random order, again and again."""
    steps = itertools.chain.from_iterable(random.sample(range(1, last), last - 1) for _ in itertools.count())
    return itertools.islice(steps, rounds)


def _prepare(nursery: Nursery, data_dir: Path) -> None:
    process = nursery.spawn(data_dir).ready()
    with process.client() as client:
        create_topic(client, INPUT, PARTITIONS)
        _transact(TransactionalProducer(client, PRODUCER), 0, commits=True)
    process.kill()


class _Round:
    """One kill, and what the next start shows."""

    def __init__(self, nursery: Nursery, directory: Path, prepared: Path, step: int, random: Random) -> None:
        data_dir = directory / f"step-{nursery.starts}"
        shutil.copytree(prepared, data_dir)
        self._where = f"round of step {step} in {data_dir}"
        self._ended: list[int] = []
        process = nursery.spawn(data_dir, killed_at=step)
        self.killed = True
        try:
            if process.starts():
                with process.client() as client:
                    self._write(client)
                self.killed = False
        except (ConnectionClosed, OSError, Ended):
            pass
        process.kill()
        accepted = ["--accept-loss"] if random.random() < 0.5 else []
        if random.random() < 0.5:
            again = nursery.spawn(data_dir, *accepted, killed_at=random.randrange(1, RECOVERY_STEPS))
            again.starts()
            again.kill()
        process = nursery.spawn(data_dir, *accepted).ready()
        try:
            with process.client() as client:
                self.outcome = self._check(client)
        except AssertionError as error:
            raise Violation(f"{self._where}: {error}") from error
        finally:
            process.kill()
        shutil.rmtree(data_dir)

    def _write(self, client: WireClient) -> None:
        producer = TransactionalProducer(client, PRODUCER)
        for number, commits in TRANSACTIONS.items():
            _transact(producer, number, commits=commits)
            self._ended.append(number)

    def _check(self, client: WireClient) -> str:
        visible = _visible(client)
        committed = [n for n, commits in TRANSACTIONS.items() if commits]
        assert visible[:1] == [0], f"the transaction of the run before is lost: {visible}"
        assert visible[1:] == committed[: len(visible) - 1], f"committed are {visible}"
        lost = {n for n in self._ended if TRANSACTIONS[n]} - set(visible)
        assert not lost, f"transactions {lost} were acknowledged and are lost"
        # A new producer aborts what is still open; nothing else changes.
        producer = TransactionalProducer(client, PRODUCER)
        offsets = committed_offsets(client, GROUP)
        assert offsets == dict.fromkeys(range(PARTITIONS), visible[-1]), f"of {visible}, the offsets are {offsets}"
        _transact(producer, 9, commits=False)
        assert _visible(client) == visible, f"{visible} became {_visible(client)}"
        ends = [stable_ends(client, INPUT, PARTITIONS, level) for level in (READ_UNCOMMITTED, 1)]
        assert ends[0] == ends[1], f"a transaction hangs: {ends}"
        return f"{len(self._ended)} ended, {len(visible) - 1} committed"


def _transact(producer: TransactionalProducer, number: int, *, commits: bool) -> None:
    places = [(INPUT, partition) for partition in range(PARTITIONS)]
    answer = producer.client.ask(producer.produce_request(*places, values=(str(number).encode(),)), 12)
    codes = {row.error_code for topic in answer.responses for row in topic.partition_responses}
    codes |= set(producer.commit_offsets(GROUP, INPUT, *((partition, number) for partition in range(PARTITIONS))))
    codes.add(producer.end(committed=commits))
    assert codes == {ErrorCode.NONE}, f"transaction {number}: {codes}"


def _visible(client: WireClient) -> list[int]:
    """The transactions whose records are committed: the same in every partition."""
    ends = stable_ends(client, INPUT, PARTITIONS)
    found = [
        [int(value) for _, value in committed_values(client, INPUT, partition, 0, end)]
        for partition, end in enumerate(ends)
    ]
    assert all(values == found[0] for values in found), f"the partitions differ: {found}"
    return found[0]
