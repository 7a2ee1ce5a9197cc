"""Produce: append record batches. Every answer waits for the flush, whether acks is 1 or all."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from broker.light_named_tuples import NamedTuple
from broker.protocol.acls import Operation, ResourceType
from broker.protocol.compression import Codec
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.produce import ProduceRequest, ProduceResponse
from broker.protocol.record_batch import HEADER_BYTES, is_transactional, parse_header
from broker.server.declaration import Declaration
from broker.server.exchange import RequestRefused, completed
from broker.server.gradual import Turns
from broker.server.guards import Acl, Guard, Refused, Verdict, on_each_topic
from broker.server.resources import wall_ms
from broker.storage import Appended, DamageError, OutOfDescriptors

if TYPE_CHECKING:
    from collections.abc import Mapping

    from broker.server.access import Access
    from broker.server.exchange import Answerable, Exchange
    from broker.server.resources import Resources
    from broker.storage import Topic

TOPIC_IDS_SINCE = 13
ZSTD_SINCE = 7
ACKS = (-1, 0, 1)
# A request for more partitions runs in parts, unless it gets no answer.
PARTITIONS_AT_ONCE = 20

# Kafka's answer to these has no log start offset.
UNREADABLE = (ErrorCode.CORRUPT_MESSAGE, ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.KAFKA_STORAGE_ERROR)

logger = logging.getLogger("broker.server")


class Rejected(NamedTuple):
    """The partition refused the batch, which the client may compare with the start of the log."""

    error: ErrorCode
    log_start_offset: int


def produce(request: ProduceRequest, exchange: Exchange, resources: Resources) -> ProduceResponse | None:
    version = exchange.version
    if request.acks != 0 and _is_large(request):
        # All partitions become part of the transaction in one step.
        refusal, _ = _verify(request, version, resources)
        if refusal is None:
            from broker.server.handlers.large_produce import in_parts

            Turns(exchange, in_parts(request, lambda part: _produce(part, version, resources))).resume()
            return None
    response = _produce(request, version, resources)
    if request.acks != 0:
        return response
    exchange.forgo()
    _check_unanswered(completed(exchange, response))
    return None


def _is_large(request: ProduceRequest) -> bool:
    partitions = 0
    for topic in request.topic_data:
        partitions += len(topic.partition_data)
    return partitions > PARTITIONS_AT_ONCE


def _produce(request: ProduceRequest, version: int, resources: Resources) -> ProduceResponse:
    now_ms = wall_ms()
    refusal, unverified = _verify(request, version, resources)
    by_id = version >= TOPIC_IDS_SINCE
    answers = []
    for asked in request.topic_data:
        topic = resources.topic(asked.name, asked.topic_id, by_id)
        rows = []
        for partition in asked.partition_data:
            found: Appended | Rejected | ErrorCode | None = refusal
            if unverified and topic is not None:
                found = unverified.get((topic.name, partition.index))
            if found is None:
                found = _append(topic, partition, by_id, version, resources, now_ms)
            rows.append(_row(partition.index, found))
        answers.append(ProduceResponse.Topic(name=asked.name, topic_id=asked.topic_id, partition_responses=rows))
    return ProduceResponse(responses=answers)


def _verify(
    request: ProduceRequest, version: int, resources: Resources
) -> tuple[ErrorCode | None, Mapping[tuple[str, int], ErrorCode]]:
    """An error of the whole request, or the errors of single partitions."""
    refusal = None if request.acks in ACKS else ErrorCode.INVALID_REQUIRED_ACKS
    if not _has_transactional(request):
        return refusal, {}
    if request.transactional_id is None:
        return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, {}
    if refusal is not None:
        return refusal, {}
    from broker.server.handlers.transactional_produce import verify

    return verify(request, version, resources)


def _check_unanswered(response: Any) -> None:
    for row in (row for topic in response.responses for row in topic.partition_responses if row.error_code):
        # A client that expects no answer can be notified of an error only by closing its connection.
        reason = row.error_message or f"error {row.error_code}"
        raise RequestRefused(f"Produce with acks=0 failed: {reason}")


def _has_transactional(request: ProduceRequest) -> bool:
    return any(is_transactional(row.records or b"") for topic in request.topic_data for row in topic.partition_data)


def _append(
    topic: Topic | None,
    asked: ProduceRequest.Partition,
    by_id: bool,
    version: int,
    resources: Resources,
    now_ms: int,
) -> Appended | Rejected | ErrorCode:
    if topic is None:
        return ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    log = resources.log.partition(topic.name, asked.index)
    if log is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if topic.internal:
        return ErrorCode.INVALID_TOPIC_EXCEPTION
    if not asked.records:
        return ErrorCode.INVALID_RECORD
    if version < ZSTD_SINCE and len(asked.records) >= HEADER_BYTES and parse_header(asked.records).codec == Codec.ZSTD:
        return ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    try:
        appended = log.append(asked.records, wall_ms=now_ms)
    except OutOfDescriptors:
        return ErrorCode.KAFKA_STORAGE_ERROR
    except DamageError as error:
        logger.error("%s", error)
        return ErrorCode.KAFKA_STORAGE_ERROR
    if isinstance(appended, Appended):
        resources.waiters.moved(topic.name, asked.index)
        return appended
    return appended if appended in UNREADABLE else Rejected(appended, log.log_start_offset)


def _row(index: int, found: Appended | Rejected | ErrorCode) -> ProduceResponse.Partition:
    if isinstance(found, Appended):
        return ProduceResponse.Partition(
            index=index,
            base_offset=found.base_offset,
            log_append_time_ms=found.log_append_time_ms,
            log_start_offset=found.log_start_offset,
        )
    code, log_start_offset = found if isinstance(found, Rejected) else (found, -1)
    return ProduceResponse.Partition(
        index=index, error_code=code, log_start_offset=log_start_offset, error_message=code.meaning
    )


def _check(request: ProduceRequest, access: Access, exchange: Answerable, resources: Resources) -> Verdict:
    if _has_transactional(request):
        name = request.transactional_id
        if name is None or not access.allows(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, name):
            refused = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
            response = ProduceResponse(responses=[_denied(topic, refused) for topic in request.topic_data])
            if request.acks == 0:
                _check_unanswered(response)
            return Refused(response)
    return _topics.check(request, access, exchange, resources)


def _denied(
    topic: ProduceRequest.Topic, code: ErrorCode = ErrorCode.TOPIC_AUTHORIZATION_FAILED
) -> ProduceResponse.Topic:
    return ProduceResponse.Topic(
        name=topic.name,
        topic_id=topic.topic_id,
        partition_responses=[
            ProduceResponse.Partition(index=partition.index, error_code=code) for partition in topic.partition_data
        ],
    )


_topics = on_each_topic(
    Operation.WRITE,
    "topic_data",
    lambda topic: topic.name,
    "responses",
    _denied,
    ids_since=TOPIC_IDS_SINCE,
)
REQUESTS = (
    Declaration(
        ProduceRequest,
        produce,
        Guard(_check, *_topics.acls, Acl(Operation.WRITE, ResourceType.TRANSACTIONAL_ID)),
    ),
)
