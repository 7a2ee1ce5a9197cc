"""Reads committed records as the protocol describes it: up to the last stable offset, without aborted transactions."""

from __future__ import annotations

import heapq
import struct
import time
from collections.abc import Iterator
from typing import Any

from broker.protocol.errors import ErrorCode
from broker.protocol.messages.list_offsets import ListOffsetsRequest
from broker.protocol.messages.offset_fetch import OffsetFetchRequest
from broker.protocol.record_batch import batches, check_crc, decode_records
from tests.durability.transactions.values import INPUT, PARTITIONS
from tests.harness.requests import fetch
from tests.harness.wire_client import WireClient

READ_UNCOMMITTED, READ_COMMITTED, LATEST = 0, 1, -1
_MARKER_KEY = struct.Struct(">hh")
ABORT = 0
# Less than a transaction timeout, and enough for the start of a copier, which aborts what a crashed one left open.
STABLE_WITHIN_S, RETRY_S = 15.0, 0.01


def stable_ends(client: WireClient, topic: str, partitions: int, isolation: int = READ_COMMITTED) -> list[int]:
    """The last stable offset of each partition, or its high watermark, all in one request."""
    asked = [ListOffsetsRequest.Partition(partition_index=p, timestamp=LATEST) for p in range(partitions)]
    topics = [ListOffsetsRequest.Topic(name=topic, partitions=asked)]
    (found,) = client.ask(ListOffsetsRequest(isolation_level=isolation, topics=topics), 8).topics
    assert all(p.error_code == ErrorCode.NONE for p in found.partitions), f"ListOffsets of {topic}: {found}"
    return [p.offset for p in sorted(found.partitions, key=lambda p: p.partition_index)]


def committed_values(client: WireClient, topic: str, partition: int, start: int, end: int) -> Iterator[tuple[int, str]]:
    """Offset and value of each committed record from `start` to `end`, which is below the last stable offset."""
    offset = start
    while offset < end:
        row = fetch(client, topic, offset, partition=partition, isolation_level=READ_COMMITTED)
        assert row.error_code == ErrorCode.NONE, f"Fetch of {topic}-{partition} at {offset}: error {row.error_code}"
        content = bytes(row.records or b"")
        assert content, f"{topic}-{partition} ends at {offset}, its last stable offset was {end}"
        for next_offset, found in _visible(row, content, f"{topic}-{partition}"):
            yield from ((at, value) for at, value in found if offset <= at < end)
            offset = max(offset, next_offset)


def _visible(row: Any, content: bytes, name: str) -> Iterator[tuple[int, list[tuple[int, str]]]]:
    """The next offset after each batch, and its records unless they are aborted or control records."""
    coming = [(a.first_offset, a.producer_id) for a in row.aborted_transactions or []]
    heapq.heapify(coming)
    aborted: set[int] = set()
    for position, header in batches(content):
        assert check_crc(content, position, header), f"{name}: a bad batch at {header.base_offset}"
        while coming and coming[0][0] <= header.last_offset:
            aborted.add(heapq.heappop(coming)[1])
        found = []
        if header.is_control:
            (marker,) = decode_records(content, position)
            if _MARKER_KEY.unpack(marker.key or b"")[1] == ABORT:
                aborted.discard(header.producer_id)
        elif not (header.is_transactional and header.producer_id in aborted):
            found = [(r.offset, (r.value or b"").decode()) for r in decode_records(content, position)]
        yield header.next_offset, found


def committed_offsets(client: WireClient, group: str) -> dict[int, int]:
    """By partition of the input, once no transaction holds them back."""
    asked = [OffsetFetchRequest.Group(group_id=group, topics=[_ALL])]
    deadline = time.monotonic() + STABLE_WITHIN_S
    while True:
        (found,) = client.ask(OffsetFetchRequest(groups=asked, require_stable=True), 8).groups
        rows = [p for topic in found.topics for p in topic.partitions]
        codes = {found.error_code, *(p.error_code for p in rows)} - {ErrorCode.NONE}
        if not codes:
            return {p.partition_index: p.committed_offset for p in rows if p.committed_offset >= 0}
        assert codes == {ErrorCode.UNSTABLE_OFFSET_COMMIT}, f"OffsetFetch of {group}: {found}"
        assert time.monotonic() < deadline, f"the offsets of {group} stay unstable"
        time.sleep(RETRY_S)


_ALL = OffsetFetchRequest.Topic(name=INPUT, partition_indexes=list(range(PARTITIONS)))
