"""Reads one range of one partition, with a consumer that fetches ahead while Spark uses what has arrived."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass

from kgctl.client.consumer import outage
from kgctl.client.consumer.consumer import Consumer
from kgctl.client.consumer.errors import NoOffsetForPartition, OffsetOutOfRange
from kgctl.client.consumer.fetched import Fetched
from kgctl.client.consumer.fetching.options import FetchOptions
from kgctl.client.consumer.outage import Outage
from kgctl.client.consumer.reset_strategy import NONE
from kgctl.client.consumer.settings import ConsumerSettings
from kgctl.client.net.connector import ConnectionSettings
from kgctl.client.net.errors import BrokerError, TimedOut, Unreachable, is_missing
from kgctl.client.network.settings import NetworkSettings
from kgctl.pipelines.schemas.sources import RAW_NAMES
from kgctl.pipelines.source import losses
from kgctl.pipelines.source.ranges import OffsetRange

# How often an outage and missing progress are noticed.
_POLL_SECONDS = 0.2
_LOOKUP_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Patience(outage.Patience):
    """`no_progress`: seconds to wait for records that the range promises."""

    no_progress: float = 10.0


@dataclass(frozen=True, slots=True)
class ReadTask:
    """Everything a task needs; it is pickled."""

    connection: ConnectionSettings
    range: OffsetRange
    fetch: FetchOptions
    fail_on_data_loss: bool = True
    columns: tuple[str, ...] = RAW_NAMES
    patience: Patience = Patience()


def read_range(task: ReadTask) -> Iterator[Fetched]:
    """Answers from the start of the range to its end. Raises DataLoss where records are gone, if the task says so."""
    if task.range.start >= task.range.end:
        return
    with _consumer_of(task) as consumer:
        yield from _RangeReader(task, consumer).answers()


def _consumer_of(task: ReadTask) -> Consumer:
    connection = task.connection
    network = NetworkSettings(
        client_id=connection.client_id, read_only=connection.read_only, allow_auto_create_topics=False
    )
    return Consumer.connect(connection, ConsumerSettings(network, task.fetch, group=None, reset=NONE))


class _RangeReader:
    def __init__(self, task: ReadTask, consumer: Consumer) -> None:
        self._task, self._consumer = task, consumer
        self._partition = task.range.partition
        self._outage = Outage(task.patience)
        self._progress_at = time.monotonic()
        consumer.assign([self._partition])
        consumer.seek(self._partition, task.range.start)
        consumer.stop_before({self._partition: task.range.end})

    def answers(self) -> Iterator[Fetched]:
        while not self._consumer.has_reached_limit(self._partition):
            try:
                arrived = self._consumer.poll_batches(_POLL_SECONDS)
            except OffsetOutOfRange:
                self._skip_loss()
                continue
            except NoOffsetForPartition:  # the topic was deleted and created again
                self._lose_rest(losses.gone(self._partition))
                continue
            if arrived:
                self._outage.check(None, time.monotonic())
                yield from arrived
                self._progress_at = time.monotonic()
            else:
                self._check_outage()

    def _check_outage(self) -> None:
        obstacle, now = self._consumer.obstacle(), time.monotonic()
        with self._loss_if_missing():
            self._outage.check(obstacle, now)
        if obstacle is None and now - self._progress_at >= self._task.patience.no_progress:
            self._check_progress(now - self._progress_at)

    # --- lost records ---

    def _skip_loss(self) -> None:
        """The broker does not have the offset: records before the start of the log, or after its end, are gone."""
        bounds = self._bounds()
        if bounds is None:
            return
        first, last = bounds
        position, end = self._consumer.position(self._partition), self._task.range.end
        if position < first:
            if self._task.fail_on_data_loss:
                raise losses.deleted(self._partition, position, min(first, end))
            self._consumer.seek(self._partition, min(first, end))
        elif position > last:
            self._lose_rest(losses.beyond_end(self._partition, end, last))

    def _check_progress(self, lasted: float) -> None:
        """Without errors and without records: a log that ends before the range does has lost records."""
        end = self._task.range.end
        bounds = self._bounds()
        if bounds is not None and bounds[1] < end:
            self._lose_rest(losses.beyond_end(self._partition, end, bounds[1]))
        elif lasted > self._task.patience.outage:
            position = self._consumer.position(self._partition)
            raise TimedOut(f"{self._partition}: no records arrived from offset {position} on for {lasted:.0f} s")

    def _lose_rest(self, loss: losses.DataLoss) -> None:
        if self._task.fail_on_data_loss:
            raise loss
        self._consumer.seek(self._partition, self._task.range.end)

    def _bounds(self) -> tuple[int, int] | None:
        """The first offset and the log end; None if no broker answers now."""
        asked = [self._partition]
        with self._loss_if_missing(), contextlib.suppress(Unreachable, TimedOut):
            first = self._consumer.beginning_offsets(asked, _LOOKUP_SECONDS)
            last = self._consumer.end_offsets(asked, _LOOKUP_SECONDS)
            return first[self._partition], last[self._partition]
        return None

    @contextlib.contextmanager
    def _loss_if_missing(self) -> Iterator[None]:
        """A partition that no longer exists is a loss of the rest of the range."""
        try:
            yield
        except BrokerError as error:
            if not is_missing(error):
                raise
            self._lose_rest(losses.gone(self._partition))
