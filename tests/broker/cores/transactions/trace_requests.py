"""The requests of golden scenarios: a line's words and the defaults for what it omits, as messages."""

from __future__ import annotations

from collections.abc import Callable

from broker.cores.transactions.records import Partition, by_topic
from broker.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from broker.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from broker.protocol.messages.describe_transactions import DescribeTransactionsRequest
from broker.protocol.messages.end_txn import EndTxnRequest
from broker.protocol.messages.init_producer_id import InitProducerIdRequest
from broker.protocol.messages.list_transactions import ListTransactionsRequest
from broker.protocol.wire_types import Message

Values = dict[str, str]
DEFAULT_ID, DEFAULT_PARTITION, DEFAULT_TIMEOUT = "t", "orders/0", "60"


def millis(seconds: str) -> int:
    return round(float(seconds) * 1000)


def read_partitions(values: Values) -> tuple[Partition, ...]:
    """ "orders/0,orders/1"; "-" is none."""
    text = values.get("partitions", DEFAULT_PARTITION)
    places = (word.rpartition("/") for word in text.split(",") if word != "-")
    return tuple((topic, int(index)) for topic, _, index in places)


def _initialize(v: Values, version: int) -> Message:
    return InitProducerIdRequest(
        transactional_id=v["id"],
        transaction_timeout_ms=millis(v.get("timeout", DEFAULT_TIMEOUT)),
        producer_id=int(v["producer"]) if "producer" in v else -1,
        producer_epoch=int(v["epoch"]) if "epoch" in v else -1,
    )


def _add_partitions(v: Values, version: int) -> Message:
    topics = [
        AddPartitionsToTxnRequest.Topic(name=topic, partitions=indexes)
        for topic, indexes in by_topic(read_partitions(v)).items()
    ]
    if version <= 3:
        return AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=v["id"],
            v3_and_below_producer_id=int(v["producer"]),
            v3_and_below_producer_epoch=int(v["epoch"]),
            v3_and_below_topics=topics,
        )
    transaction = AddPartitionsToTxnRequest.Transaction(
        transactional_id=v["id"],
        producer_id=int(v["producer"]),
        producer_epoch=int(v["epoch"]),
        verify_only="verify" in v,
        topics=topics,
    )
    return AddPartitionsToTxnRequest(transactions=[transaction])


def _listed(v: Values, name: str) -> list[str]:
    return v[name].split(",") if name in v else []


REQUESTS: dict[str, Callable[[Values, int], Message]] = {
    "InitProducerId": _initialize,
    "AddPartitionsToTxn": _add_partitions,
    "AddOffsetsToTxn": lambda v, version: AddOffsetsToTxnRequest(
        transactional_id=v["id"],
        producer_id=int(v["producer"]),
        producer_epoch=int(v["epoch"]),
        group_id=v.get("group", "g"),
    ),
    "EndTxn": lambda v, version: EndTxnRequest(
        transactional_id=v["id"],
        producer_id=int(v["producer"]),
        producer_epoch=int(v["epoch"]),
        committed={"commit": True, "abort": False}[v["result"]],
    ),
    "DescribeTransactions": lambda v, version: DescribeTransactionsRequest(transactional_ids=v["id"].split(",")),
    "ListTransactions": lambda v, version: ListTransactionsRequest(
        state_filters=_listed(v, "states"),
        producer_id_filters=[int(producer) for producer in _listed(v, "producers")],
        duration_filter=millis(v["longer"]) if "longer" in v else -1,
        transactional_id_pattern=v.get("pattern"),
    ),
}
