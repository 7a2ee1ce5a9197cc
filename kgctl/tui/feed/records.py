"""The reads of records: a page of a partition, and where the partition starts and ends. Nothing is committed."""

from __future__ import annotations

import base64
import json
from typing import Any

from broker.light_dataclasses import dataclass, replace
from broker.protocol.record_batch import Record
from kgctl.client.admin.admin import Admin
from kgctl.client.admin.browse import Browsed, Where
from kgctl.client.net.errors import KgctlError
from kgctl.model.browsed import BrowsedHeader, BrowsedRecord, LogBounds, Payload, RecordsPage
from kgctl.model.peek import OPEN
from kgctl.model.topic_partition import TopicPartition
from kgctl.render.internal_records import Decoded, decoded
from kgctl.tui.feed.read import Read

# Of a key or a value; the size says how much more there is.
MOST_BYTES = 16 << 10
MOST_HEADERS = 100
PAGE = 50


@dataclass(frozen=True, slots=True)
class Bounds(Read[LogBounds]):
    """Where a partition starts and ends, and the committed offset of a group."""

    topic: str
    partition: int
    group: str | None = None

    def run(self, admin: Admin) -> LogBounds:
        try:
            return admin.log_bounds(TopicPartition(self.topic, self.partition), self.group)
        except KgctlError as error:
            if error.retriable or error.is_final:
                raise
            return LogBounds(error=error.as_row())


@dataclass(frozen=True, slots=True)
class Records(Read[RecordsPage]):
    """Records around an offset, a time, the committed offset of a group, or without any of them the end of the log."""

    topic: str
    partition: int
    offset: int | None = None
    time_ms: int | None = None
    group: str | None = None
    before: int = PAGE // 2
    after: int = PAGE // 2

    @property
    def follows(self) -> bool:
        """Whether the answer is about the end of the log, wherever that is."""
        return self.offset is None and self.time_ms is None and self.group is None

    def run(self, admin: Admin) -> RecordsPage:
        key = TopicPartition(self.topic, self.partition)
        where = Where(self.offset, self.time_ms, self.group)
        try:
            found = admin.browse(key, where, self.before, self.after)
        except KgctlError as error:
            if error.retriable or error.is_final:
                raise
            return RecordsPage(self.topic, self.partition, LogBounds(error=error.as_row()), error=error.as_row())
        page = _page(key, found)
        if any(one.transaction == OPEN for one in page.records) or found.log.position >= found.log.stable:
            page = _with_hold(page, admin, key)
        return page


def newest(topic: str, partition: int) -> Records:
    return Records(topic, partition, before=PAGE, after=0)


def _page(key: TopicPartition, found: Browsed) -> RecordsPage:
    return RecordsPage(
        *key,
        found.bounds,
        found.log.position,
        tuple(_record(key.topic, one, found.log.outcome(one.offset)) for one in found.records),
        tuple(found.gaps),
        found.note,
        error=found.log.failure.as_row() if found.log.failure else None,
    )


def _with_hold(page: RecordsPage, admin: Admin, key: TopicPartition) -> RecordsPage:
    try:
        return replace(page, hold=admin.holds([key]).get(key))
    except KgctlError:
        # The records are what was asked for; who wrote them is an addition.
        return page


def _record(topic: str, record: Record, transaction: str | None) -> BrowsedRecord:
    known = decoded(topic, record)
    return BrowsedRecord(
        record.offset,
        None if record.timestamp < 0 else record.timestamp,
        _payload(record.key, known, 1),
        _payload(record.value, known, 2),
        tuple(BrowsedHeader(name, _payload(value)) for name, value in list(record.headers)[:MOST_HEADERS]),
        transaction,
        known[0] if known else None,
    )


def _payload(data: bytes | memoryview | None, known: Decoded | None = None, part: int = 0) -> Payload | None:
    if data is None:
        return None
    first = base64.b64encode(bytes(data[:MOST_BYTES])).decode()
    meaning: Any = known[part] if known else None
    return Payload(len(data), first, None if meaning is None else json.dumps(meaning)[:MOST_BYTES])
