"""A producer of records that are counted: what is acknowledged, and the first failure, which ends the work."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from types import TracebackType

from kgctl.client.net.connector import ConnectionSettings
from kgctl.client.net.errors import KgctlError, TimedOut
from kgctl.client.producer.core.batch import Batch
from kgctl.client.producer.core.errors import OutcomeUnknown, ProducerClosed
from kgctl.client.producer.partitioners import Partitioner
from kgctl.client.producer.producer import Producer
from kgctl.client.producer.records import ArchivedRecord, OutgoingRecord
from kgctl.client.producer.shared_face import Plugins, ProducerSettings
from kgctl.client.producer.tally import Tally


class CountingProducer:
    """After the first failure nothing more is sent, and the next call raises it.

    In transactions, `tally` has what is committed. `acknowledged` is called with each acknowledged batch, on the thread
    of the client. `fileno` is readable once there is a failure.
    """

    def __init__(
        self,
        connection: ConnectionSettings,
        settings: ProducerSettings,
        *,
        partitioner: Partitioner | None = None,
        waits: Callable[[], AbstractContextManager[None]] = contextlib.nullcontext,
        acknowledged: Callable[[Batch], None] = lambda _: None,
    ) -> None:
        self._acknowledged = acknowledged
        self.tally = Tally()
        self.is_acknowledged = settings.core.sender.acks != 0
        self._is_transactional = settings.core.transaction is not None
        self._failure: KgctlError | None = None
        self._uncommitted: list[Batch] = []
        self._ends = os.pipe()
        plugins = Plugins(partitioner=partitioner)
        self.producer = Producer.connect(connection, settings, plugins, self._settled, waits)

    def __enter__(self) -> CountingProducer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def fileno(self) -> int:
        return self._ends[0]

    def send(self, topic: str, record: OutgoingRecord) -> None:
        """Put the record into a batch, once there is room."""
        self.check()
        try:
            self.producer.send_counted(topic, record)
        except KgctlError:
            self.check()
            raise

    def send_archived(self, topic: str, partition: int | None, records: Iterable[ArchivedRecord]) -> None:
        """The same for records as they were read from a log."""
        self.check()
        try:
            self.producer.send_archived(topic, partition, records)
        except KgctlError:
            self.check()
            raise

    def flush(self) -> None:
        """Wait until all records are acknowledged; raises the first failure."""
        if self._failure is None:
            self.producer.flush()
        self.check()

    def check(self) -> None:
        """Raise the first failure."""
        if self._failure is not None:
            raise self._failure.with_traceback(None)

    # --- transactions ---

    def begin_transaction(self) -> None:
        self.producer.begin_transaction()

    def commit_transaction(self, timeout: float) -> None:
        """Commit once all records are acknowledged. Raises OutcomeUnknown if there is no answer in time."""
        self.flush()
        try:
            self.producer.commit_transaction(timeout)
        except OutcomeUnknown:
            raise
        except TimedOut as error:
            raise OutcomeUnknown(error) from error
        for batch in self._uncommitted:
            self.tally.add(batch)
        self._uncommitted.clear()

    def abort_transaction(self, timeout: float) -> None:
        self._uncommitted.clear()
        self.producer.abort_transaction(timeout)

    def close(self) -> None:
        """Close the connections; what was not flushed is lost."""
        if self._ends is not None:
            self.producer.close(0)
            for end in self._ends:
                os.close(end)
            self._ends = ()  # type: ignore[assignment]

    def _settled(self, batch: Batch) -> None:
        """On the thread of the client, with its lock."""
        error = next(iter(batch.record_errors.values()), batch.error)
        if error is None:
            if self._is_transactional:
                self._uncommitted.append(batch)
            else:
                self.tally.add(batch)
            self._acknowledged(batch)
        elif self._failure is None and not isinstance(error, ProducerClosed):
            self._failure = self.producer.failure_of_transaction() or error
            os.write(self._ends[1], b"!")
            self.producer.drop_unsent(error)
