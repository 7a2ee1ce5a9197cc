"""DescribeTransactions and ListTransactions."""

from __future__ import annotations

from typing import Any

from broker.cores.patterns import InvalidPattern, Pattern
from broker.cores.transactions.records import TransactionRecord, by_topic
from broker.cores.transactions.states import BY_NAME
from broker.cores.transactions.step import Step
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.describe_transactions import DescribeTransactionsRequest, DescribeTransactionsResponse
from broker.protocol.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from broker.protocol.wire_types import Gradual

# A longer list is gradual. So is one that a pattern selects from more transactional ids than this.
LISTED_AT_ONCE, MATCHED_AT_ONCE = 1_000, 20


def describe_transactions(step: Step, request: DescribeTransactionsRequest) -> None:
    step.reply(
        DescribeTransactionsResponse(
            transaction_states=[_described(step, transactional_id) for transactional_id in request.transactional_ids]
        )
    )


def list_transactions(step: Step, request: ListTransactionsRequest) -> None:
    """List the transactional ids that pass every filter. The pattern must match the whole id."""
    try:
        pattern = Pattern(request.transactional_id_pattern) if request.transactional_id_pattern else None
    except InvalidPattern:
        step.reply(ListTransactionsResponse(error_code=ErrorCode.INVALID_REGULAR_EXPRESSION))
        return
    states = {BY_NAME[name] for name in request.state_filters if name in BY_NAME}
    unknown = [name for name in request.state_filters if name not in BY_NAME]
    producer_ids = set(request.producer_id_filters)
    selected = [
        record
        for record in step.transactions.values()
        if (not producer_ids or record.producer_id in producer_ids)
        and (not request.state_filters or record.state in states)
        # A transactional id without a transaction began at -1, so that it is older than any duration. Kafka lists it too.
        and (request.duration_filter < 0 or step.wall_ms - record.start_timestamp_ms > request.duration_filter)
    ]
    listed: Any = Gradual(selected, _listed, LISTED_AT_ONCE if pattern is None else MATCHED_AT_ONCE)
    if pattern is not None:
        listed = listed.only(lambda entry: pattern.matches(entry.transactional_id))
    is_long = len(selected) > listed.size
    step.reply(
        ListTransactionsResponse(unknown_state_filters=unknown, transaction_states=listed if is_long else list(listed)),
        is_gradual=is_long,
    )


def _described(step: Step, transactional_id: str) -> DescribeTransactionsResponse.Transaction:
    record = step.transactions.get(transactional_id)
    if record is None:
        error = ErrorCode.TRANSACTIONAL_ID_NOT_FOUND if transactional_id else ErrorCode.INVALID_REQUEST
        return DescribeTransactionsResponse.Transaction(
            error_code=error,
            transactional_id=transactional_id,
            transaction_state="",
            transaction_timeout_ms=0,
            transaction_start_time_ms=0,
            producer_id=0,
            producer_epoch=0,
            topics=[],
        )
    return DescribeTransactionsResponse.Transaction(
        transactional_id=transactional_id,
        transaction_state=record.state.kafka_name,
        transaction_timeout_ms=record.timeout_ms,
        transaction_start_time_ms=record.start_timestamp_ms,
        producer_id=record.producer_id,
        producer_epoch=record.producer_epoch,
        topics=[
            DescribeTransactionsResponse.Topic(topic=topic, partitions=indexes)
            for topic, indexes in by_topic(record.partitions).items()
        ],
    )


def _listed(record: TransactionRecord) -> ListTransactionsResponse.Transaction:
    return ListTransactionsResponse.Transaction(
        transactional_id=record.transactional_id,
        producer_id=record.producer_id,
        transaction_state=record.state.kafka_name,
    )
