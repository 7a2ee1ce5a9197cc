"""Compares what a read_committed reader sees with what clients journaled. A broken promise raises AssertionError."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any

from tests.durability.transactions.committed import (
    READ_UNCOMMITTED,
    RETRY_S,
    committed_offsets,
    committed_values,
    stable_ends,
)
from tests.durability.transactions.load import Load, output_of
from tests.durability.transactions.values import INPUT, PARTITIONS, Transaction, parse
from tests.harness.wire_client import WireClient

# How many offsets that were read before are read again after each restart, and must show the same records.
OVERLAP = 300
# Offsets and output become visible together; a reader that asks for one after the other may have to ask again.
AGREE_WITHIN_S = 15.0
Place = tuple[int, int]
"""Partition and offset."""


class Seen:
    """The committed records of a topic, as far as they were read."""

    def __init__(self, topic: str) -> None:
        self.topic = topic
        self.values: list[dict[int, str]] = [{} for _ in range(PARTITIONS)]
        self.ends = [0] * PARTITIONS
        self.held_back = [False] * PARTITIONS  # by an open transaction

    def read(self, client: WireClient) -> list[tuple[Place, str]]:
        """Read on to the last stable offsets, and some of the known part again. Returns new records."""
        new: list[tuple[Place, str]] = []
        written = stable_ends(client, self.topic, PARTITIONS, READ_UNCOMMITTED)
        for partition, end in enumerate(stable_ends(client, self.topic, PARTITIONS)):
            self.held_back[partition] = end < written[partition]
            name, known, before = f"{self.topic}-{partition}", self.values[partition], self.ends[partition]
            assert end >= before, f"the last stable offset of {name} fell from {before} to {end}"
            start = max(0, before - OVERLAP)
            found = dict(committed_values(client, self.topic, partition, start, end))
            expected = {offset: known[offset] for offset in range(start, before) if offset in known}
            again = {offset: value for offset, value in found.items() if offset < before}
            assert again == expected, f"committed records of {name} changed: {_difference(expected, again)}"
            new += [((partition, offset), value) for offset, value in found.items() if offset >= before]
            known.update(found)
            self.ends[partition] = end
        return new

    def read_again(self, client: WireClient) -> None:
        """Read everything again: it must be the same."""
        for partition, (known, end) in enumerate(zip(self.values, self.ends, strict=True)):
            found = dict(committed_values(client, self.topic, partition, 0, end))
            assert found == known, f"committed records of {self.topic}-{partition} changed: {_difference(known, found)}"

    def shows(self, partition: int, offset: int) -> bool:
        return offset in self.values[partition]


class Account:
    def __init__(self, load: Load) -> None:
        self._load = load
        self.input = Seen(INPUT)
        self.outputs = {group: Seen(output_of(group)) for group in load.groups}
        self.counts: Counter[str] = Counter()
        self._visible: dict[Transaction, dict[int, Place]] = defaultdict(dict)
        self._incomplete: set[Transaction] = set()
        self._newest: dict[tuple[str, int], int] = {}  # the last transaction that is visible, by source and partition
        self._aborted: set[tuple[str, int]] = set()
        self._committed: list[tuple[str, int, int, int]] = []  # acknowledged, not yet found: source, number and place
        self._copied: dict[str, Counter[int]] = {group: Counter() for group in load.groups}  # acknowledged offsets
        self._outputs: dict[str, set[Place]] = {group: set() for group in load.groups}

    def read_journals(self) -> None:
        for name, source in self._load.sources.items():
            for event, *values in source.journal.new():
                self._read_source(name, event, *values)
        for name, (group, runs) in self._load.copiers.items():
            for run in runs:
                for event, *values in run.journal.new():
                    self.counts[f"{group} {event}"] += 1
                    if event == "copied":
                        self.counts[f"{name} copied"] += 1
                        for partition, offset in values[0].items():
                            at = self._copied[group]
                            at[int(partition)] = max(at[int(partition)], offset)

    def _read_source(self, name: str, event: str, number: int = -1, placed: Any = None) -> None:
        assert event != "unknown", f"the source {name} gave up transaction {number}: {placed}"
        self.counts[f"{name} {event}"] += 1
        if event == "aborted":
            self._aborted.add((name, number))
        elif event == "committed":
            self._committed += [(name, number, partition, offset) for _, partition, offset in placed]

    def check(self, client: WireClient) -> None:
        """Check everything that is acknowledged so far, and everything that is visible."""
        self.read_journals()
        copied = {group: Counter(offsets) for group, offsets in self._copied.items()}
        offsets = {group: committed_offsets(client, group) for group in self.outputs}
        for group, acknowledged in copied.items():
            for partition, offset in acknowledged.items():
                stored = offsets[group].get(partition, 0)
                assert stored >= offset, f"{group} committed offset {offset} of {INPUT}-{partition}, {stored} is stored"
        self._read_input(client)
        for group, seen in self.outputs.items():
            self._agree(lambda group=group, seen=seen: self._offsets_and_output(client, group, seen))  # type: ignore[misc]

    def _read_input(self, client: WireClient) -> None:
        for place, value in self.input.read(client):
            transaction, position = parse(value)
            positions = self._visible[transaction]
            assert position not in positions, f"{value!r} is committed twice, at {positions[position]} and {place}"
            positions[position] = place
            complete = len(positions) == len(transaction.places)
            (self._incomplete.discard if complete else self._incomplete.add)(transaction)
            at = (transaction.source, place[0])
            self._newest[at] = max(self._newest.get(at, -1), transaction.number)
            self.counts["visible"] += 1
        self.read_journals()
        for transaction in self._visible:
            assert transaction[:2] not in self._aborted, f"{transaction} was aborted, and its records are committed"
        for transaction in self._incomplete:
            for position, digit in enumerate(transaction.places):
                later = self._newest.get((transaction.source, int(digit)), -1) > transaction.number
                assert position in self._visible[transaction] or not later, (
                    f"record {position} of {transaction} is missing, others are committed: {self._visible[transaction]}"
                )
        pending = []
        for name, number, partition, offset in self._committed:
            if offset >= self.input.ends[partition]:
                pending.append((name, number, partition, offset))  # behind an open transaction
            else:
                assert self.input.shows(partition, offset), (
                    f"{name} committed transaction {number}, its record at {INPUT}-{partition} offset {offset} is missing"
                )
        self._committed = pending

    def _read_output(self, client: WireClient, group: str, seen: Seen) -> None:
        for _, text in seen.read(client):
            partition, offset, value = text.split(" ", 2)
            place = (int(partition), int(offset))
            assert place not in self._outputs[group], f"{group} copied the record at {place} twice"
            self._outputs[group].add(place)
            if place[1] >= self.input.ends[place[0]]:
                self._read_input(client)
            shown = self.input.values[place[0]].get(place[1])
            assert shown == value, f"{group} copied {value!r} from {place}, committed is {shown!r}"

    def _offsets_and_output(self, client: WireClient, group: str, seen: Seen) -> str:
        """What contradicts: offsets are committed together with the output of all records below them, and only then."""
        before = committed_offsets(client, group)
        self._read_output(client, group, seen)
        after = committed_offsets(client, group)
        done = self._outputs[group]
        for partition, values in enumerate(self.input.values):
            if seen.held_back[partition]:
                continue  # a copier that got stuck has left its transaction open; the last check is after its end
            missing = [o for o in values if o < before.get(partition, 0) and (partition, o) not in done]
            if missing:
                return f"{group} committed {before} without its output for {INPUT}-{partition} offset {min(missing)}"
        ahead = [place for place in done if place[1] >= after.get(place[0], 0)]
        return f"{group} has output for {min(ahead)}, its offsets are {after}" if ahead else ""

    def _agree(self, contradiction: Callable[[], str]) -> None:
        deadline = time.monotonic() + AGREE_WITHIN_S
        while found := contradiction():
            assert time.monotonic() < deadline, found
            time.sleep(RETRY_S)

    # -- the end

    def is_copied(self) -> bool:
        """Whether every group has copied every committed record."""
        places = {(p, offset) for p, values in enumerate(self.input.values) for offset in values}
        return all(places == done for done in self._outputs.values())

    def check_whole(self) -> None:
        """Check that nothing is left half or missing once no transaction is open."""
        assert not self._incomplete, f"half committed: {[(t, self._visible[t]) for t in self._incomplete]}"
        assert not self._committed, f"committed, and not visible: {self._committed[:5]}"


def _difference(expected: dict[int, str], found: dict[int, str]) -> str:
    lost, new = expected.keys() - found.keys(), found.keys() - expected.keys()
    return f"{len(lost)} vanished {sorted(lost)[:5]}, {len(new)} appeared {sorted(new)[:5]}"
