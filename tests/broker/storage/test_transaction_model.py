"""A partition with transactions behaves like a list of batches, for any order of calls, kills, restarts and compactions."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from broker.protocol.control_records import Marker
from broker.protocol.errors import ErrorCode
from broker.storage import Appended
from tests.harness.committed_reader import committed, uncommitted
from tests.harness.stores import NOW, batch, open_log, sweep, topic_log

SETTINGS: dict[str, Any] = {"segment_bytes": 900, "index_interval_bytes": 150, "compaction_interval_ms": 0}
PHASES = [Phase.generate]
PRODUCERS = st.sampled_from([11, 12, 13])
KEYS = st.sampled_from([b"a", b"b", b"c", b"d"])


@dataclass
class Entry:
    """One batch. `owner`: the producer, or -1; `is_marker`: it ends the producer's transaction."""

    base: int
    records: list[tuple[bytes, bytes]]
    owner: int = -1
    epoch: int = -1
    transactional: bool = False
    is_marker: bool = False
    is_commit: bool = False
    changes: bool = False  # begins or ends a transaction

    @property
    def end(self) -> int:
        return self.base + max(1, len(self.records))


@dataclass
class State:
    """What the entries amount to."""

    epochs: dict[int, int] = field(default_factory=dict)
    sequences: dict[int, int] = field(default_factory=dict)  # the next one
    opened: dict[int, int] = field(default_factory=dict)  # base offsets
    aborted: list[tuple[int, int, int]] = field(default_factory=list)  # producer, first, last

    def note(self, entry: Entry) -> None:
        if entry.owner < 0:
            return
        if self.epochs.get(entry.owner) != entry.epoch:
            self.sequences[entry.owner] = 0
        self.epochs[entry.owner] = entry.epoch
        if entry.is_marker:
            first = self.opened.pop(entry.owner, None)
            if first is not None and not entry.is_commit:
                self.aborted.append((entry.owner, first, entry.base))
        else:
            self.sequences[entry.owner] += len(entry.records)
            if entry.transactional:
                self.opened.setdefault(entry.owner, entry.base)


class TransactionMachine(RuleBasedStateMachine):
    configs: dict[str, str] = {}

    def __init__(self) -> None:
        super().__init__()
        self.path = Path(tempfile.mkdtemp(prefix="kgctl-model-"))
        self.entries: list[Entry] = []
        self.flushed = 0  # entries
        self.start = self.flushed_start = 0
        self.wall_ms = NOW
        self.open()
        self.log.flush()

    def open(self) -> None:
        self.log = open_log(self.path, **SETTINGS)
        self.partition = topic_log(self.log, **self.configs)

    def state(self, count: int | None = None) -> State:
        state = State()
        for entry in self.entries[:count]:
            state.note(entry)
        return state

    @property
    def end(self) -> int:
        return self.entries[-1].end if self.entries else 0

    @property
    def visible(self) -> int:
        return self.entries[self.flushed - 1].end if self.flushed else 0

    # -- appends

    @rule(keys=st.lists(KEYS, min_size=1, max_size=3))
    def append_without_a_transaction(self, keys: list[bytes]) -> None:
        self._append(Entry(self.end, self._records(keys)), 0)

    @rule(
        producer=PRODUCERS, keys=st.lists(KEYS, min_size=1, max_size=3), plain=st.integers(0, 5), bump=st.integers(0, 5)
    )
    def append(self, producer: int, keys: list[bytes], plain: int, bump: int) -> None:
        state = self.state()
        epoch = state.epochs.get(producer, 0)
        if bump == 0 and producer not in state.opened:
            epoch += 1
        sequence = state.sequences.get(producer, 0) if epoch == state.epochs.get(producer) else 0
        transactional = plain > 0 or producer in state.opened
        changes = transactional and producer not in state.opened
        entry = Entry(self.end, self._records(keys), producer, epoch, transactional, changes=changes)
        self._append(entry, sequence)

    def _records(self, keys: list[bytes]) -> list[tuple[bytes, bytes]]:
        return [(key, b"%d" % (self.end + number)) for number, key in enumerate(keys)]

    def _append(self, entry: Entry, sequence: int) -> None:
        appended = self.partition.append(self._batch(entry, sequence), wall_ms=NOW)
        assert isinstance(appended, Appended), appended
        assert (appended.base_offset, appended.duplicate) == (entry.base, False)
        self.entries.append(entry)
        if entry.owner >= 0:
            again = self.partition.append(self._batch(entry, sequence), wall_ms=NOW)
            assert isinstance(again, Appended)
            assert (again.base_offset, again.duplicate) == (entry.base, True)

    def _batch(self, entry: Entry, sequence: int) -> bytes:
        if entry.owner < 0:
            return batch(*entry.records)
        return batch(
            *entry.records,
            producer_id=entry.owner,
            producer_epoch=entry.epoch,
            base_sequence=sequence,
            is_transactional=entry.transactional,
        )

    @rule(producer=PRODUCERS, ahead=st.integers(1, 3), transactional=st.booleans())
    def a_wrong_batch_is_refused(self, producer: int, ahead: int, transactional: bool) -> None:
        state = self.state()
        if producer not in state.epochs:
            return
        epoch, sequence = state.epochs[producer], state.sequences[producer]
        opened = producer in state.opened

        def refusal(epoch: int, sequence: int, *, transactional: bool = opened) -> object:
            entry = Entry(0, [(b"a", b"x")], producer, epoch, transactional)
            return self.partition.append(self._batch(entry, sequence), wall_ms=NOW)

        assert refusal(epoch, sequence + ahead, transactional=opened and transactional) in (
            ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        )
        if epoch:
            assert refusal(epoch - 1, 0) is ErrorCode.INVALID_PRODUCER_EPOCH
        if opened:
            assert refusal(epoch, sequence, transactional=False) is ErrorCode.INVALID_TXN_STATE
            # As in Kafka, a sequence below the next one would stop the transaction.
            assert refusal(epoch + 1, 10_000) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER

    @rule(producer=PRODUCERS, is_commit=st.booleans(), bump=st.booleans())
    def end_transaction(self, producer: int, is_commit: bool, bump: bool) -> None:
        epoch = self.state().epochs.get(producer, 0) + bump
        appended = self.partition.append_marker(Marker(producer, epoch, 0, is_commit), wall_ms=NOW)
        assert isinstance(appended, Appended)
        assert appended.base_offset == self.end
        self.entries.append(Entry(self.end, [], producer, epoch, True, True, is_commit, changes=True))
        if bump:
            fenced = self.partition.append_marker(Marker(producer, epoch - 1, 0, True), wall_ms=NOW)
            assert fenced is ErrorCode.INVALID_PRODUCER_EPOCH

    # -- the log

    @rule()
    def flush(self) -> None:
        self.log.flush()
        self.flushed, self.flushed_start = len(self.entries), self.start

    @rule()
    def restart(self) -> None:
        self.flush()
        self.log.close()
        self.open()

    @rule()
    def kill(self) -> None:
        """What no commit has seen may survive, up to a batch that begins or ends a transaction."""
        self.log.close(clean=False)
        self.open()
        self.start = self.flushed_start
        end = self.partition.log_end_offset
        assert end == self.partition.high_watermark >= self.visible
        kept = self.entries[self.flushed :]
        del self.entries[self.flushed :]
        for entry in kept:
            if entry.end <= end:
                assert not entry.changes
                self.entries.append(entry)
        assert self.end == end
        self.flushed = len(self.entries)

    @precondition(lambda self: "compact" not in self.configs.get("cleanup_policy", ""))
    @rule(back=st.integers(0, 12))
    def delete_records(self, back: int) -> None:
        self.start = max(self.start, self.visible - back)
        assert self.partition.delete_records(self.start) == self.start

    @precondition(lambda self: "compact" in self.configs.get("cleanup_policy", ""))
    @rule(later_ms=st.sampled_from([0, 200]))
    def compact(self, later_ms: int) -> None:
        self.flush()
        self.wall_ms += later_ms
        sweep(self.log, self.wall_ms)

    # -- what readers see

    @invariant()
    def the_last_stable_offset_is_where_the_oldest_open_transaction_begins(self) -> None:
        assert self.partition.high_watermark == self.visible
        assert self.partition.log_start_offset == self.start
        oldest = min(self.state(self.flushed).opened.values(), default=self.visible)
        if oldest < self.start:
            # DeleteRecords went past it.
            oldest = max(
                (e.base for e in self.entries[: self.flushed] if e.base <= self.start < e.end), default=self.visible
            )
        assert self.partition.last_stable_offset == oldest

    @invariant()
    def readers_see_what_the_list_has(self) -> None:
        state = self.state(self.flushed)
        everything: list[tuple[int, bytes]] = []
        stable: list[tuple[int, bytes]] = []
        for entry in self.entries[: self.flushed]:
            aborted = entry.transactional and any(
                owner == entry.owner and first <= entry.base <= last for owner, first, last in state.aborted
            )
            for number, (_, value) in enumerate(entry.records):
                offset = entry.base + number
                if offset >= self.start:
                    everything.append((offset, value))
                    if not aborted and offset < self.partition.last_stable_offset:
                        stable.append((offset, value))
        self.compare(everything, stable)

    def compare(self, everything: list[tuple[int, bytes]], stable: list[tuple[int, bytes]]) -> None:
        assert [(r.offset, r.value) for r in uncommitted(self.partition)] == everything
        assert [(r.offset, r.value) for r in committed(self.partition)] == stable

    @invariant()
    def producers_are_known(self) -> None:
        state = self.state()
        known = {found.producer_id: found for found in self.partition.producer_states()}
        assert {p: (k.producer_epoch, k.last_sequence + 1, k.current_txn_start_offset) for p, k in known.items()} == {
            p: (epoch, state.sequences[p], state.opened.get(p, -1)) for p, epoch in state.epochs.items()
        }
        for producer, epoch in state.epochs.items():
            assert self.partition.has_open_transaction(producer, epoch) == (producer in state.opened)
            assert not self.partition.has_open_transaction(producer, epoch + 1)

    @rule()
    def the_store_lists_open_transactions(self) -> None:
        state = self.state(self.flushed)
        if self.flushed == len(self.entries):
            assert set(self.log.open_transactions()) == {("t", 0, p, state.epochs[p]) for p in state.opened}

    def teardown(self) -> None:
        self.log.close()
        shutil.rmtree(self.path)


class CompactedMachine(TransactionMachine):
    configs = {
        "cleanup_policy": "compact",
        "min_cleanable_dirty_ratio": "0",
        "delete_retention_ms": "100",
    }

    def compare(self, everything: list[tuple[int, bytes]], stable: list[tuple[int, bytes]]) -> None:
        """Readers get some of the records, the last stable one of each key for sure, and none that was aborted."""
        keys = {e.base + n: key for e in self.entries for n, (key, _) in enumerate(e.records)}
        seen = [(r.offset, r.value) for r in committed(self.partition)]
        assert seen == sorted(set(seen) & set(stable))
        newest = {keys[offset]: (offset, value) for offset, value in stable}
        assert set(newest.values()) <= set(seen)
        all_seen = [(r.offset, r.value) for r in uncommitted(self.partition)]
        assert all_seen == sorted(set(all_seen) & set(everything))
        unstable = {row for row in everything if row[0] >= self.partition.last_stable_offset}
        assert unstable | set(seen) <= set(all_seen)


TransactionMachine.TestCase.settings = settings(max_examples=6, stateful_step_count=40, deadline=None, phases=PHASES)
CompactedMachine.TestCase.settings = settings(max_examples=6, stateful_step_count=40, deadline=None, phases=PHASES)
TestTransactions = TransactionMachine.TestCase
TestCompactedTransactions = CompactedMachine.TestCase
