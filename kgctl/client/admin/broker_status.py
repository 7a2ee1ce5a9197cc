"""Asks kgctl's brokers what they count about themselves."""

from __future__ import annotations

from broker.protocol.api_keys import APIS
from broker.protocol.messages.describe_broker import DescribeBrokerRequest, DescribeBrokerResponse
from kgctl.client.net.cluster import Ask, Cluster
from kgctl.client.net.errors import KgctlError
from kgctl.client.net.steps import Steps
from kgctl.model.watched_brokers import FLUSHES, BrokerStatus


def broker_statuses(cluster: Cluster) -> Steps[list[BrokerStatus]]:
    """The status of each broker that offers the request, and may be asked."""
    nodes = yield from cluster.all_nodes()
    asks = [
        Ask(node.endpoint, DescribeBrokerRequest(), DescribeBrokerResponse)
        for node in nodes
        if cluster.range_of(node.endpoint, DescribeBrokerRequest.API_KEY)
    ]
    answers = (yield from cluster.ask_each(asks)) if asks else []
    return [_status(answer) for answer in answers if not isinstance(answer, KgctlError) and not answer.error_code]


def _status(answer: DescribeBrokerResponse) -> BrokerStatus:
    return BrokerStatus(
        answer.broker_id,
        answer.wall_ms,
        answer.started_ms,
        answer.durability,
        None if answer.store_bytes < 0 else answer.store_bytes,
        None if answer.wal_bytes < 0 else answer.wal_bytes,
        answer.max_connections,
        {row.name: row.connections for row in answer.listeners},
        {_name(row.api_key): dict(zip(row.buckets, row.counts, strict=True)) for row in answer.times},
    )


def _name(key: int) -> str:
    if key == DescribeBrokerResponse.FLUSH_KEY:
        return FLUSHES
    return APIS[key].name if key in APIS else str(key)
