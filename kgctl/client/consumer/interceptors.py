"""Code of users that sees records before the application, and committed offsets."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from kgctl.client.consumer.consumer_record import ConsumerRecord
from kgctl.client.consumer.offset_and_metadata import OffsetAndMetadata
from kgctl.model.topic_partition import TopicPartition

logger = logging.getLogger("kgctl.client")


class ConsumerInterceptor:
    """A base class: override what you need. What a method raises is logged, and the next interceptor is called."""

    def on_consume(self, records: list[ConsumerRecord]) -> list[ConsumerRecord]:
        """Return the records that `poll` gives to the application. Called in the thread that polls."""
        return records

    def on_commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """Offsets were committed."""

    def close(self) -> None:
        """The consumer is closed."""


class Interceptors:
    """Calls them in order; each gets what the one before it returned."""

    def __init__(self, chain: Sequence[ConsumerInterceptor]) -> None:
        self._chain = tuple(chain)

    def __bool__(self) -> bool:
        return bool(self._chain)

    def on_consume(self, records: list[ConsumerRecord]) -> list[ConsumerRecord]:
        for one in self._chain:
            try:
                records = one.on_consume(records)
            except Exception:
                logger.exception("%r failed in on_consume", one)
        return records

    def on_commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        for one in self._chain:
            try:
                one.on_commit(offsets)
            except Exception:
                logger.exception("%r failed in on_commit", one)

    def close(self) -> None:
        for one in self._chain:
            try:
                one.close()
            except Exception:
                logger.exception("%r failed in close", one)
