"""Filters, order, pace and the map of offsets, which need neither a cluster nor a clock."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgctl.model.topic_partition import TopicPartition
from kgctl.pipelines.replay.log import read_log, writing
from kgctl.pipelines.replay.offset_map import UNKNOWN, OffsetMap, Stretch, stretches
from kgctl.pipelines.replay.pacing import BURST_S, Pace
from kgctl.pipelines.replay.records import RecordFilter, Run, in_time_order
from kgctl.pipelines.replay.sending import TRANSACTION_S, Replay, Target
from kgctl.pipelines.replay.settings import ReplaySettings
from tests.kgctl.pipelines.archive.making import NOON_MS


def run_of(partition: int, times: list[int], keys: list[bytes | None] | None = None, first: int = 0) -> Run:
    count = len(times)
    keys = keys or [None] * count
    offsets = list(range(first, first + count))
    return Run(TopicPartition("t", partition), offsets, times, keys, [None] * count, [()] * count, first + count)


# --- filters ---


@pytest.mark.parametrize(
    ("chosen", "kept"),
    [
        (RecordFilter(), [0, 1, 2, 3]),
        (RecordFilter(keys=frozenset({b"a", b"c"})), [0, 3]),
        (RecordFilter(pattern=re.compile(b"a.")), [2]),
        (RecordFilter(keys=frozenset({b"a"}), pattern=re.compile(b"a.")), [0, 2]),
        (RecordFilter(since_ms=20), [1, 2, 3]),
        (RecordFilter(until_ms=30), [0, 1]),
        (RecordFilter(frozenset({b"c"}), None, 10, 30), []),
    ],
)
def test_a_filter_keeps_what_passes_and_the_position_of_the_whole_run(chosen: RecordFilter, kept: list[int]) -> None:
    run = run_of(0, [10, 20, 30, 40], [b"a", None, b"ab", b"c"], first=5)
    found = chosen.of(run)
    assert [offset - 5 for offset in found.offsets] == kept
    assert found.keys == [run.keys[n] for n in kept]
    assert found.next_offset == 9


@given(st.integers(0, 20), st.integers(0, 20), st.integers(0, 20), st.integers(0, 20))
def test_a_file_is_left_out_only_if_no_record_of_it_can_pass(low: int, length: int, since: int, window: int) -> None:
    chosen = RecordFilter(since_ms=since, until_ms=since + window)
    any_passes = any(chosen.passes(None, time) for time in range(low, low + length + 1))
    assert chosen.overlaps(low, low + length) or not any_passes


# --- order ---


@given(st.lists(st.lists(st.lists(st.integers(0, 50), max_size=4), max_size=4), max_size=4), st.integers(1, 3))
def test_partitions_keep_their_order_and_old_records_are_first(given_: list[list[list[int]]], most: int) -> None:
    partitions = []
    for number, times in enumerate(given_):
        first, runs = 0, []
        for some in times:
            runs.append(run_of(number, some, first=first))
            first += len(some)
        partitions.append(runs)
    ordered = [part for run in in_time_order(iter(runs) for runs in partitions) for part in run.cut(most)]
    for number, runs in enumerate(partitions):
        mine = [run for run in ordered if run.partition.partition == number]
        assert [offset for run in mine for offset in run.offsets] == [n for run in runs for n in run.offsets]
        assert [run.next_offset for run in mine if run.offsets] == [run.offsets[-1] + 1 for run in mine if run.offsets]
    singles = [[run_of(n, sorted(time for some in times for time in some))] for n, times in enumerate(given_)]
    pieces = (iter([piece for run in runs for piece in run.cut(1)]) for runs in singles)
    found = [time for run in in_time_order(pieces) for time in run.timestamps]
    assert found == sorted(found)


# --- pace ---


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@given(
    st.floats(1, 10_000),
    st.lists(st.tuples(st.integers(1, 500), st.floats(0, 3)), min_size=1, max_size=40),
)
def test_no_window_of_time_has_more_records_than_the_rate_allows(rate: float, work: list[tuple[int, float]]) -> None:
    """`work`: how many records are ready, and how long the cluster takes for them."""
    clock, pace = Clock(), Pace(rate=rate)
    sent: list[tuple[float, int]] = []
    for ready, busy in work:
        count = min(ready, pace.most_records)
        clock.sleep(pace.wait(0, clock.now))
        pace.sent(count, clock.now)
        sent.append((clock.now, count))
        clock.sleep(busy)
    for start in range(len(sent)):
        for end in range(start, len(sent)):
            seconds = sent[end][0] - sent[start][0]
            records = sum(count for _, count in sent[start:end])
            assert records <= rate * (seconds + BURST_S) + pace.most_records + 1e-3


def test_a_rate_is_reached_when_nothing_else_limits() -> None:
    clock, pace = Clock(), Pace(rate=1000)
    count = 0
    while clock.now < 1010:
        clock.sleep(pace.wait(0, clock.now))
        pace.sent(pace.most_records, clock.now)
        count += pace.most_records
    assert 9_900 <= count <= 10_200


@given(st.floats(0.1, 1000), st.lists(st.integers(0, 10_000_000), min_size=1, max_size=30))
def test_with_a_speed_each_record_waits_for_its_recorded_time(speed: float, gaps: list[int]) -> None:
    clock, pace = Clock(), Pace(speed=speed)
    time = first = 1_700_000_000_000
    for gap in gaps:
        clock.sleep(pace.wait(time, clock.now))
        pace.sent(1, clock.now)
        assert clock.now - 1000.0 == pytest.approx((time - first) / 1000 / speed, abs=1e-3)
        time += gap


def test_with_a_speed_what_is_late_or_has_no_time_waits_for_nothing() -> None:
    pace = Pace(speed=1)
    assert pace.wait(-1, 5.0) == 0
    assert pace.wait(10_000, 5.0) == 0
    assert pace.wait(12_000, 5.0) == 2
    assert pace.wait(12_000, 60.0) == 0
    assert pace.wait(9_000, 5.0) == 0


# --- offsets ---


@given(
    st.lists(st.tuples(st.integers(1, 3), st.integers(1, 3)), min_size=1, max_size=60),
    st.lists(st.integers(1, 10), max_size=10),
)
def test_each_offset_leads_to_the_first_replayed_record_at_or_after_it(
    steps: list[tuple[int, int]], batches: list[int]
) -> None:
    """`steps`: the distances of a record from the one before it in the source and in the target."""
    pairs, source, target = [], 3, 100
    for number, (away, jump) in enumerate(steps):
        begins_batch = number in {sum(batches[:n]) for n in range(len(batches))}
        source, target = source + away, target + (jump if begins_batch else 1)
        pairs.append((source, target))
    cuts = sorted({0, len(pairs), *(sum(batches[: n + 1]) for n in range(len(batches)))})
    parts = []
    for start, end in itertools.pairwise(cuts):
        some, place = pairs[start:end], 0
        while place < len(some):
            last = place
            while last + 1 < len(some) and some[last + 1][1] == some[last][1] + 1:
                last += 1
            parts += stretches([one for one, _ in some[place : last + 1]], some[place][1])
            place = last + 1
    found = OffsetMap(reversed(parts), start=2, end=source + 5)
    for offset in range(2, source + 6):
        expected = next((new for old, new in pairs if old >= offset), pairs[-1][1] + 1)
        assert found.target_of(offset) == expected
    assert found.target_of(1) is None
    assert found.target_of(source + 6) is None


def test_nothing_replayed_maps_nothing() -> None:
    assert OffsetMap([], 0, 10).target_of(5) is None


def test_a_batch_whose_place_the_cluster_has_not_said_is_no_gap(tmp_path: Path) -> None:
    """Its first answer was lost; the second one was DUPLICATE_SEQUENCE_NUMBER."""
    part = TopicPartition("t", 0)
    with writing(tmp_path) as log:
        target = Target(ReplaySettings("id", {"t": "t"}, {"t": "t"}), {"t": 1}, {part: ""}, log, lambda *_: None, 1.0)
        target.producer = SimpleNamespace(flush=lambda: None)  # type: ignore[assignment]
        for first, base in ((0, 10), (3, -1), (5, 14), (8, -1)):
            tags = [(first, 0), (first + 1, 0)]
            target.note(SimpleNamespace(partition=part, base_offset=base, tags=tags))  # type: ignore[arg-type]
        target.commit({part: (0, 10)})
    found = read_log(tmp_path).offset_map(part)
    assert found
    # Offset 2 is a gap before the batch, 7 one before the last.
    assert [found.target_of(at) for at in range(11)] == [10, 11, None, None, None, 14, 15, None, None, None, None]
    assert [one.target for one in found.stretches] == [10, 14]


def test_what_is_not_known_does_not_join_what_begins_at_zero() -> None:
    found = OffsetMap([Stretch(0, UNKNOWN, 1), Stretch(1, 0, 3)], 0, 4)
    assert [found.target_of(at) for at in range(5)] == [None, 0, 1, 2, 3]


# --- transactions ---


class Written:
    """A sink that notes what is committed when."""

    def __init__(self, clock: Clock, seconds: float) -> None:
        self.clock, self.seconds = clock, seconds
        self.open: list[int] = []
        self.committed: list[tuple[float, list[int], dict[TopicPartition, tuple[int, int]]]] = []
        self.longest = 0.0
        self._began = clock.now

    def send(self, run: Run) -> None:
        if not self.open:
            self._began = self.clock.now
        self.open += run.offsets
        self.clock.sleep(self.seconds * len(run))

    def commit(self, moves: Mapping[TopicPartition, tuple[int, int]]) -> None:
        self.longest = max(self.longest, self.clock.now - self._began) if self.open else self.longest
        self.committed.append((self.clock.now, self.open, dict(moves)))
        self.open = []


@given(
    st.lists(st.integers(0, 20_000), min_size=1, max_size=40),
    st.sampled_from([Pace(), Pace(rate=2), Pace(rate=200), Pace(speed=1), Pace(speed=100)]),
    st.floats(0, 1),
)
def test_transactions_hold_each_record_once_and_stay_short(gaps: list[int], given_: Pace, seconds: float) -> None:
    """`seconds`: how long the cluster takes for a record. Brokers abort a transaction after a minute."""
    clock, pace = Clock(), Pace(given_.rate, given_.speed)
    times = list(itertools.accumulate(gaps, initial=NOON_MS))
    sink = Written(clock, seconds)
    replay = Replay(sink, pace, lambda: clock.now, clock.sleep, most_records=15)
    run = run_of(0, times)
    replay.run(run.cut(1), {run.partition: 0})
    assert [offset for _, some, _ in sink.committed for offset in some] == run.offsets
    moves = [move for _, _, moved in sink.committed for move in moved.values()]
    assert [start for start, _ in moves] == [0, *(end for _, end in moves[:-1])]
    assert moves[-1][1] == len(times)
    assert sink.longest <= TRANSACTION_S + 2 * (seconds + 0.5)
    assert all(len(some) <= 15 for _, some, _ in sink.committed)
