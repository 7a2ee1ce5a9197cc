"""Reads records of a topic with a consumer, and measures how fast they arrive, or how late."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from broker.light_dataclasses import dataclass, field, replace
from kgctl.client.config.configuration import from_keywords
from kgctl.client.consumer.consumer import Consumer
from kgctl.client.consumer.consumer_record import ConsumerRecord
from kgctl.client.consumer.settings import settings_of
from kgctl.client.net.connector import ConnectionSettings
from kgctl.client.net.errors import TimedOut
from kgctl.commands.bench.latencies import Latencies
from kgctl.commands.bench.progress import Progress
from kgctl.commands.bench.sending import STAMP_BYTES
from kgctl.commands.shared.interruption import Interrupted, Interruption
from kgctl.model.topic_partition import TopicPartition

_POLL_S = 0.2
_LAST_S = 2.0


@dataclass(slots=True)
class Received:
    """What was measured. `payload_bytes` are keys and values."""

    records: int = 0
    payload_bytes: int = 0
    seconds: float = 0.0
    cpu_s: float = 0.0
    latencies: Latencies = field(default_factory=Latencies)


class Reading:
    """One consumer without a group, and what it has received. `options` are those of the library."""

    def __init__(
        self,
        connection: ConnectionSettings,
        options: dict[str, Any],
        interruption: Interruption,
        show: Callable[[str], None],
    ) -> None:
        given = from_keywords("consumer", {"auto_offset_reset": "earliest", "enable_auto_commit": False, **options})
        settings = settings_of(given)
        network = replace(settings.network, client_id=connection.client_id, read_only=connection.read_only)
        self._most_at_once = settings.fetch.max_poll_records
        self._interruption, self._show, self._timeout = interruption, show, connection.timeout
        self._consumer = Consumer.connect(connection, replace(settings, network=network))

    def begin(self, topic: str, *, from_end: bool = False) -> None:
        """Read all partitions of the topic, from the oldest record or the end on, and count from here."""
        self.received = Received()
        with self._interruption.may_interrupt():
            infos = self._consumer.partitions_for(topic, self._timeout)
            partitions = [TopicPartition(topic, info.partition) for info in infos]
            self._ends = self._consumer.end_offsets(partitions, self._timeout)
            self._consumer.assign(partitions)
            if from_end:
                self._consumer.seek_to_end()
                for one in partitions:
                    self._consumer.position(one, self._timeout)

    def warm_up(self, seconds: float) -> None:
        """Read from the beginning to the end, again and again. Nothing of it counts, and `run` begins where this did."""
        until = time.perf_counter() + seconds
        while (left := until - time.perf_counter()) > 0 and not self._interruption.requested:
            self.run(None, left, stamped=False, to_end=True, verb="warming up: received")
            self._consumer.seek_to_beginning()
            self.received = Received()

    def run(
        self,
        records: int | None,
        seconds: float | None,
        *,
        stamped: bool,
        to_end: bool,
        verb: str = "received",
    ) -> Received:
        """Read until `records` have arrived, until `seconds` have passed, or `to_end`: where the logs ended at the beginning."""
        began, cpu = time.perf_counter(), time.process_time()
        last, progress = began, Progress(self._show, verb, records)
        try:
            while records is None or self.received.records < records:
                with self._interruption.may_interrupt():
                    found = self._consumer.poll(_POLL_S)
                now = time.perf_counter()
                self._count(found, stamped=stamped)
                last = now if found else last
                if seconds is not None and now - began >= seconds:
                    break
                if to_end and len(found) < self._most_at_once and self._is_at_end():
                    break
                if now - last > self._timeout:
                    raise TimedOut(
                        f"no record arrived for {self._timeout:g} s; {self.received.records:,} were received"
                    )
                progress.note(self.received.records, now)
        except Interrupted:
            pass
        finally:
            self.received.seconds = last - began
            self.received.cpu_s = time.process_time() - cpu
        return self.received

    def close(self) -> None:
        self._consumer.close(_LAST_S)

    def _count(self, found: Sequence[ConsumerRecord], *, stamped: bool) -> None:
        received = self.received
        received.records += len(found)
        received.payload_bytes += sum([len(one.key or b"") + len(one.value or b"") for one in found])
        if stamped:
            now, add = time.time_ns(), received.latencies.add
            for one in found:
                add((now - int.from_bytes((one.value or b"")[:STAMP_BYTES], "big")) / 1e9)

    def _is_at_end(self) -> bool:
        return all(self._consumer.position(one, self._timeout) >= end for one, end in self._ends.items())
