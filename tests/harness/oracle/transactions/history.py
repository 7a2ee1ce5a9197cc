"""What __transaction_state holds of a transactional id: every value, oldest first."""

from __future__ import annotations

from typing import Any

from broker.protocol.messages.fetch import FetchRequest
from broker.protocol.offsets_topic import TOPIC as OFFSETS_TOPIC
from broker.protocol.record_batch import batches, decode_records
from broker.protocol.transaction_log import TOPIC, decode_key, decode_value, partition_for
from tests.harness.oracle.transactions.names import Names
from tests.harness.wire_client import WireClient

VERSION = 11
STATUS = ("Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort", "Dead", "EpochFence")


def read(client: WireClient, symbol: str, names: Names) -> list[Any]:
    transactional_id = names.live[symbol]
    out: list[Any] = []
    offset = 0
    while True:
        asked = FetchRequest.Partition(
            partition=partition_for(transactional_id), fetch_offset=offset, partition_max_bytes=1 << 20
        )
        topics = [FetchRequest.Topic(topic=TOPIC, partitions=[asked])]
        answer = client.ask(FetchRequest(max_wait_ms=0, min_bytes=0, topics=topics), VERSION)
        records = bytes(answer.responses[0].partitions[0].records or b"")
        found = list(batches(records, partial_tail=True))
        if not found:
            return out
        for position, header in found:
            offset = header.next_offset
            for record in decode_records(records, position):
                if record.key is not None and decode_key(record.key) == transactional_id:
                    out.append(entry(record.value, names))


def entry(value: bytes | None, names: Names) -> list[Any] | None:
    """Version, state, producer id, previous and next producer id, epoch, timeout, partitions, whether it has a start time, and the
    client's version; None for a tombstone.
    """
    if value is None:
        return None
    found = decode_value(value)
    partitions = found.transaction_partitions
    return [
        int.from_bytes(value[:2], "big"),
        STATUS[found.transaction_status],
        names.producer(found.producer_id),
        names.producer(found.previous_producer_id),
        names.producer(found.next_producer_id),
        found.producer_epoch,
        found.transaction_timeout_ms,
        None
        if partitions is None
        else sorted(
            f"{names.text(one.topic)}-{names.offsets_partition(p) if one.topic == OFFSETS_TOPIC else p}"
            for one in partitions
            for p in one.partition_ids
        ),
        found.transaction_start_timestamp_ms != -1,
        found.client_transaction_version,
    ]
