"""Reads one range of one partition: the next Fetch is in flight before the previous answer is used."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass

from kgctl.client.admin.offsets import EARLIEST, LATEST, OffsetAt, list_offsets
from kgctl.client.consumer import fetch_loop
from kgctl.client.consumer.fetch_loop import FetchLoop
from kgctl.client.consumer.fetched import Fetched
from kgctl.client.consumer.fetcher import FetchSettings, is_missing
from kgctl.client.net.connector import ConnectionSettings, Connector
from kgctl.client.net.errors import BrokerError, KgctlError, TimedOut, Unreachable
from kgctl.pipelines.source import losses
from kgctl.pipelines.source.ranges import OffsetRange

_POLL_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Patience(fetch_loop.Patience):
    """`no_progress`: seconds to wait for records that the range promises."""

    no_progress: float = 10.0


@dataclass(frozen=True, slots=True)
class ReadTask:
    """Everything a task needs; it is pickled."""

    connection: ConnectionSettings
    range: OffsetRange
    fetch: FetchSettings
    fail_on_data_loss: bool = True
    include_headers: bool = False
    patience: Patience = Patience()


def read_range(task: ReadTask) -> Iterator[Fetched]:
    """Answers from the start of the range to its end. Raises DataLoss where records are gone, if the task says so."""
    reader = _RangeReader(task)
    try:
        yield from reader.answers()
    finally:
        reader.close()


class _RangeReader:
    def __init__(self, task: ReadTask) -> None:
        self._task = task
        self._partition = task.range.partition
        self._connector = Connector(task.connection)
        self._loop = FetchLoop(self._connector, task.fetch, task.patience)
        self._loop.assign({self._partition: task.range.start}, {self._partition: task.range.end})
        self._fetcher = self._loop.fetcher
        self._progress_at = time.monotonic()

    def answers(self) -> Iterator[Fetched]:
        while not self._fetcher.all_finished:
            before = self._position
            arrived = self._poll()
            if self._fetcher.out_of_range:
                self._skip_loss()
            if self._position > before:
                self._progress_at = time.monotonic()
            elif not self._loop.is_failing:
                self._check_progress()
            yield from arrived

    def close(self) -> None:
        self._loop.close()
        self._connector.close()

    @property
    def _position(self) -> int:
        return self._fetcher.positions[self._partition]

    def _poll(self) -> list[Fetched]:
        with self._loss_if_missing():
            return self._loop.poll(time.monotonic() + _POLL_SECONDS)
        return []

    # --- lost records ---

    def _skip_loss(self) -> None:
        """The broker does not have the offset: records before the start of the log, or after its end, are gone."""
        bounds = self._bounds()
        if bounds is None:
            return
        first, last = bounds
        position, end = self._position, self._task.range.end
        if position < first:
            if self._task.fail_on_data_loss:
                raise losses.deleted(self._partition, position, min(first, end))
            self._fetcher.seek(self._partition, min(first, end))
        elif position > last:
            self._lose_rest(losses.beyond_end(self._partition, end, last))
        else:
            # The log has the offset by now.
            self._fetcher.seek(self._partition, position)

    def _check_progress(self) -> None:
        """Without errors and without records: a log that ends before the range does has lost records."""
        lasted = time.monotonic() - self._progress_at
        if lasted < self._task.patience.no_progress:
            return
        bounds = self._bounds()
        if bounds is not None and bounds[1] < self._task.range.end:
            self._lose_rest(losses.beyond_end(self._partition, self._task.range.end, bounds[1]))
        elif lasted > self._task.patience.outage:
            raise TimedOut(f"{self._partition}: no records arrived from offset {self._position} on for {lasted:.0f} s")

    def _lose_rest(self, loss: losses.DataLoss) -> None:
        if self._task.fail_on_data_loss:
            raise loss
        self._fetcher.seek(self._partition, self._task.range.end)

    def _bounds(self) -> tuple[int, int] | None:
        """The first offset and the log end; None if no broker answers now."""
        found = []
        for end in (EARLIEST, LATEST):
            steps = list_offsets(
                self._connector.cluster, {self._partition: end}, committed_only=self._task.fetch.committed_only
            )
            answer: OffsetAt | KgctlError
            try:
                answer = self._connector.run(steps)[self._partition]
            except (Unreachable, TimedOut) as error:
                answer = error
            if isinstance(answer, KgctlError):
                with self._loss_if_missing():
                    self._loop.suspect(self._partition, answer)
                return None
            found.append(answer.offset)
        return found[0], found[1]

    @contextlib.contextmanager
    def _loss_if_missing(self) -> Iterator[None]:
        """A partition that no longer exists is a loss of the rest of the range."""
        try:
            yield
        except BrokerError as error:
            if not is_missing(error):
                raise
            self._lose_rest(losses.gone(self._partition))
