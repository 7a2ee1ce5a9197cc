"""GetTelemetrySubscriptions and PushTelemetry (KIP-714), and DescribeTelemetry, which shows what clients pushed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.protocol.acls import Operation
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.describe_telemetry import DescribeTelemetryRequest, DescribeTelemetryResponse
from broker.protocol.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)
from broker.protocol.messages.push_telemetry import PushTelemetryRequest, PushTelemetryResponse
from broker.protocol.wire_types import ZERO_UUID
from broker.server.declaration import Declaration
from broker.server.guards import OPEN, on_cluster
from broker.server.resources import wall_ms
from broker.server.telemetry import client_of

if TYPE_CHECKING:
    from broker.cores.telemetry import Instance
    from broker.server.exchange import Exchange
    from broker.server.resources import Resources

# An answer ends with the instance that reaches one of these.
PAGE_BYTES = 1024 * 1024
PAGE_INSTANCES = 200


def get_subscriptions(
    request: GetTelemetrySubscriptionsRequest, exchange: Exchange, resources: Resources
) -> GetTelemetrySubscriptionsResponse:
    connection = exchange.connection
    answer = resources.telemetry().core.get(request, client_of(connection), int(connection.now_s * 1000))
    if answer.client_instance_id != ZERO_UUID:
        connection.session.client.instance_id = answer.client_instance_id
    return answer


def push(request: PushTelemetryRequest, exchange: Exchange, resources: Resources) -> PushTelemetryResponse:
    connection = exchange.connection
    core = resources.telemetry().core
    answer = core.push(request, client_of(connection), int(connection.now_s * 1000), wall_ms())
    if answer.error_code == ErrorCode.NONE:
        connection.session.client.instance_id = request.client_instance_id
    return answer


def describe(request: DescribeTelemetryRequest, exchange: Exchange, resources: Resources) -> DescribeTelemetryResponse:
    core = resources.telemetry().core
    core.forget(int(exchange.connection.now_s * 1000))
    rows: list[DescribeTelemetryResponse.Instance] = []
    size, next_after = 0, -1
    for instance in core.instances():
        if instance.number <= request.after:
            continue
        if size >= PAGE_BYTES or len(rows) >= PAGE_INSTANCES:
            next_after = rows[-1].number
            break
        rows.append(_row(instance))
        size += len(instance.push.metrics)
    return DescribeTelemetryResponse(broker_id=resources.node_id, next_after=next_after, instances=rows)


def _row(instance: Instance) -> DescribeTelemetryResponse.Instance:
    client, pushed = instance.client, instance.push
    return DescribeTelemetryResponse.Instance(
        number=instance.number,
        client_instance_id=instance.id,
        connection=client.connection,
        client_id=client.client_id,
        software_name=client.software_name,
        software_version=client.software_version,
        host=client.host,
        port=client.port,
        subscription_id=instance.subscription_id,
        requested_metrics=instance.metrics,
        push_interval_ms=instance.interval_ms,
        pushes=pushed.pushes,
        pushed_ms=pushed.wall_ms,
        terminating=instance.terminating,
        compression_type=pushed.compression_type,
        metrics=pushed.metrics,
    )


def _refused(request: DescribeTelemetryRequest, code: ErrorCode) -> DescribeTelemetryResponse:
    return DescribeTelemetryResponse(error_code=code)


REQUESTS = (
    # As in Kafka, every client may send its metrics once it has authenticated.
    Declaration(GetTelemetrySubscriptionsRequest, get_subscriptions, OPEN),
    Declaration(PushTelemetryRequest, push, OPEN),
    Declaration(DescribeTelemetryRequest, describe, on_cluster(Operation.DESCRIBE, _refused)),
)
