"""DescribeCluster, DescribeLogDirs, DescribeBroker: the one broker, the sizes of partitions on its disk, what it counts."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from broker.protocol.acls import Operation
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.describe_broker import DescribeBrokerRequest, DescribeBrokerResponse
from broker.protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from broker.protocol.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from broker.server.declaration import Declaration
from broker.server.guards import OPEN, on_cluster
from broker.server.handlers.authorized_operations import cluster_operations
from broker.server.request_times import BUCKETS
from broker.server.resources import wall_ms

if TYPE_CHECKING:
    from broker.server.exchange import Exchange
    from broker.server.resources import Resources

BROKERS, CONTROLLERS = 1, 2
# SASL tokens without a header have no api key.
NO_KEY = -1


def describe_cluster(
    request: DescribeClusterRequest, exchange: Exchange, resources: Resources
) -> DescribeClusterResponse:
    if request.endpoint_type != BROKERS:
        known = request.endpoint_type == CONTROLLERS
        return DescribeClusterResponse(
            error_code=ErrorCode.MISMATCHED_ENDPOINT_TYPE if known else ErrorCode.UNSUPPORTED_ENDPOINT_TYPE,
            error_message="This endpoint serves brokers only.",
            cluster_id="",
            brokers=[],
        )
    node_id, address = resources.node_id, exchange.connection.session.listener.advertised
    broker = DescribeClusterResponse.Broker(
        broker_id=node_id, host=address.host, port=address.port, rack=resources.config.broker_rack
    )
    return DescribeClusterResponse(
        cluster_id=resources.log.cluster_id,
        controller_id=node_id,
        brokers=[broker],
        cluster_authorized_operations=cluster_operations(
            resources.access(exchange.connection), is_asked=request.include_cluster_authorized_operations
        ),
    )


def describe_log_dirs(
    request: DescribeLogDirsRequest, exchange: Exchange, resources: Resources
) -> DescribeLogDirsResponse:
    log = resources.log
    if request.topics is None:
        asked = {topic.name: set(range(topic.partition_count)) for topic in log.topics.values()}
    else:
        asked = {}
        for row in request.topics:
            asked.setdefault(row.topic, set()).update(row.partitions)
    topics = []
    for name, indexes in asked.items():
        found = [(index, log.partition(name, index)) for index in sorted(indexes)]
        partitions = [
            DescribeLogDirsResponse.Partition(
                partition_index=index, partition_size=partition.size_bytes, offset_lag=0, is_future_key=False
            )
            for index, partition in found
            if partition is not None
        ]
        if partitions:
            topics.append(DescribeLogDirsResponse.Topic(name=name, partitions=partitions))
    volume = os.statvfs(log.data_dir)
    return DescribeLogDirsResponse(
        results=[
            DescribeLogDirsResponse.Result(
                log_dir=os.path.abspath(log.data_dir),
                topics=topics,
                total_bytes=volume.f_frsize * volume.f_blocks,
                usable_bytes=volume.f_frsize * volume.f_bavail,
            )
        ]
    )


def describe_broker(request: DescribeBrokerRequest, exchange: Exchange, resources: Resources) -> DescribeBrokerResponse:
    config, figures = resources.config, resources.figures
    assert figures is not None
    store_bytes, wal_bytes = store_sizes(resources)
    times = [
        DescribeBrokerResponse.Times(
            api_key=key,
            buckets=[bucket for bucket in range(BUCKETS) if counts[bucket]],
            counts=[count for count in counts[:BUCKETS] if count],
        )
        for key, counts in figures.times.counts.items()
        if key != NO_KEY
    ]
    return DescribeBrokerResponse(
        broker_id=resources.node_id,
        wall_ms=wall_ms(),
        started_ms=resources.started_ms,
        durability=config.durability,
        store_bytes=store_bytes,
        wal_bytes=wal_bytes,
        max_connections=figures.most,
        listeners=[
            DescribeBrokerResponse.Listener(name=name, connections=count)
            for name, count in figures.per_listener().items()
        ],
        times=times,
    )


def store_sizes(resources: Resources) -> tuple[int, int]:
    """The bytes of `store.db` and of its WAL; -1: the file is absent."""
    store = os.path.join(resources.log.data_dir, "store.db")
    return _size(store), _size(f"{store}-wal")


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return -1


def _broker_refused(request: DescribeBrokerRequest, code: ErrorCode) -> DescribeBrokerResponse:
    return DescribeBrokerResponse(error_code=code)


def _log_dirs_refused(request: DescribeLogDirsRequest, code: ErrorCode) -> DescribeLogDirsResponse:
    return DescribeLogDirsResponse(error_code=code, results=[])


REQUESTS = (
    Declaration(DescribeLogDirsRequest, describe_log_dirs, on_cluster(Operation.DESCRIBE, _log_dirs_refused)),
    Declaration(DescribeBrokerRequest, describe_broker, on_cluster(Operation.DESCRIBE, _broker_refused)),
    # Like Metadata without topics, Kafka answers it to every client.
    Declaration(DescribeClusterRequest, describe_cluster, OPEN),
)
