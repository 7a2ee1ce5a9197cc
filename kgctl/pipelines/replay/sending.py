"""Sends runs of records in transactions that also commit how far the replay is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from kgctl.client.consumer.offset_and_metadata import OffsetAndMetadata
from kgctl.client.net.errors import KgctlError
from kgctl.client.producer.core.batch import Batch
from kgctl.client.producer.counting import CountingProducer
from kgctl.model.topic_partition import TopicPartition
from kgctl.pipelines.replay.log import Committed, ReplayLog
from kgctl.pipelines.replay.offset_map import Stretch, stretches
from kgctl.pipelines.replay.pacing import Pace
from kgctl.pipelines.replay.records import NO_TIMESTAMP, Run
from kgctl.pipelines.replay.settings import ReplaySettings

# A transaction ends after this many records or seconds; sooner if the pace wants a long wait.
TRANSACTION_RECORDS, TRANSACTION_S, PACED_TRANSACTION_S = 50_000, 5.0, 1.0
_LONG_WAIT_S = 0.5

CommitOffsets = Callable[[str, Mapping[TopicPartition, OffsetAndMetadata]], None]


class Sink(Protocol):
    """Where runs go. `commit` keeps the records since the last one, and that each partition has moved."""

    def send(self, run: Run) -> None: ...
    def commit(self, moves: Mapping[TopicPartition, tuple[int, int]]) -> None: ...


@dataclass(slots=True)
class Replay:
    """`clock` in seconds; `wait` may raise to end the replay, also for zero seconds. `on_progress` gets the records so far."""

    sink: Sink
    pace: Pace
    clock: Callable[[], float]
    wait: Callable[[float], None]
    on_progress: Callable[[int], None] = lambda _: None
    most_records: int = TRANSACTION_RECORDS
    records: int = 0
    _moves: dict[TopicPartition, tuple[int, int]] = field(default_factory=dict)

    def run(self, runs: Iterable[Run], starts: Mapping[TopicPartition, int]) -> None:
        """Send all runs, in their order; `starts` is where each partition continues. What is not committed at an error is lost."""
        positions = dict(starts)
        is_paced = self.pace.rate is not None or self.pace.speed is not None
        seconds = PACED_TRANSACTION_S if is_paced else TRANSACTION_S
        began, count = self.clock(), 0
        for run in runs:
            pause = self.pace.wait(run.timestamps[0], self.clock()) if run.offsets else 0.0
            if pause >= _LONG_WAIT_S:
                self._commit()
                began, count = self.clock() + pause, 0
            self.wait(pause)
            self.sink.send(run)
            self.pace.sent(len(run), self.clock())
            first, _ = self._moves.get(run.partition, (positions[run.partition], 0))
            self._moves[run.partition] = first, run.next_offset
            positions[run.partition] = run.next_offset
            self.records, count = self.records + len(run), count + len(run)
            if count >= self.most_records or self.clock() - began >= seconds:
                self._commit()
                began, count = self.clock(), 0
        self._commit()

    def _commit(self) -> None:
        if self._moves:
            self.sink.commit(self._moves)
            self._moves = {}
            self.on_progress(self.records)


class UnusableRecord(KgctlError):
    """A record that no producer may write. The same replay cannot get past it."""

    def __init__(self, partition: TopicPartition, offset: int, time: int) -> None:
        super().__init__(
            f"{partition}, offset {offset}: the record would have the time {time} ms, which is before 1970; give another "
            "--shift-time or --now, or leave it out with --from"
        )


class Target:
    """The topics of a cluster as a sink. `counts` is how many partitions each target has, `labels` is committed with positions.

    The producer passes each acknowledged batch to `note`. Positions are committed in the producer's transaction, or without
    one by `commit_offsets`.
    """

    def __init__(
        self,
        settings: ReplaySettings,
        counts: Mapping[str, int],
        labels: Mapping[TopicPartition, str],
        log: ReplayLog,
        commit_offsets: CommitOffsets | None,
        timeout_s: float,
    ) -> None:
        self._settings, self._counts, self._labels, self._log = settings, counts, labels, log
        self._commit_offsets, self._timeout_s = commit_offsets, timeout_s
        self._acknowledged: list[Batch] = []
        self._is_open = False
        self.producer: CountingProducer

    def note(self, batch: Batch) -> None:
        """On the thread of the client."""
        self._acknowledged.append(batch)

    def send(self, run: Run) -> None:
        self._begin()
        topic = self._settings.targets[run.partition.topic]
        number = None if self._settings.by_key else run.partition.partition
        records = zip(self._times(run), run.keys, run.values, run.headers, run.offsets, strict=True)
        self.producer.send_archived(topic, number, records)

    def commit(self, moves: Mapping[TopicPartition, tuple[int, int]]) -> None:
        self._begin()
        self.producer.flush()
        parts = {self._settings.part_of(source): move for source, move in moves.items()}
        self._log.append(self._committed(parts))
        groups: dict[str, dict[TopicPartition, OffsetAndMetadata]] = {}
        for source, (_, end) in moves.items():
            part = self._settings.part_of(source)
            place = self._settings.place_of(part, self._counts[part.topic])
            groups.setdefault(place.group, {})[place.partition] = OffsetAndMetadata(end, metadata=self._labels[source])
        for group, offsets in groups.items():
            if self._commit_offsets is None:
                self.producer.producer.send_offsets_to_transaction(offsets, group, self._timeout_s)
            else:
                self._commit_offsets(group, offsets)
        if self._commit_offsets is None:
            self.producer.commit_transaction(self._timeout_s)
            self._is_open = False

    def abort(self) -> None:
        """End the open transaction, if there is one."""
        if self._is_open:
            self._is_open = False
            self.producer.abort_transaction(self._timeout_s)

    def _begin(self) -> None:
        if self._commit_offsets is None and not self._is_open:
            self.producer.begin_transaction()
            self._is_open = True

    def _times(self, run: Run) -> list[int] | list[None]:
        if self._settings.is_now:
            return [None] * len(run)
        shift, times = self._settings.shift_ms, run.timestamps
        if shift:
            times = [time if time == NO_TIMESTAMP else time + shift for time in times]
        if times and min(times) < 0:
            for old, time, offset in zip(run.timestamps, times, run.offsets, strict=True):
                if time < 0 and old != NO_TIMESTAMP:
                    raise UnusableRecord(run.partition, offset, time)
        return times

    def _committed(self, parts: Mapping[TopicPartition, tuple[int, int]]) -> Committed:
        """With the offsets of the batches since the last call.

        By key, a target partition has records of several ones: no map keeps that, but where they end.
        """
        batches, self._acknowledged = self._acknowledged, []
        tagged = [(one.partition, one.base_offset, one.tags) for one in batches if one.tags]
        if self._settings.by_key:
            ends: dict[TopicPartition, int] = {}
            for partition, base, tags in tagged:
                ends[partition] = max(base + len(tags), ends.get(partition, 0))
            return Committed(parts, ends=ends if all(base >= 0 for _, base, _ in tagged) else None)
        found: dict[TopicPartition, list[Stretch]] = {}
        for partition, base, tags in tagged:
            # A broker that had the batch already (DUPLICATE_SEQUENCE_NUMBER) does not say where it is.
            found.setdefault(partition, []).extend(stretches([offset for offset, _ in tags], base))
        return Committed(parts, found)
