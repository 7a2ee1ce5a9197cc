"""Code of users that sees each record before it is sent, and each acknowledgement."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from broker.light_named_tuples import NamedTuple
from kgctl.client.net.errors import KgctlError
from kgctl.client.producer.core.batch import RecordMetadata


class ProducerRecord(NamedTuple):
    """What was passed to `send`."""

    topic: str
    value: Any
    key: Any
    partition: int | None
    timestamp_ms: int | None
    headers: Sequence[tuple[str, bytes | None]]


class ProducerInterceptor:
    """Derive from this. What a method raises is logged, and changes nothing.

    `on_send` runs in the thread that sends; `on_acknowledgement` where callbacks run, before the callback of the record.
    """

    def on_send(self, record: ProducerRecord) -> ProducerRecord:
        """The record to send: this one, or another."""
        return record

    def on_acknowledgement(self, metadata: RecordMetadata, error: KgctlError | None) -> None:
        """A record is acknowledged or has failed, perhaps before it was sent. The offset is -1 if there is an error."""

    def close(self) -> None:
        """The producer is closed."""


class Interceptors:
    """All interceptors of a producer, in order."""

    def __init__(self, interceptors: Sequence[ProducerInterceptor]) -> None:
        self._interceptors = tuple(interceptors)

    def __bool__(self) -> bool:
        return bool(self._interceptors)

    def on_send(self, record: ProducerRecord) -> ProducerRecord:
        for interceptor in self._interceptors:
            try:
                record = interceptor.on_send(record)
            except Exception as error:  # noqa: BLE001 - user code
                report(error)
        return record

    def on_acknowledgement(self, metadata: RecordMetadata, error: KgctlError | None) -> None:
        for interceptor in self._interceptors:
            try:
                interceptor.on_acknowledgement(metadata, error)
            except Exception as raised:  # noqa: BLE001 - user code
                report(raised)

    def close(self) -> None:
        for interceptor in self._interceptors:
            try:
                interceptor.close()
            except Exception as error:  # noqa: BLE001 - user code
                report(error)


def report(error: BaseException) -> None:
    """Log what code of users has raised."""
    import logging

    logging.getLogger("kgctl.producer").warning("a callback has failed: %r", error, exc_info=error)
