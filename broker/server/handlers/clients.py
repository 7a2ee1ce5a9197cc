"""DescribeClients: the connections of the broker, page by page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.protocol.acls import Operation
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.describe_clients import DescribeClientsRequest, DescribeClientsResponse
from broker.protocol.wire_types import ZERO_UUID
from broker.server.declaration import Declaration
from broker.server.guards import on_cluster
from broker.server.resources import wall_ms

if TYPE_CHECKING:
    from broker.server.exchange import Exchange
    from broker.server.resources import OpenConnection, Resources

# A page takes two or three milliseconds.
MOST_ON_A_PAGE = 500


def describe_clients(
    request: DescribeClientsRequest, exchange: Exchange, resources: Resources
) -> DescribeClientsResponse:
    figures = resources.figures
    assert figures is not None
    if request.limit <= 0:
        return DescribeClientsResponse(error_code=ErrorCode.INVALID_REQUEST)
    found, is_last = figures.page(request.after, min(request.limit, MOST_ON_A_PAGE))
    now_ms, now_s = wall_ms(), exchange.connection.now_s
    return DescribeClientsResponse(
        broker_id=resources.node_id,
        wall_ms=now_ms,
        next_after=-1 if is_last else found[-1].session.client.number,
        clients=[_row(connection, now_ms - int((now_s - connection.active_at) * 1000)) for connection in found],
    )


def _row(connection: OpenConnection, active_ms: int) -> DescribeClientsResponse.Client:
    session = connection.session
    client, listener = session.client, session.listener
    return DescribeClientsResponse.Client(
        number=client.number,
        host=session.host,
        port=client.port,
        listener=listener.name,
        security_protocol=listener.security_protocol,
        principal=session.principal if session.authenticated else "",
        client_id=client.client_id,
        software_name=client.software_name,
        software_version=client.software_version,
        client_instance_id=client.instance_id or ZERO_UUID,
        since_ms=client.since_ms,
        active_ms=active_ms,
        requests=client.requests,
        bytes_in=client.bytes_in,
        bytes_out=client.bytes_out,
        last_api_key=client.last_key,
        groups=list(client.groups),
        transactional_ids=list(client.transactional_ids),
    )


def _refused(request: DescribeClientsRequest, code: ErrorCode) -> DescribeClientsResponse:
    return DescribeClientsResponse(error_code=code)


REQUESTS = (Declaration(DescribeClientsRequest, describe_clients, on_cluster(Operation.DESCRIBE, _refused)),)
