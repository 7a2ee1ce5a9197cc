"""Makes random walks of a share partition: a log with transactions and missing offsets, and members that read it.

Where Kafka 4.1 is known to err, a walk does not go:
- if the log start or compaction passes several available batches, or several that are acquired are aborted, Kafka archives only the first
  (the second operand of || is not evaluated);
- if an aborted batch begins before the first record in flight, Kafka fails;
- if a record batch begins below the start offset, Kafka may acquire what is finished;
- if a gap from before a restart ends within a record batch and the limit of records is reached there, Kafka acquires the whole batch,
  with what is acknowledged;
- if the log start passes acquired records, the start offset of Kafka may move back when they time out;
- if a batch has records of two members, the end of one session may release nothing of it.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from random import Random

from broker.cores.share.in_flight import RecordState
from broker.protocol.control_records import Marker, build_marker_batch
from broker.protocol.record_batch import Record, build_batch
from tests.harness.oracle.share_partition.ours import Player

MEMBERS = ("m1", "m2", "m3")
LOCK_MS = 1000
STEPS = 40
FENCED = 124


class _Log:
    """Batches, and the aborted transactions in them."""

    def __init__(self, random: Random, *, transactions: bool, gaps: bool) -> None:
        self._random = random
        self._transactions = transactions
        self._gaps = gaps
        self.end = 0
        self.batches: list[tuple[int, int, bytes]] = []  # first offset, last offset, bytes
        self.aborted: list[tuple[int, int, int]] = []  # producer, first offset, offset of the marker

    def grow(self) -> None:
        if self._transactions and self._random.random() < 0.4:
            producer = self._random.randrange(1, 4)
            first = self.end
            for _ in range(self._random.randrange(1, 3)):
                self._append(producer)
                if self._random.random() < 0.4:
                    self._append(-1)
            is_commit = self._random.random() < 0.4
            if not is_commit:
                self.aborted.append((producer, first, self.end))
            self._add(build_marker_batch(Marker(producer, 0, 0, is_commit), timestamp_ms=0, base_offset=self.end), 1)
        else:
            if self._gaps and self._random.random() < 0.3:
                self.end += self._random.randrange(1, 5)
            self._append(-1)

    def _append(self, producer: int) -> None:
        count = self._random.randrange(1, 7)
        records = [Record(self.end + number, 0, None, b"") for number in range(count)]
        kind = {"producer_id": producer, "producer_epoch": 0, "base_sequence": 0, "is_transactional": True}
        self._add(build_batch(records, base_offset=self.end, **(kind if producer >= 0 else {})), count)  # type: ignore[arg-type]

    def _add(self, content: bytes, count: int) -> None:
        self.batches.append((self.end, self.end + count - 1, content))
        self.end += count

    def read(self, offset: int, most: int) -> list[tuple[int, int, bytes]]:
        return [batch for batch in self.batches if batch[1] >= offset][:most]


def walk(seed: int) -> Iterator[tuple[str, Player]]:
    """Commands, each with our player after it."""
    random = Random(seed)
    player = Player()
    log = _Log(random, transactions=random.random() < 0.5, gaps=random.random() < 0.4)
    for _ in range(random.randrange(1, 12)):
        log.grow()

    def played(line: str) -> tuple[str, Player]:
        player.play(line)
        return line, player

    limits = f"{random.choice([12, 25, 1000])} {random.choice([2, 3, 5])} {LOCK_MS}"
    yield played(f"new {limits} {' '.join(_stored(random, log.end))}")
    for _ in range(STEPS):
        line = _step(random, player, log)
        if line is not None:
            yield played(line)


def _stored(random: Random, log_end: int) -> list[str]:
    """The start offset, and batches from an earlier life, with what was not acknowledged missing."""
    if random.random() < 0.5 or log_end < 5:
        return [str(random.choice([0, 0, random.randrange(log_end + 1)]))]
    start = random.randrange(log_end // 2)
    found, at = [str(start)], start + random.choice([0, 0, 1, 3])
    while at < log_end and len(found) < 6:
        last = min(at + random.randrange(5), log_end - 1)
        found.append(f"{at}:{last}:{random.choice([0, 2, 4])}:{random.randrange(1, 3)}")
        at = last + random.choice([1, 1, 2, 4])
    return found if len(found) > 1 else [str(start)]


def _step(random: Random, player: Player, log: _Log) -> str | None:
    member = random.choice(MEMBERS)
    kind = random.random()
    if kind < 0.4:
        return _acquire(random, player, log, member)
    if kind < 0.75:
        return _acknowledge(random, player, member)
    if kind < 0.82:
        return f"release {member}" if _owns_whole_batches(player, member) else None
    if kind < 0.93:
        return f"advance {random.choice([300, 400, 1000])}"
    if kind < 0.96:
        return f"fail {random.choice([0, 0, FENCED])}"
    return _move_start(random, player, log)


def _acquire(random: Random, player: Player, log: _Log, member: str) -> str | None:
    partition = player.partition
    if not partition.can_acquire():
        return None
    offset = partition.next_fetch_offset()
    while log.end <= offset or random.random() < 0.3:
        log.grow()
    read = log.read(offset, random.randrange(1, 5))
    if not read:
        return None
    if partition.in_flight and read[0][0] < partition.start_offset:
        return None
    end = read[-1][1]
    aborted = [(producer, first) for producer, first, marker in log.aborted if first <= end and marker >= read[0][0]]
    committed = random.random() < 0.8
    missing = [
        batch
        for batch in partition.in_flight
        if any(
            delivery.state is RecordState.AVAILABLE and first < read[0][0] and last >= offset
            for first, last, delivery in batch.runs()
        )
    ]
    if len(missing) > 1:
        return None
    is_new = read[0][0] >= offset and not any(batch.last_offset >= offset for batch in partition.in_flight)
    if committed and aborted and not is_new:
        return None
    skipped = ",".join(f"{producer}:{first}" for producer, first in aborted) or "-"
    records = b64encode(b"".join(content for _, _, content in read)).decode()
    most = 500 if partition.has_gaps else random.choice([1, 4, 10, 500])
    sizes = f"{random.choice([1, 3, 100])} {most}"
    return f"acquire {member} {sizes} {offset} {int(committed)} {skipped} {records}"


def _acknowledge(random: Random, player: Player, member: str) -> str | None:
    batches = list(player.partition.in_flight)
    if not batches:
        return None
    own = [batch for batch in batches if any(delivery.member_id == member for _, _, delivery in batch.runs())]
    given, at = [], -1
    for _ in range(random.choice([1, 1, 2])):
        batch = random.choice(own if own and random.random() < 0.9 else batches)
        first, last = batch.first_offset, batch.last_offset
        if batch.each is not None and random.random() < 0.8:
            mine = [offset for offset, delivery in batch.each.items() if delivery.member_id == member] or [first]
            first = last = random.choice(mine)
        elif random.random() < 0.3:
            first, last = sorted(random.choices(range(first, last + 1), k=2))
        elif random.random() < 0.1:
            first, last = max(0, first - random.randrange(3)), last + random.randrange(3)
        if first <= at:
            break
        at = last
        count = last - first + 1 if random.random() < 0.3 else 1
        given.append(f"{first}:{last}:" + ",".join(str(random.choice([0, 1, 1, 1, 2, 2, 3])) for _ in range(count)))
    return f"ack {member} " + " ".join(given) if given else None


def _owns_whole_batches(player: Player, member: str) -> bool:
    for batch in player.partition.in_flight:
        owners = {delivery.member_id for delivery in (batch.each or {}).values()} - {""}
        if member in owners and len(owners) > 1:
            return False
    return True


def _move_start(random: Random, player: Player, log: _Log) -> str | None:
    partition = player.partition
    target = partition.start_offset + random.randrange(1, 8)
    if target > log.end:
        return None
    whole = split = 0
    for batch in partition.in_flight:
        if batch.first_offset >= target:
            break
        below = [
            first for first, _, delivery in batch.runs() if delivery.state is RecordState.AVAILABLE and first < target
        ]
        is_covered = (
            batch.whole is not None and partition.start_offset <= batch.first_offset and batch.last_offset < target
        )
        if any(delivery.state is RecordState.ACQUIRED and first < target for first, _, delivery in batch.runs()):
            return None
        whole += bool(below) and is_covered
        split += bool(below) and not is_covered
    return f"start {target}" if whole <= 1 and split <= 1 else None
