"""Asks kgctl's brokers which metrics their clients pushed (KIP-714)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from broker.light_dataclasses import replace
from broker.protocol.compression import decompress
from broker.protocol.messages.describe_telemetry import DescribeTelemetryRequest, DescribeTelemetryResponse
from broker.protocol.otlp import Point, read_metrics
from broker.protocol.uuids import spelled
from broker.protocol.wire_types import DecodeError
from kgctl.client.admin.clients import NEEDED
from kgctl.client.net.authorization import Asked
from kgctl.client.net.cluster import Ask, Cluster, Node
from kgctl.client.net.errors import BrokerError, NotFound, Unsupported
from kgctl.client.net.steps import Steps
from kgctl.model.clients import ClientMetric
from kgctl.model.failure import RowError

MOST_PLAIN_BYTES = 64 * 1024 * 1024


def client_metrics(cluster: Cluster, names: Sequence[str]) -> Steps[list[ClientMetric]]:
    """The metrics of the clients with these client ids or client instance ids; of all clients without any."""
    nodes = yield from cluster.all_nodes()
    rows: list[ClientMetric] = []
    asked = 0
    for node in nodes:
        if cluster.range_of(node.endpoint, DescribeTelemetryRequest.API_KEY):
            asked += 1
            rows += yield from _metrics_of(cluster, node, names)
    if not asked:
        raise Unsupported(NEEDED)
    found = {name for row in rows for name in (row.client_id, row.client_instance_id)}
    missing = next((name for name in names if name not in found), None)
    if missing is not None:
        raise NotFound(f"no client with the id {missing!r} has asked which metrics it should send")
    return rows


def _metrics_of(cluster: Cluster, node: Node, names: Sequence[str]) -> Steps[list[ClientMetric]]:
    rows: list[ClientMetric] = []
    after = 0
    while after >= 0:
        answer = yield from cluster.ask(
            Ask(node.endpoint, DescribeTelemetryRequest(after=after), DescribeTelemetryResponse)
        )
        if answer.error_code:
            raise BrokerError(answer.error_code, f"broker {node.node_id}", asked=Asked(DescribeTelemetryRequest))
        for instance in answer.instances:
            if not names or instance.client_id in names or spelled(instance.client_instance_id) in names:
                rows += _rows(answer.broker_id, instance)
        after = answer.next_after
    return rows


def _rows(broker_id: int, instance: DescribeTelemetryResponse.Instance) -> Iterator[ClientMetric]:
    row = ClientMetric(
        broker_id=broker_id,
        client_id=instance.client_id or None,
        client_instance_id=spelled(instance.client_instance_id),
        software_name=instance.software_name or None,
        software_version=instance.software_version or None,
        host=instance.host,
        port=instance.port,
        interval_ms=instance.push_interval_ms,
        subscribed=tuple(instance.requested_metrics),
        pushes=instance.pushes,
        pushed_at_ms=None if instance.pushed_ms < 0 else instance.pushed_ms,
    )
    try:
        points = read_metrics(decompress(instance.compression_type, bytes(instance.metrics), MOST_PLAIN_BYTES))
    except DecodeError as error:
        name = f"client {row.client_id or row.client_instance_id}"
        yield replace(row, error=RowError("UNREADABLE", f"{name}: cannot read its metrics: {error}"))
        return
    if not points:
        yield row
    for point in points:
        yield _with(row, point)


def _with(row: ClientMetric, point: Point) -> ClientMetric:
    value = None if point.value is None or not math.isfinite(point.value) else point.value
    return replace(
        row,
        metric=point.metric,
        kind=point.kind,
        unit=point.unit or None,
        labels=dict(point.labels),
        value=value,
        observations=point.observations,
        is_delta=point.is_delta,
    )
