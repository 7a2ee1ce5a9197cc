"""Asks kgctl's brokers who is connected to them."""

from __future__ import annotations

from broker.protocol.api_keys import APIS
from broker.protocol.messages.describe_clients import DescribeClientsRequest, DescribeClientsResponse
from broker.protocol.uuids import spelled
from broker.protocol.wire_types import ZERO_UUID
from kgctl.client.net.authorization import Asked
from kgctl.client.net.cluster import Ask, Cluster, Node
from kgctl.client.net.errors import BrokerError, KgctlError, Unsupported
from kgctl.client.net.steps import Steps
from kgctl.model.clients import ClientRow, ClientRows

ROWS_PER_REQUEST = 500
NEEDED = "the cluster does not say who is connected to it: only kgctl's broker does"


def clients(cluster: Cluster) -> Steps[ClientRows]:
    """The connections of all brokers, in the order in which they were made."""
    nodes = yield from cluster.all_nodes()
    rows: list[ClientRow] = []
    errors: list[KgctlError] = []
    for node in nodes:
        if not cluster.range_of(node.endpoint, DescribeClientsRequest.API_KEY):
            errors.append(Unsupported(f"{node.endpoint}: {NEEDED}"))
            continue
        try:
            rows += yield from _clients_of(cluster, node)
        except KgctlError as error:
            errors.append(error)
    if len(errors) == len(nodes):
        raise errors[0]
    return ClientRows(tuple(rows), tuple(error.as_row() for error in errors))


def _clients_of(cluster: Cluster, node: Node) -> Steps[list[ClientRow]]:
    rows: list[ClientRow] = []
    after = 0
    while after >= 0:
        request = DescribeClientsRequest(after=after, limit=ROWS_PER_REQUEST)
        answer = yield from cluster.ask(Ask(node.endpoint, request, DescribeClientsResponse))
        if answer.error_code:
            raise BrokerError(answer.error_code, f"broker {node.node_id}", asked=Asked(DescribeClientsRequest))
        rows += [_row(answer, client) for client in answer.clients]
        after = answer.next_after
    return rows


def _row(answer: DescribeClientsResponse, client: DescribeClientsResponse.Client) -> ClientRow:
    return ClientRow(
        broker_id=answer.broker_id,
        number=client.number,
        host=client.host,
        port=client.port,
        client_id=client.client_id,
        software_name=client.software_name or None,
        software_version=client.software_version or None,
        principal=client.principal or None,
        listener=client.listener,
        security_protocol=client.security_protocol,
        connected_at_ms=client.since_ms,
        age_ms=max(0, answer.wall_ms - client.since_ms),
        idle_ms=max(0, answer.wall_ms - client.active_ms),
        requests=client.requests,
        bytes_in=client.bytes_in,
        bytes_out=client.bytes_out,
        last_request=_request_name(client.last_api_key),
        groups=tuple(client.groups),
        transactional_ids=tuple(client.transactional_ids),
        client_instance_id=None if client.client_instance_id == ZERO_UUID else spelled(client.client_instance_id),
    )


def _request_name(key: int) -> str | None:
    if key < 0:
        return None
    return APIS[key].name if key in APIS else str(key)
