"""DescribeCluster and DescribeLogDirs: the one broker, and the size of each partition on its disk."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from broker.protocol.acls import Operation
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from broker.protocol.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from broker.server.declaration import Declaration
from broker.server.guards import OPEN, on_cluster
from broker.server.handlers.authorized_operations import cluster_operations

if TYPE_CHECKING:
    from broker.server.exchange import Exchange
    from broker.server.resources import Resources

BROKERS, CONTROLLERS = 1, 2


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


def _log_dirs_refused(request: DescribeLogDirsRequest, code: ErrorCode) -> DescribeLogDirsResponse:
    return DescribeLogDirsResponse(error_code=code, results=[])


REQUESTS = (
    Declaration(DescribeLogDirsRequest, describe_log_dirs, on_cluster(Operation.DESCRIBE, _log_dirs_refused)),
    # Like Metadata without topics, Kafka answers it to every client.
    Declaration(DescribeClusterRequest, describe_cluster, OPEN),
)
