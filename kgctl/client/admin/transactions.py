"""Lists transactional ids, and describes the transactions of some."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from broker.light_dataclasses import replace
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.describe_transactions import DescribeTransactionsRequest, DescribeTransactionsResponse
from broker.protocol.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from kgctl.client.net.authorization import Asked
from kgctl.client.net.cluster import TRANSACTION, Ask, Batch, Cluster, Node, chunks
from kgctl.client.net.errors import BrokerError, KgctlError, NotFound
from kgctl.client.net.steps import Pause, Steps
from kgctl.model.failure import RowError
from kgctl.model.groups import by_topic
from kgctl.model.topic_partition import TopicPartition
from kgctl.model.transactions import OPEN_STATES, TransactionListing, TransactionListings, TransactionRow

IDS_PER_REQUEST = 500


def list_transactions(
    cluster: Cluster,
    states: Iterable[str] = (),
    producer_ids: Iterable[int] = (),
    older_than_ms: int | None = None,
    pattern: str | None = None,
) -> Steps[TransactionListings]:
    """The transactional ids of all brokers, sorted (Kafka 3.0). The pattern must match the whole id.

    Brokers before Kafka 3.8 and 4.1 do not know the last two filters: the caller applies them to what they answer.
    """
    nodes = yield from cluster.all_nodes()
    request = ListTransactionsRequest(
        state_filters=list(states),
        producer_id_filters=list(producer_ids),
        duration_filter=-1 if older_than_ms is None else older_than_ms,
        transactional_id_pattern=pattern,
    )
    found: dict[str, TransactionListing] = {}
    pending = list(nodes)
    errors: dict[Node, KgctlError] = {}
    for wait in (*cluster.retry_waits, None):
        answers = yield from cluster.ask_each(
            [Ask(node.endpoint, request, ListTransactionsResponse) for node in pending]
        )
        for node, answer in zip(pending, answers, strict=True):
            errors.pop(node, None)
            if not isinstance(answer, KgctlError) and answer.error_code:
                asked = Asked(ListTransactionsRequest)
                answer = BrokerError(answer.error_code, f"broker {node.node_id}", asked=asked)
            if isinstance(answer, KgctlError):
                errors[node] = answer
                continue
            for row in answer.transaction_states:
                found[row.transactional_id] = TransactionListing(
                    row.transactional_id, node.node_id, row.producer_id, row.transaction_state
                )
        # Coordinators load their part of the log after a start.
        pending = [node for node, error in errors.items() if isinstance(error, BrokerError) and error.retriable]
        if not pending or wait is None:
            break
        yield Pause(wait, str(errors[pending[0]]))
    if len(errors) == len(nodes):
        raise next(iter(errors.values()))
    rows = [found[name] for name in sorted(found) if pattern is None or re.fullmatch(pattern, name)]
    return TransactionListings(tuple(rows), tuple(error.as_row() for error in errors.values()))


def list_with_ages(
    cluster: Cluster,
    now_ms: int,
    states: Sequence[str] = (),
    producer_ids: Sequence[int] = (),
    older_than_ms: int | None = None,
    pattern: str | None = None,
) -> Steps[TransactionListings]:
    """The listing with age and partitions of open transactions. A filter by age leaves out ids without one."""
    listed = yield from list_transactions(cluster, states, producer_ids, older_than_ms, pattern)
    names = [row.transactional_id for row in listed.rows if row.state in OPEN_STATES]
    known = {row.transactional_id: row for row in (yield from describe_transactions(cluster, names, now_ms))}
    rows = []
    for row in listed.rows:
        one = known.get(row.transactional_id)
        if one is not None and one.error is None and one.state is not None:
            partitions = len(one.topic_partitions()) if one.is_open else None
            row = replace(row, state=one.state, age_ms=one.age_ms, partitions=partitions)
        if older_than_ms is None or (row.age_ms is not None and row.age_ms > older_than_ms):
            rows.append(row)
    return TransactionListings(tuple(rows), listed.errors)


def open_transactions(
    cluster: Cluster, now_ms: int, most: int
) -> Steps[tuple[list[TransactionRow], int, tuple[RowError, ...]]]:
    """The `most` oldest of the open transactions; how many there are; why some may be missing."""
    listed = yield from list_transactions(cluster, OPEN_STATES)
    names = [row.transactional_id for row in listed.rows if row.state in OPEN_STATES]
    described = yield from describe_transactions(cluster, names, now_ms)
    rows = sorted((row for row in described if row.is_open), key=lambda row: (-(row.age_ms or 0), row.transactional_id))
    failed = (row.error for row in described if row.error is not None and row.error.name != NotFound.name)
    return rows[:most], len(rows), (*listed.errors, *failed)


def describe_transactions(cluster: Cluster, names: Iterable[str], now_ms: int) -> Steps[list[TransactionRow]]:
    """Each transactional id once, sorted (Kafka 3.0). One that does not exist or cannot be asked is a row with its error."""

    def make(node: Node, wanted: list[str]) -> list[Batch[str]]:
        def read(answer: DescribeTransactionsResponse) -> dict[str, TransactionRow | KgctlError]:
            return {row.transactional_id: _row(node, row, now_ms) for row in answer.transaction_states}

        return [
            Batch(
                Ask(
                    node.endpoint,
                    DescribeTransactionsRequest(transactional_ids=list(some)),
                    DescribeTransactionsResponse,
                ),
                some,
                read,
            )
            for some in chunks(wanted, IDS_PER_REQUEST)
        ]

    found = yield from cluster.at_coordinators(sorted(set(names)), make, kind=TRANSACTION)
    return [
        TransactionRow(name, error=result.as_row()) if isinstance(result, KgctlError) else result
        for name, result in found.items()
    ]


def _row(node: Node, row: DescribeTransactionsResponse.Transaction, now_ms: int) -> TransactionRow | KgctlError:
    name = row.transactional_id
    if row.error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
        return NotFound(f"Transactional id '{name}' does not exist.")
    if row.error_code:
        asked = Asked(DescribeTransactionsRequest, transactional_id=name)
        return BrokerError(row.error_code, f"transactional id {name!r}", asked=asked)
    partitions = [TopicPartition(topic.topic, number) for topic in row.topics for number in topic.partitions]
    started_ms = None if row.transaction_start_time_ms < 0 else row.transaction_start_time_ms
    is_open = row.transaction_state in OPEN_STATES
    return TransactionRow(
        name,
        node.node_id,
        row.producer_id,
        row.producer_epoch,
        row.transaction_state,
        row.transaction_timeout_ms,
        started_ms,
        max(0, now_ms - started_ms) if is_open and started_ms is not None else None,
        by_topic(partitions),
    )
