"""The producers that partitions remember, their transactional ids, and the transactions that hold back readers."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable, Sequence

from broker.light_dataclasses import replace
from broker.protocol.messages.describe_producers import DescribeProducersRequest, DescribeProducersResponse
from kgctl.client.admin.offsets import LATEST, OffsetAt, list_offsets
from kgctl.client.admin.transactions import describe_transactions, list_transactions
from kgctl.client.net.authorization import Asked
from kgctl.client.net.cluster import Ask, Batch, Cluster, Node, chunks
from kgctl.client.net.errors import BrokerError, KgctlError, LeftOut, NotFound, from_row
from kgctl.client.net.steps import Steps
from kgctl.model.groups import GroupDescription
from kgctl.model.topic_partition import TopicPartition
from kgctl.model.transactions import GroupHold, Hold, ProducerRow, TransactionPartition, TransactionRow

# As Kafka's tool: an answer has a row for each producer of each partition.
PARTITIONS_PER_REQUEST = 500

Producers = dict[TopicPartition, list[ProducerRow] | KgctlError]


def describe_producers(
    cluster: Cluster, partitions: Iterable[TopicPartition], broker_id: int | None = None
) -> Steps[Producers]:
    """The producers of each partition, as its leader or another broker with a replica knows them (Kafka 2.8)."""

    def make(node: Node, wanted: list[TopicPartition]) -> list[Batch[TopicPartition]]:
        return [
            Batch(Ask(node.endpoint, _request(some), DescribeProducersResponse), some, _read)
            for some in chunks(sorted(wanted), PARTITIONS_PER_REQUEST)
        ]

    if broker_id is None:
        return (yield from cluster.at_leaders(partitions, make))
    node = next((node for node in (yield from cluster.all_nodes()) if node.node_id == broker_id), None)
    if node is None:
        raise NotFound(f"there is no broker {broker_id}")
    found: Producers = {}
    for batch in make(node, list(partitions)):
        answer = yield from cluster.ask(batch.ask)
        found |= {key: LeftOut(str(key)) for key in batch.keys} | batch.read(answer)
    return found


def named_producers(
    cluster: Cluster, partitions: Iterable[TopicPartition], broker_id: int | None = None
) -> Steps[list[ProducerRow]]:
    """The producers of each partition with their transactional ids; a partition that cannot be asked is a row with its error."""
    found = yield from describe_producers(cluster, partitions, broker_id)
    rows: list[ProducerRow] = []
    for key, producers in sorted(found.items()):
        if isinstance(producers, KgctlError):
            rows.append(ProducerRow(*key, error=producers.as_row()))
        else:
            rows += producers
    names = yield from known_ids(cluster, {row.producer_id for row in rows if row.producer_id is not None})
    return [
        row if row.producer_id is None else replace(row, transactional_id=names.get(row.producer_id)) for row in rows
    ]


def transactional_ids(cluster: Cluster, producer_ids: Collection[int]) -> Steps[dict[int, str]]:
    """The transactional ids of producers, of those that the principal may describe. Raises the error of any broker."""
    if not producer_ids:
        return {}
    listed = yield from list_transactions(cluster, producer_ids=sorted(producer_ids))
    if listed.errors:
        raise from_row(listed.errors[0])
    return {row.producer_id: row.transactional_id for row in listed.rows}


def known_ids(cluster: Cluster, producer_ids: Collection[int]) -> Steps[dict[int, str]]:
    """As many as the cluster names; without names, what they are added to is still right."""
    with contextlib.suppress(KgctlError):
        return (yield from transactional_ids(cluster, producer_ids))
    return {}


def holds(cluster: Cluster, partitions: Iterable[TopicPartition], now_ms: int) -> Steps[dict[TopicPartition, Hold]]:
    """For partitions where read_committed readers stop before the end of the log: by how much, and because of whom."""
    wanted = dict.fromkeys(partitions, LATEST)
    ends = yield from list_offsets(cluster, wanted)
    stable = yield from list_offsets(cluster, wanted, committed_only=True)
    found = {
        key: Hold(key, last_stable.offset, end.offset)
        for key, end in ends.items()
        if not isinstance(end, KgctlError)
        and not isinstance(last_stable := stable[key], KgctlError)
        and last_stable.offset < end.offset
    }
    return (yield from _name_holders(cluster, found, now_ms)) if found else {}


def transaction_partitions(cluster: Cluster, rows: Sequence[TransactionRow]) -> Steps[list[TransactionPartition]]:
    """The partitions of open transactions, with what read_committed readers do not see there."""
    keys = {key for row in rows if row.is_open for key in row.topic_partitions()}
    if not keys:
        return [TransactionPartition(row.transactional_id, None, None, error=row.error) for row in rows if row.error]
    ends = yield from list_offsets(cluster, dict.fromkeys(keys, LATEST))
    stable = yield from list_offsets(cluster, dict.fromkeys(keys, LATEST), committed_only=True)
    producers = yield from describe_producers(cluster, keys)
    found = []
    for row in rows:
        if row.error:
            found.append(TransactionPartition(row.transactional_id, None, None, error=row.error))
        for key in row.topic_partitions() if row.is_open else ():
            found.append(_in_partition(row, key, ends[key], stable[key], producers[key]))
    return found


def _in_partition(
    row: TransactionRow,
    key: TopicPartition,
    end: OffsetAt | KgctlError,
    stable: OffsetAt | KgctlError,
    producers: list[ProducerRow] | KgctlError,
) -> TransactionPartition:
    errors = [one.as_row() for one in (end, stable, producers) if isinstance(one, KgctlError)]
    own = [] if isinstance(producers, KgctlError) else [one for one in producers if one.producer_id == row.producer_id]
    start = own[0].start_offset if own else None
    end_offset = None if isinstance(end, KgctlError) else end.offset
    return TransactionPartition(
        row.transactional_id,
        *key,
        start_offset=start,
        last_stable_offset=None if isinstance(stable, KgctlError) else stable.offset,
        log_end_offset=end_offset,
        waiting_records=None if start is None or end_offset is None else max(0, end_offset - start),
        age_ms=row.age_ms,
        error=errors[0] if errors else None,
    )


def group_holds(cluster: Cluster, groups: Sequence[GroupDescription], now_ms: int) -> Steps[list[GroupHold]]:
    """The partitions whose lag is held by an open transaction. One request to each leader, if no group waits.

    A group that has committed beyond the last stable offset reads uncommitted, and does not wait.
    """
    lagging = [
        (row, TopicPartition(row.topic, row.partition), row.current_offset, row.log_end_offset)
        for group in groups
        for row in group.partitions
        if row.lag and row.lag > 0 and row.topic is not None and row.partition is not None
    ]
    stable = yield from list_offsets(cluster, {key: LATEST for _, key, _, _ in lagging}, committed_only=True)
    waiting = []
    for row, key, committed, end in lagging:
        last_stable = stable[key]
        if not isinstance(last_stable, KgctlError) and (committed or 0) <= last_stable.offset < (end or 0):
            waiting.append((row, Hold(key, last_stable.offset, end or 0)))
    named = yield from _name_holders(cluster, {hold.partition: hold for _, hold in waiting}, now_ms)
    return [GroupHold(row.group, row.lag or 0, named[hold.partition]) for row, hold in waiting]


def _name_holders(
    cluster: Cluster, found: dict[TopicPartition, Hold], now_ms: int
) -> Steps[dict[TopicPartition, Hold]]:
    """Add producer, transactional id and age, as far as the principal may know them."""
    if not found:
        return {}
    producers = yield from describe_producers(cluster, found)
    first: dict[TopicPartition, ProducerRow] = {}
    for key, rows in producers.items():
        open_ones = [] if isinstance(rows, KgctlError) else [row for row in rows if row.start_offset is not None]
        if open_ones:
            first[key] = min(open_ones, key=lambda row: row.start_offset or 0)
    names = yield from known_ids(cluster, {row.producer_id or 0 for row in first.values()})
    known: dict[str, TransactionRow] = {}
    if names:
        known = {
            row.transactional_id: row for row in (yield from describe_transactions(cluster, names.values(), now_ms))
        }
    for key, row in first.items():
        name = names.get(row.producer_id or 0)
        age_ms = known[name].age_ms if name else max(0, now_ms - (row.last_timestamp or now_ms))
        found[key] = replace(found[key], producer_id=row.producer_id, transactional_id=name, age_ms=age_ms)
    return found


def _request(partitions: Sequence[TopicPartition]) -> DescribeProducersRequest:
    by_topic: dict[str, list[int]] = {}
    for topic, number in partitions:
        by_topic.setdefault(topic, []).append(number)
    topic_of = DescribeProducersRequest.Topic
    return DescribeProducersRequest(
        topics=[topic_of(name=topic, partition_indexes=numbers) for topic, numbers in by_topic.items()]
    )


def _read(answer: DescribeProducersResponse) -> Producers:
    found: Producers = {}
    for topic in answer.topics:
        for row in topic.partitions:
            key = TopicPartition(topic.name, row.partition_index)
            if row.error_code:
                asked = Asked(DescribeProducersRequest, topic=topic.name)
                found[key] = BrokerError(row.error_code, str(key), row.error_message, asked=asked)
            else:
                found[key] = [_producer(key, one) for one in sorted(row.active_producers, key=lambda p: p.producer_id)]
    return found


def _producer(key: TopicPartition, one: DescribeProducersResponse.Producer) -> ProducerRow:
    return ProducerRow(
        *key,
        producer_id=one.producer_id,
        producer_epoch=one.producer_epoch,
        coordinator_epoch=one.coordinator_epoch,
        last_sequence=one.last_sequence,
        last_timestamp=one.last_timestamp,
        start_offset=None if one.current_txn_start_offset < 0 else one.current_txn_start_offset,
    )
