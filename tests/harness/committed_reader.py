"""Reads a partition as consumers do: all visible records, or the committed ones with the rules of the Java consumer."""

from __future__ import annotations

from collections.abc import Iterator

from broker.protocol.control_records import read_marker
from broker.protocol.record_batch import Record, batches, decode_records
from broker.storage import FileSlice, PartitionLog


def committed(partition: PartitionLog, start: int | None = None, max_bytes: int = 400) -> Iterator[Record]:
    """Yield the records that an application with isolation.level=read_committed gets, read in small steps."""
    offset = partition.log_start_offset if start is None else start
    while True:
        found = partition.read(offset, max_bytes, at_least_one=True, committed=True)
        assert found is not None
        if not found:
            return
        if isinstance(found, FileSlice):
            aborted = partition.aborted_transactions(offset, found.end_offset)
            content = found.tobytes()
        else:
            aborted, content = [], found
        waiting = sorted(aborted, key=lambda transaction: transaction.first_offset)
        skipped: set[int] = set()
        for position, header in batches(content):
            while waiting and waiting[0].first_offset <= header.last_offset:
                skipped.add(waiting.pop(0).producer_id)
            next_offset = header.next_offset
            if header.is_control:
                marker = read_marker(content, position)
                if marker is not None and not marker.is_commit:
                    skipped.discard(header.producer_id)
            elif not (header.is_transactional and header.producer_id in skipped):
                for record in decode_records(content, position):
                    if record.offset >= offset:
                        yield record
            offset = next_offset


def uncommitted(partition: PartitionLog, max_bytes: int = 400) -> Iterator[Record]:
    """Yield the records that isolation.level=read_uncommitted shows: markers are no records."""
    offset = partition.log_start_offset
    while True:
        found = partition.read(offset, max_bytes, at_least_one=True)
        assert found is not None
        if not found:
            return
        content = found.tobytes() if isinstance(found, FileSlice) else found
        start = offset
        for position, header in batches(content):
            if not header.is_control:
                for record in decode_records(content, position):
                    if record.offset >= start:
                        yield record
            offset = header.next_offset
