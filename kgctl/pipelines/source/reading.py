"""Reads one range of one partition off the wire: the next Fetch is under way before the last answer is used."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

from broker.protocol.errors import ErrorCode
from broker.protocol.messages.fetch import FetchRequest, FetchResponse
from kgctl.client.admin.offsets import EARLIEST, LATEST, OffsetAt, list_offsets
from kgctl.client.consumer.fetched import Fetched
from kgctl.client.consumer.fetcher import Fetcher, Fetching, FetchSettings
from kgctl.client.net.cluster import Node
from kgctl.client.net.connection import Connection
from kgctl.client.net.connector import ConnectionSettings, Connector
from kgctl.client.net.errors import BrokerError, KgctlError, TimedOut, Unreachable
from kgctl.pipelines.source import losses
from kgctl.pipelines.source.ranges import OffsetRange

# Version 13 names topics by id only.
_MAX_FETCH_VERSION = 12
_REQUEST_SECONDS = 30.0
_LOOKUP_PAUSE_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class Patience:
    """Seconds: for a cluster that does not answer, for a topic nobody knows of, for records that were promised."""

    outage: float = 60.0
    missing_topic: float = 5.0
    no_progress: float = 10.0


@dataclass(frozen=True, slots=True)
class ReadTask:
    """All that a task is told; travels pickled."""

    connection: ConnectionSettings
    range: OffsetRange
    fetch: FetchSettings
    fail_on_data_loss: bool = True
    include_headers: bool = False
    patience: Patience = Patience()


def read_range(task: ReadTask) -> Iterator[Fetched]:
    """Answers from the start of the range to its end. DataLoss, if that is an error, where records are gone."""
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
        self._cluster = self._connector.cluster
        self._fetcher = Fetcher(task.fetch)
        self._fetcher.assign({self._partition: task.range.start}, {self._partition: task.range.end})
        self._connection: Connection | None = None
        self._version = 0
        self._leader: Node | None = None
        self._failure: KgctlError | None = None
        self._failing_since = self._progress_at = time.monotonic()

    def answers(self) -> Iterator[Fetched]:
        fetching = self._send()
        while not self._fetcher.all_finished:
            before = self._position
            came = [] if fetching is None else self._receive(fetching)
            if self._fetcher.out_of_range:
                self._pass_loss()
            if self._position > before:
                self._progress_at = time.monotonic()
            elif fetching is not None and self._failure is None:
                self._judge_silence()
            fetching = self._send()
            yield from came

    def close(self) -> None:
        self._drop()
        self._connector.close()

    @property
    def _position(self) -> int:
        return self._fetcher.positions[self._partition]

    def _send(self) -> Fetching | None:
        """None: nothing is left to ask for, or the leader cannot be asked now."""
        if self._fetcher.all_finished:
            return None
        if self._leader is None and not self._find_leader():
            return None
        assert self._leader is not None
        fetchings = self._fetcher.next_fetches({self._partition: self._leader})
        if not fetchings:
            return None
        deadline = time.monotonic() + _REQUEST_SECONDS
        try:
            self._connect(self._leader, deadline).send(fetchings[0].request, self._version, FetchResponse, deadline)
        except (Unreachable, TimedOut) as error:
            self._lose(fetchings[0], error)
            return None
        return fetchings[0]

    def _receive(self, fetching: Fetching) -> list[Fetched]:
        assert self._connection is not None
        try:
            deadline = time.monotonic() + _REQUEST_SECONDS + fetching.request.max_wait_ms / 1000
            _, response = self._connection.receive(deadline)
        except (Unreachable, TimedOut) as error:
            self._lose(fetching, error)
            return []
        assert isinstance(response, FetchResponse)
        came = self._fetcher.on_response(fetching, response)
        refusal = self._fetcher.failing.get(self._partition)
        if refusal is None:
            self._failure = None
        else:
            self._note(refusal)
        return came

    def _connect(self, leader: Node, deadline: float) -> Connection:
        if self._connection is None:
            self._connection, self._version = self._connector.link(leader, FetchRequest, _MAX_FETCH_VERSION, deadline)
        return self._connection

    def _find_leader(self) -> bool:
        self._cluster.forget_leader(self._partition)
        found: Node | KgctlError
        try:
            found = self._connector.run(self._cluster.leaders([self._partition]), _REQUEST_SECONDS)[self._partition]
        except (Unreachable, TimedOut) as silence:
            found = silence
        if isinstance(found, Node):
            self._leader = found
            self._fetcher.healed(self._partition)
            return True
        self._note(found)
        return False

    # --- trouble ---

    def _lose(self, fetching: Fetching, error: KgctlError) -> None:
        self._fetcher.on_failure(fetching)
        self._note(error)

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection = None

    def _note(self, error: KgctlError) -> None:
        """A failure that may pass: wait a little, and look for the leader anew. Raises what has lasted too long."""
        self._drop()
        self._leader = None
        now = time.monotonic()
        if self._failure is None:
            self._failing_since = now
        self._failure = error
        lasted = now - self._failing_since
        if _is_unknown(error):
            if lasted > self._task.patience.missing_topic:
                self._lost(losses.gone(self._partition))
        elif not (error.retriable or isinstance(error, TimedOut)) or lasted > self._task.patience.outage:
            raise error
        time.sleep(_LOOKUP_PAUSE_SECONDS)

    def _pass_loss(self) -> None:
        """The broker says that it does not have the offset: records before the log's start, or behind its end, are gone."""
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
            self._lost(losses.beyond_end(self._partition, end, last))
        else:
            # It was a moment ago: the log has it now.
            self._fetcher.seek(self._partition, position)

    def _judge_silence(self) -> None:
        """No error, no record, and the end was promised: a log that ends before it has lost records."""
        lasted = time.monotonic() - self._progress_at
        if lasted < self._task.patience.no_progress:
            return
        bounds = self._bounds()
        if bounds is not None and bounds[1] < self._task.range.end:
            self._lost(losses.beyond_end(self._partition, self._task.range.end, bounds[1]))
        elif lasted > self._task.patience.outage:
            raise TimedOut(f"{self._partition}: nothing came from offset {self._position} on for {lasted:.0f} s")

    def _lost(self, loss: losses.DataLoss) -> None:
        if self._task.fail_on_data_loss:
            raise loss
        self._fetcher.seek(self._partition, self._task.range.end)

    def _bounds(self) -> tuple[int, int] | None:
        """The first offset and the one behind the last; None if nobody says."""
        found = []
        for end in (EARLIEST, LATEST):
            steps = list_offsets(self._cluster, {self._partition: end}, committed_only=self._task.fetch.committed_only)
            answer: OffsetAt | KgctlError
            try:
                answer = self._connector.run(steps, _REQUEST_SECONDS)[self._partition]
            except (Unreachable, TimedOut) as silence:
                answer = silence
            if isinstance(answer, KgctlError):
                self._note(answer)
                return None
            found.append(answer.offset)
        return found[0], found[1]


def _is_unknown(error: KgctlError) -> bool:
    return isinstance(error, BrokerError) and error.code in (
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
    )
