"""Chooses the moves of a walk by a seed and by what was seen before: mostly what members would do, sometimes what is wrong."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from tests.harness.oracle.share_data.player import PARTITIONS, Move, Seen

MEMBERS = ("m1", "m2", "m3")
ACCEPT, RELEASE, REJECT = 1, 2, 3
MOST_DELIVERIES = 5
LENGTH = 45


class Walk:
    """`moves` yields what to do next; `learn` takes what was seen then.

    A session reads one partition: which one of several is loaded first is up to Kafka.
    """

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(f"share data {seed}")
        self.ends = [0] * PARTITIONS
        self.batches: list[list[int]] = [[0] for _ in range(PARTITIONS)]  # where they begin, and the end
        self.joined: set[str] = set()
        self.reads: dict[str, int] = {}  # the partition of a member's session
        self.free: list[set[int]] = [set() for _ in range(PARTITIONS)]
        self.held: dict[str, dict[tuple[int, int], int]] = {one: {} for one in MEMBERS}  # delivery counts
        self._move: Move = []

    def moves(self) -> Iterator[Move]:
        yield from self._made([["beat", "m1"], ["beat", "m1"], ["produce", 0, 5], ["produce", 1, 3]])
        for _ in range(LENGTH):
            yield from self._made([self._chosen()])
        for member in sorted(self.joined):
            yield from self._made([["leave", member]])
        while members := self._alone():
            yield from self._made([["close", members[0], []]])
        yield from self._made([["delete_group"]])

    def _made(self, moves: list[Move]) -> Iterator[Move]:
        for move in moves:
            self._move = move
            yield move

    def _chosen(self) -> Move:
        while True:
            kind = self.rng.choices(*zip(*WEIGHTS.items(), strict=True))[0]
            found: Move | None = getattr(self, f"_{kind}")()
            if found is not None:
                return found

    # ---- moves

    def _produce(self) -> Move:
        return ["produce", self.rng.randrange(PARTITIONS), self.rng.randint(1, 5)]

    def _beat(self) -> Move:
        return ["beat", self.rng.choice(MEMBERS)]

    def _leave(self) -> Move | None:
        return ["leave", self.rng.choice(sorted(self.joined))] if self.joined else None

    def _fetch(self) -> Move | None:
        """Mostly where records are available, as the answer takes a second if there are none."""
        rng = self.rng
        member = rng.choice(sorted(self.joined) or list(MEMBERS))
        if member in self.reads:
            partition, asked, forget = self.reads[member], [], []
            if rng.random() < 0.2 and not self.held[member]:
                forget, partition = [partition], 1 - partition
                asked = [partition]
        else:
            partition = rng.randrange(PARTITIONS)
            asked, forget = [partition], []
        if not self.free[partition] and rng.random() < 0.9:
            return None
        # A session that begins acknowledges nothing.
        acks = self._acks(member, rng.random() < 0.1) if member in self.reads and rng.random() < 0.4 else []
        # What a fetch releases, Kafka may deliver with its answer, or not, as it is about to store that.
        acks = [ack for ack in acks if ack[0] in (partition, *forget) and RELEASE not in ack[3]]
        return ["fetch", member, asked, forget, [rng.choice((1, 2, 3, 10)), rng.choice((1, 2, 10))], acks]

    def _acknowledge(self) -> Move | None:
        members = [one for one in self.reads if self.held[one]]
        if not members:
            return None
        member = self.rng.choice(members)
        return ["acknowledge", member, self._acks(member, False)]

    def _acknowledge_wrongly(self) -> Move | None:
        if not self.reads:
            return None
        member = self.rng.choice(sorted(self.reads))
        if self.rng.random() < 0.3:
            return ["acknowledge", member, self._acks(member, False), self.rng.choice((-2, 1, 5))]
        return ["acknowledge", member, self._acks(member, True)]

    def _stray(self) -> Move | None:
        return ["stray", self.rng.choice(sorted(self.reads)), self.rng.choice((-1, 1, 4))] if self.reads else None

    def _close(self) -> Move | None:
        members = self._alone()
        if not members:
            return None
        member = self.rng.choice(members)
        return ["close", member, self._acks(member, False) if self.rng.random() < 0.5 else []]

    def _drop(self) -> Move | None:
        members = self._alone()
        return ["drop", self.rng.choice(members)] if members else None

    def _alone(self) -> list[str]:
        """The members whose partition no other has records of: else the end of a session may release nothing."""
        held = {one: {partition for partition, _ in self.held[one]} for one in MEMBERS}
        return [
            one
            for one, partition in sorted(self.reads.items())
            if not any(partition in found for other, found in held.items() if other != one)
        ]

    def _delete(self) -> Move | None:
        """Kafka notices it only when a member has something to write, so there are no sessions then."""
        if self.reads:
            return self._close()
        if self.joined and self.rng.random() < 0.8:
            return self._leave()
        return ["delete"]

    def _truncate(self) -> Move:
        """At the start of a batch: else Kafka may deliver deleted records of it."""
        partition = self.rng.randrange(PARTITIONS)
        return ["truncate", partition, self.rng.choice(self.batches[partition])]

    def _acks(self, member: str, is_wrong: bool) -> list[Any]:
        """Of some of what the member holds, in runs; wrong ones name records that it may not hold."""
        rng, out = self.rng, []
        by_partition: dict[int, list[int]] = {}
        for partition, offset in sorted(self.held[member]):
            by_partition.setdefault(partition, []).append(offset)
        if is_wrong:
            partition = rng.randrange(PARTITIONS)
            first = rng.randint(0, max(self.ends[partition], 1))
            last = first + rng.choice((0, 1, 3))
            return [[partition, first, last, rng.choice(([ACCEPT], [RELEASE], [ACCEPT] * 2, [0], [REJECT], [5]))]]
        for partition, offsets in by_partition.items():
            runs = [[offsets[0], offsets[0]]]
            for offset in offsets[1:]:
                if offset == runs[-1][1] + 1 and rng.random() < 0.7:
                    runs[-1][1] = offset
                else:
                    runs.append([offset, offset])
            for first, last in runs:
                if rng.random() < 0.75:
                    kinds = [rng.choice((ACCEPT, ACCEPT, ACCEPT, RELEASE, REJECT)) for _ in range(first, last + 1)]
                    out.append([partition, first, last, kinds if rng.random() < 0.4 else kinds[:1]])
        return out

    # ---- what was seen

    def learn(self, seen: Seen) -> None:
        name, *arguments = self._move
        learn = getattr(self, f"_learn_{name}", None)
        if learn is not None:
            learn(seen["answer"], *arguments)

    def _learn_produce(self, _: Any, partition: int, count: int) -> None:
        end = self.ends[partition]
        self.free[partition] |= set(range(end, end + count))
        self.ends[partition] += count
        self.batches[partition].append(self.ends[partition])

    def _learn_beat(self, answer: Any, member: str) -> None:
        (self.joined.discard if answer[0] else self.joined.add)(member)

    def _learn_leave(self, _: Any, member: str) -> None:
        self.joined.discard(member)

    def _learn_fetch(self, answer: Any, member: str, asked: Any, forget: Any, limits: Any, acks: Any) -> None:
        if answer[0]:
            self._forget(member)
            return
        if asked:
            self.reads[member] = asked[0]
        done = {row[0] for row in answer[2] if not row[2]}
        self._learn_acks(member, [ack for ack in acks if ack[0] in done])
        for partition, _, _, _, acquired in answer[2]:
            for first, last, count in acquired:
                for offset in range(first, last + 1):
                    self.free[partition].discard(offset)
                    self.held[member][partition, offset] = count

    def _learn_acknowledge(self, answer: Any, member: str, acks: Any, ahead: int = 0) -> None:
        if answer[0]:
            return
        done = {row[0] for row in answer[1] if not row[1]}
        self._learn_acks(member, [ack for ack in acks if ack[0] in done])

    def _learn_acks(self, member: str, acks: Any) -> None:
        for partition, first, last, types in acks:
            for offset in range(first, last + 1):
                count = self.held[member].pop((partition, offset), 0)
                kind = types[offset - first] if len(types) > 1 else types[0]
                if kind == RELEASE and count < MOST_DELIVERIES:
                    self.free[partition].add(offset)

    def _learn_close(self, _: Any, member: str, acks: Any) -> None:
        self._learn_acks(member, acks)
        self._forget(member)

    def _learn_drop(self, _: Any, member: str) -> None:
        self._forget(member)

    def _forget(self, member: str) -> None:
        self.reads.pop(member, None)
        for (partition, offset), count in self.held[member].items():
            if count < MOST_DELIVERIES:
                self.free[partition].add(offset)
        self.held[member].clear()

    def _learn_delete(self, answer: Any) -> None:
        if not answer[0]:
            self.free = [set(range(end)) for end in self.ends]

    def _learn_truncate(self, _: Any, partition: int, offset: int) -> None:
        self.free[partition] = {one for one in self.free[partition] if one >= offset}


WEIGHTS = {
    "produce": 4.0,
    "beat": 2.0,
    "leave": 0.5,
    "fetch": 12.0,
    "acknowledge": 6.0,
    "acknowledge_wrongly": 1.0,
    "stray": 0.5,
    "close": 0.7,
    "drop": 0.7,
    "delete": 0.8,
    "truncate": 0.6,
}


_JOINS: list[Move] = [["beat", "m1"], ["beat", "m1"]]
# When the last client disconnects, Kafka forgets the partitions, of which it may not have noticed the new offsets.
_LEAVES: list[Move] = [["leave", "m1"], ["drop", "m1"]]
# AlterShareGroupOffsets. In Kafka 4.1 it does nothing; in Kafka 4.2 it also makes groups.
ALTERATIONS: list[Move] = [
    *_JOINS,
    *(["produce", 0, 5], ["produce", 1, 3]),
    ["fetch", "m1", [0], [], [10, 10], []],
    ["acknowledge", "m1", [[0, 0, 4, [ACCEPT]]]],
    ["alter", [[0, 2]]],
    *_LEAVES,
    ["alter", [[0, 2], [1, 1]]],
    *_JOINS,
    ["fetch", "m1", [0], [], [10, 10], []],
    ["acknowledge", "m1", [[0, 2, 4, [ACCEPT]]]],
    ["fetch", "m1", [1], [0], [10, 10], []],
    ["acknowledge", "m1", [[1, 1, 2, [ACCEPT]]]],
    *_LEAVES,
    ["alter", [[0, 4], [7, 0]]],
    ["alter", [[0, 99]]],
    ["alter", [[1, 0]]],
    ["alter", []],
    *_JOINS,
    *(["produce", 0, 2], ["produce", 1, 2]),
    ["fetch", "m1", [1], [], [10, 10], []],
    ["acknowledge", "m1", [[1, 0, 4, [ACCEPT]]]],
    *_LEAVES,
    ["delete"],
    ["alter", [[0, 3]]],
    *_JOINS,
    ["fetch", "m1", [0], [], [10, 10], []],
    ["acknowledge", "m1", [[0, 3, 6, [ACCEPT]]]],
    *_LEAVES,
    ["delete_group"],
]


class Script:
    """Moves that are given."""

    def __init__(self, moves: list[Move]) -> None:
        self._moves = moves

    def moves(self) -> Iterator[Move]:
        return iter(self._moves)

    def learn(self, seen: Seen) -> None:
        """Nothing depends on it."""
