"""Sends records as fast as the cluster takes them, or at a rate, and measures their acknowledgements."""

from __future__ import annotations

import contextlib
import math
import os
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from broker.light_dataclasses import dataclass, field, replace
from kgctl.client.config.configuration import from_keywords
from kgctl.client.net.connector import ConnectionSettings
from kgctl.client.net.errors import KgctlError, TimedOut
from kgctl.client.producer.core.batch import Batch, RecordMetadata
from kgctl.client.producer.core.errors import ProducerClosed
from kgctl.client.producer.options import settings_of
from kgctl.client.producer.producer import Producer
from kgctl.client.producer.shared_face import Plugins
from kgctl.commands.bench.latencies import Latencies
from kgctl.commands.bench.progress import Progress
from kgctl.commands.shared.interruption import Interrupted, Interruption

STAMP_BYTES = 8
# Of records that are sent as fast as possible, one in this many is timed: a callback costs a tenth of a record.
_SAMPLED = 64
_MOST_AT_ONCE = 256
_PAYLOADS = 64
_LETTERS = bytes(65 + n % 26 for n in range(256))
_LONGEST_SLEEP_S = 0.2
# After a signal: for the acknowledgements of what was sent.
_LAST_S = 5.0


@dataclass(frozen=True, slots=True)
class Load:
    """What to send: at most `records` of `record_bytes`, `rate` a second, within `seconds`; a commit every `per_transaction`.

    `stamped`: each value begins with the time of its sending, for the latency to a consumer.
    """

    records: int | None
    record_bytes: int
    rate: float | None = None
    seconds: float | None = None
    per_transaction: int | None = None
    stamped: bool = False


@dataclass(slots=True)
class Sent:
    """What was measured. `records` are acknowledged; with acks=0, sent; in transactions, committed."""

    records: int = 0
    seconds: float = 0.0
    cpu_s: float = 0.0
    transactions: int = 0
    latencies: Latencies = field(default_factory=Latencies)


def options_for(record_bytes: int, **options: Any) -> dict[str, Any]:
    """Options of a producer whose requests and buffer have room for records of this size."""
    return {
        "max_request_size": max(1 << 20, record_bytes + 65_536),
        "buffer_memory": max(32 << 20, 4 * record_bytes),
        **options,
    }


class Sending:
    """One producer, and what it has sent. `options` are those of the library."""

    def __init__(
        self,
        connection: ConnectionSettings,
        options: dict[str, Any],
        interruption: Interruption,
        show: Callable[[str], None],
    ) -> None:
        settings = settings_of(from_keywords("producer", options))
        network = replace(settings.network, client_id=connection.client_id, read_only=connection.read_only)
        settings = replace(settings, network=network)
        self._interruption, self._show, self._timeout = interruption, show, connection.timeout
        self._failure: KgctlError | None = None
        self._acknowledged = 0
        self._is_transactional, self._is_open = settings.core.transaction is not None, False
        self.sent = Sent()
        waits = interruption.may_interrupt
        self._producer = Producer.connect(connection, settings, Plugins(), self._settled, waits)

    def run(self, topic: str, load: Load, warm_up_s: float = 0.0) -> Sent:
        """Send until the load is sent or a signal arrives. Raises the first failure.

        What is sent in the seconds before, at the same rate, does not count.
        """
        try:
            with contextlib.suppress(Interrupted):
                with self._interruption.may_interrupt():
                    self._producer.partitions_for(topic, self._timeout)
                    if self._is_transactional:
                        self._producer.init_transactions(self._timeout)
                if warm_up_s:
                    self._measure(topic, replace(load, records=None, seconds=warm_up_s), "warming up: sent")
                    self.sent, self._acknowledged = Sent(), 0
                if not self._interruption.requested:
                    self._measure(topic, load, "sent")
        finally:
            # Aborts an open transaction.
            self._producer.close(0 if self._failure else _LAST_S)
        self._check()
        return self.sent

    def _measure(self, topic: str, load: Load, verb: str) -> None:
        began, cpu = time.perf_counter(), time.process_time()
        try:
            self._send_each(topic, load, began, verb)
            with self._interruption.may_interrupt():
                self._commit() if self._is_transactional else self._producer.flush()
        except Interrupted:
            if not self._is_transactional:
                with contextlib.suppress(TimedOut):
                    self._producer.flush(_LAST_S)
        finally:
            self.sent.seconds = time.perf_counter() - began
            self.sent.cpu_s = time.process_time() - cpu
            if not self._is_transactional:
                self.sent.records = self._acknowledged

    def _send_each(self, topic: str, load: Load, began: float, verb: str) -> None:
        send, payloads, add = self._producer.send, _payloads(load.record_bytes), self._acknowledge
        step = 1 if load.rate is not None else _SAMPLED
        clock, stamped = time.perf_counter, load.stamped
        for first, count in self._portions(load, began, verb):
            if self._is_transactional and not self._is_open:
                self._producer.begin_transaction()
                self._is_open = True
            for n in range(first, first + count):
                value = payloads[n % _PAYLOADS]
                if stamped:
                    value = time.time_ns().to_bytes(STAMP_BYTES, "big") + value[STAMP_BYTES:]
                if n % step:
                    send(topic, value)
                else:
                    send(topic, value, on_delivery=partial(add, clock()))
            if load.per_transaction is not None and (first + count) % load.per_transaction == 0:
                with self._interruption.may_interrupt():
                    self._commit()

    def _portions(self, load: Load, began: float, verb: str) -> Iterator[tuple[int, int]]:
        """The number of the next record, and how many to send without a pause; ends when nothing is left to send."""
        most = _MOST_AT_ONCE if load.rate is None else max(1, min(_MOST_AT_ONCE, int(load.rate / 100)))
        ends = math.inf if load.seconds is None else began + load.seconds
        sent, progress = 0, Progress(self._show, verb, load.records)
        while load.records is None or sent < load.records:
            if load.rate is not None:
                self._sleep(min(began + sent / load.rate, ends))
            now = time.perf_counter()
            if now >= ends:
                return
            self._check()
            if self._interruption.requested:
                raise Interrupted
            count = most if load.records is None else min(most, load.records - sent)
            if load.per_transaction is not None:
                count = min(count, load.per_transaction - sent % load.per_transaction)
            yield sent, count
            sent += count
            progress.note(sent, now)

    def _sleep(self, until: float) -> None:
        while (left := until - time.perf_counter()) > 0:
            with self._interruption.may_interrupt():
                time.sleep(min(left, _LONGEST_SLEEP_S))

    def _commit(self) -> None:
        """Commit the open transaction, if there is one."""
        if self._is_open:
            self._producer.commit_transaction(self._timeout)
            self._is_open = False
            self.sent.transactions += 1
            self.sent.records = self._acknowledged

    def _acknowledge(self, began: float, metadata: RecordMetadata, error: KgctlError | None) -> None:
        if error is None:
            self.sent.latencies.add(time.perf_counter() - began)

    def _settled(self, batch: Batch) -> None:
        """On the thread of the client."""
        error = next(iter(batch.record_errors.values()), batch.error)
        if error is None:
            self._acknowledged += batch.count
        elif self._failure is None and not isinstance(error, ProducerClosed):
            self._failure = error

    def _check(self) -> None:
        if self._failure is not None:
            raise self._failure.with_traceback(None)


def _payloads(size: int) -> list[bytes]:
    """Random letters, which compress a little, as text does."""
    return [os.urandom(size).translate(_LETTERS) for _ in range(_PAYLOADS)]
