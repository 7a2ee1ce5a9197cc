"""DescribeProducers: the producers that partitions remember."""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any

from broker.protocol.acls import Operation, ResourceType
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.describe_producers import DescribeProducersRequest, DescribeProducersResponse
from broker.protocol.wire_types import Gradual
from broker.server.declaration import Declaration
from broker.server.exchange import completed
from broker.server.gradual import Turns, encoded
from broker.server.guards import DENIALS, Acl, in_handler
from broker.server.topic_names import name_error

if TYPE_CHECKING:
    from broker.protocol.wire_types import Message
    from broker.server.access import Access
    from broker.server.exchange import Exchange
    from broker.server.resources import Resources
    from broker.storage import ProducerState

READ_TOPIC = Acl(Operation.READ, ResourceType.TOPIC)
PRODUCERS_AT_ONCE = 500


def describe_producers(request: DescribeProducersRequest, exchange: Exchange, resources: Resources) -> None:
    access = resources.access(exchange.connection)
    Turns(exchange, _answer(request, exchange, access, resources)).resume()


def _answer(
    request: DescribeProducersRequest, exchange: Exchange, access: Access, resources: Resources
) -> Generator[None, None, Message]:
    topics = []
    for topic in request.topics:
        refusal, message = _refusal(topic.name, access, resources)
        rows = []
        for index in topic.partition_indexes:
            rows.append(_error(index, refusal, message) if refusal else _row(topic.name, index, resources))
            yield
        topics.append(DescribeProducersResponse.Topic(name=topic.name, partitions=rows))
    response = completed(exchange, DescribeProducersResponse(topics=topics))
    return (yield from encoded(response, exchange.version))


def _refusal(topic: str, access: Access, resources: Resources) -> tuple[ErrorCode, str | None]:
    """Why nothing of a topic is described, and the message; NONE otherwise."""
    invalid = name_error(topic)
    if invalid is not None:
        return ErrorCode.INVALID_TOPIC_EXCEPTION, invalid
    if not access.allows(*READ_TOPIC, topic):
        code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        return code, DENIALS[code]
    code = ErrorCode.NONE if topic in resources.log.topics else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return code, code.meaning


def _row(topic: str, index: int, resources: Resources) -> DescribeProducersResponse.Partition:
    log = resources.log.partition(topic, index)
    if log is None:
        return _error(index, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None)
    producers: Any = Gradual(log.producer_states(), _producer, PRODUCERS_AT_ONCE)
    return DescribeProducersResponse.Partition(partition_index=index, active_producers=producers)


def _producer(state: ProducerState) -> DescribeProducersResponse.Producer:
    return DescribeProducersResponse.Producer(
        producer_id=state.producer_id,
        producer_epoch=state.producer_epoch,
        last_sequence=state.last_sequence,
        last_timestamp=state.last_timestamp,
        coordinator_epoch=state.coordinator_epoch,
        current_txn_start_offset=state.current_txn_start_offset,
    )


def _error(index: int, code: ErrorCode, message: str | None) -> DescribeProducersResponse.Partition:
    return DescribeProducersResponse.Partition(
        partition_index=index, error_code=code, error_message=message, active_producers=[]
    )


REQUESTS = (Declaration(DescribeProducersRequest, describe_producers, in_handler(READ_TOPIC)),)
