"""DescribeClients: what the broker knows about each connection, page by page."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

from broker.protocol.errors import ErrorCode
from broker.protocol.messages.api_versions import ApiVersionsRequest
from broker.protocol.messages.describe_clients import DescribeClientsRequest
from broker.protocol.messages.init_producer_id import InitProducerIdRequest
from broker.protocol.messages.leave_group import LeaveGroupRequest
from broker.protocol.messages.metadata import MetadataRequest
from tests.harness.authorization.clusters import connect_as, secured_broker
from tests.harness.requests import commit_request, join_alone
from tests.harness.running import RunningBroker
from tests.harness.wire_client import WireClient


def described(client: WireClient) -> dict[str | None, Any]:
    return {row.client_id: row for row in client.ask(DescribeClientsRequest()).clients}


def test_each_connection_is_described(running: RunningBroker, client: WireClient) -> None:
    with running.client(client_id="app") as app:
        app.ask(ApiVersionsRequest(client_software_name="my-client", client_software_version="1.2"), 3)
        frame = app.frame(MetadataRequest(topics=[]), 12)
        app.send_bytes(frame)
        received = app.receive_frame()
        rows = described(client)
        row, host_and_port = rows["app"], app.socket.getsockname()[:2]
    assert (row.host, row.port) == host_and_port
    assert (row.software_name, row.software_version) == ("my-client", "1.2")
    assert (row.listener, row.security_protocol, row.principal) == ("PLAINTEXT", "PLAINTEXT", "User:ANONYMOUS")
    assert (row.requests, row.last_api_key) == (2, MetadataRequest.API_KEY)
    assert row.bytes_in > len(frame)
    assert row.bytes_out > len(received)
    assert 0 < row.since_ms <= row.active_ms
    assert rows["test"].last_api_key == DescribeClientsRequest.API_KEY


def test_groups_and_transactional_ids_are_those_that_the_connection_uses(
    running: RunningBroker, client: WireClient
) -> None:
    with running.client(client_id="app") as app:
        joined = join_alone(app, "orders")
        app.ask(commit_request("simple", None, "t", 1), 8)
        app.ask(InitProducerIdRequest(transactional_id="tx", transaction_timeout_ms=1000), 1)
        row = described(client)["app"]
        assert (row.groups, row.transactional_ids) == (["orders", "simple"], ["tx"])
        app.ask(LeaveGroupRequest(group_id="orders", member_id=joined.member_id), 2)
        for number in range(20):
            app.ask(commit_request(f"g{number}", None, "t", 1), 8)
        app.ask(commit_request("x" * 1000, None, "t", 1), 8)
        assert described(client)["app"].groups == [f"g{number}" for number in range(12, 20)]


def test_pages_have_each_connection_once_in_their_order(running: RunningBroker, client: WireClient) -> None:
    with ExitStack() as stack:
        for number in range(6):
            stack.enter_context(running.client(client_id=f"c{number}")).ask(MetadataRequest(topics=[]), 12)
        found, after, answers = [], 0, 0
        while after >= 0:
            answer = client.ask(DescribeClientsRequest(after=after, limit=3))
            found += [row.client_id for row in answer.clients]
            after, answers = answer.next_after, answers + 1
    assert found == ["test", *(f"c{number}" for number in range(6))]
    assert answers == 3
    assert client.ask(DescribeClientsRequest(limit=0)).error_code == ErrorCode.INVALID_REQUEST


def test_long_names_of_a_client_are_cut(running: RunningBroker, client: WireClient) -> None:
    with running.client(client_id="n" * 30_000) as app:
        app.ask(ApiVersionsRequest(client_software_name="s" * 30_000, client_software_version="1"), 3)
        row = described(client)["n" * 249]
    assert row.software_name == "s" * 249


def test_it_needs_a_permission(tmp_path: Path) -> None:
    with secured_broker(tmp_path / "data", "User:alice") as broker, connect_as(broker, "User:alice") as alice:
        answer = alice.ask(DescribeClientsRequest())
    assert (answer.error_code, answer.clients) == (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, [])
