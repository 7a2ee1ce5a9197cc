"""A partition behaves like a list of records, for any order of calls, kills and restarts."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from broker.protocol.compression import Codec
from broker.protocol.record_batch import batches, check_crc, decode_records
from tests.harness.stores import NOW, append, open_log, raw, topic_log

SETTINGS: dict[str, Any] = {"segment_bytes": 600, "index_interval_bytes": 150}


class PartitionMachine(RuleBasedStateMachine):
    """`flushed` and `pending` are (timestamp, value) by offset; `start` is the log start."""

    @initialize()
    def begin(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="kgctl-model-"))
        self.log = open_log(self.path, **SETTINGS)
        self.partition = topic_log(self.log)
        self.flushed: list[tuple[int, bytes]] = []
        self.pending: list[tuple[int, bytes]] = []
        self.start = 0

    @rule(
        records=st.lists(st.tuples(st.integers(NOW - 50, NOW + 50), st.binary(max_size=60)), min_size=1, max_size=5),
        codec=st.sampled_from([Codec.NONE, Codec.GZIP, Codec.LZ4]),
    )
    def append(self, records: list[tuple[int, bytes]], codec: Codec) -> None:
        stamps = [stamp for stamp, _ in records]
        base = append(self.partition, *[value for _, value in records], ts=stamps, codec=codec)
        assert base == len(self.flushed) + len(self.pending)
        self.pending += records

    @rule()
    def flush(self) -> None:
        self.log.flush()
        self.flushed += self.pending
        self.pending = []

    @rule(offset=st.integers(-1, 60), max_bytes=st.integers(0, 500), at_least_one=st.booleans())
    def read(self, offset: int, max_bytes: int, at_least_one: bool) -> None:
        found = self.partition.read(offset, max_bytes, at_least_one=at_least_one)
        end = len(self.flushed) + len(self.pending)
        if not self.start <= offset <= end:
            assert found is None
            return
        content = raw(found)
        if offset >= len(self.flushed):
            assert content == b""
            return
        assert content or not at_least_one
        assert len(content) <= max_bytes or (at_least_one and len(list(batches(content))) == 1)
        expected: int | None = None
        for position, header in batches(content):
            assert check_crc(content, position, header)
            assert expected is None or header.base_offset == expected
            assert expected is not None or header.base_offset <= offset <= header.last_offset
            for record in decode_records(content, position):
                assert (record.timestamp, record.value) == self.flushed[record.offset]
            expected = header.next_offset

    @rule(timestamp=st.integers(NOW - 52, NOW + 52))
    def look_up_a_time(self, timestamp: int) -> None:
        expected = next(((o, s) for o, (s, _) in enumerate(self.flushed) if o >= self.start and s >= timestamp), None)
        assert self.partition.offset_for_timestamp(timestamp) == expected

    @rule()
    def look_up_the_newest(self) -> None:
        visible = [(stamp, -offset) for offset, (stamp, _) in enumerate(self.flushed) if offset >= self.start]
        expected = (-max(visible)[1], max(visible)[0]) if visible else None
        assert self.partition.offset_of_max_timestamp() == expected

    @rule(offset=st.integers(-1, 60))
    def delete_records(self, offset: int) -> None:
        result = self.partition.delete_records(offset)
        wanted = len(self.flushed) if offset == -1 else offset
        if wanted > len(self.flushed):
            assert int(result) == 1
            return
        self.start = max(self.start, wanted)
        assert result == self.start

    @rule()
    def restart(self) -> None:
        self.flush()
        self.log.close()
        self._reopen()

    @rule()
    def kill(self) -> None:
        self.flush()
        self.log.close(clean=False)
        self._reopen()

    @rule()
    def sweep(self) -> None:
        self.log.sweep(NOW)

    def _reopen(self) -> None:
        self.log = open_log(self.path, **SETTINGS)
        self.partition = topic_log(self.log)

    @invariant()
    def ends_agree(self) -> None:
        if not hasattr(self, "partition"):
            return
        assert self.partition.log_start_offset == self.start
        assert self.partition.high_watermark == len(self.flushed)
        assert self.partition.log_end_offset == len(self.flushed) + len(self.pending)

    def teardown(self) -> None:
        if hasattr(self, "log"):
            self.log.close()
            shutil.rmtree(self.path)


PartitionMachine.TestCase.settings = settings(max_examples=40, stateful_step_count=40, deadline=None)
TestPartition = PartitionMachine.TestCase
