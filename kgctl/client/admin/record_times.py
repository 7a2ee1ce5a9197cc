"""When the record at an offset was written: one Fetch of one batch per offset."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TypeAlias

from broker.protocol.messages.fetch import FetchRequest, FetchResponse
from broker.protocol.record_batch import batches, decode_records
from broker.protocol.wire_types import DecodeError
from kgctl.client.net.cluster import Ask, Batch, Cluster, Node, chunks
from kgctl.client.net.errors import BrokerError, KgctlError
from kgctl.client.net.rounds import rounds
from kgctl.client.net.steps import Steps
from kgctl.model.topic_partition import TopicPartition

Position: TypeAlias = "tuple[str, int, int]"
NAMED_TOPICS_UNTIL = 12
PARTITIONS_PER_REQUEST = 100
PARTITION_BYTES = 64 << 10


class _CutShort:
    """A batch was larger than what a broker sends of a partition that is not the first of its request."""


def record_times(cluster: Cluster, wanted: Sequence[Position]) -> Steps[dict[Position, int | None]]:
    """ms since 1970 of the first record at or after each (topic, partition, offset).

    None: the log has no record there, or no longer. KgctlError if none can be asked for a reason that may pass.
    """
    found: dict[Position, int | None] = dict.fromkeys(wanted)
    failures: list[KgctlError] = []
    offsets: dict[TopicPartition, set[int]] = {}
    for topic, part, offset in sorted(wanted):
        offsets.setdefault(TopicPartition(topic, part), set()).add(offset)
    for some in rounds(offsets):
        results = yield from cluster.at_leaders(sorted(some), partial(_fetches, some, PARTITIONS_PER_REQUEST))
        large = sorted(one for one, result in results.items() if isinstance(result, _CutShort))
        if large:
            results |= yield from cluster.at_leaders(large, partial(_fetches, some, 1))
        for one, result in results.items():
            if isinstance(result, KgctlError):
                failures.append(result)
            elif not isinstance(result, _CutShort):
                found[(*one, some[one])] = result
    if failures and all(value is None for value in found.values()) and all(error.retriable for error in failures):
        raise failures[0]
    return found


def _fetches(
    offsets: dict[TopicPartition, int], together: int, node: Node, keys: list[TopicPartition]
) -> list[Batch[TopicPartition]]:
    return [_fetch(offsets, node, some) for some in chunks(keys, together)]


def _fetch(offsets: dict[TopicPartition, int], node: Node, keys: Sequence[TopicPartition]) -> Batch[TopicPartition]:
    topics: dict[str, FetchRequest.Topic] = {}
    for topic, part in keys:
        row = FetchRequest.Partition(
            partition=part, fetch_offset=offsets[TopicPartition(topic, part)], partition_max_bytes=PARTITION_BYTES
        )
        topics.setdefault(topic, FetchRequest.Topic(topic=topic, partitions=[])).partitions.append(row)
    request = FetchRequest(
        max_wait_ms=0, min_bytes=0, max_bytes=2 * PARTITION_BYTES * len(keys), topics=list(topics.values())
    )

    def read(answer: FetchResponse) -> dict[TopicPartition, int | KgctlError | _CutShort | None]:
        return {
            TopicPartition(topic.topic, row.partition_index): BrokerError(
                row.error_code, f"{topic.topic}-{row.partition_index}"
            )
            if row.error_code
            else _first(row, offsets[TopicPartition(topic.topic, row.partition_index)])
            for topic in answer.responses
            for row in topic.partitions
        }

    return Batch(Ask(node.endpoint, request, FetchResponse, max_version=NAMED_TOPICS_UNTIL), keys, read)


def _first(row: FetchResponse.Partition, offset: int) -> int | _CutShort | None:
    raw, whole = row.records or b"", False
    try:
        for position, header in batches(raw, partial_tail=True):
            whole = True
            if header.is_control or header.last_offset < offset:
                continue
            if header.has_log_append_time:
                return header.max_timestamp
            for record in decode_records(raw, position):
                if record.offset >= offset:
                    return record.timestamp
    except DecodeError:
        # Whoever reads the record itself is told; this is only about its time.
        return None
    return _CutShort() if not whole and row.high_watermark > offset else None
