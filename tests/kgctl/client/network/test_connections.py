"""Connections: opening with backoff, versions, sessions that end, idle ones, the least loaded node."""

from __future__ import annotations

import itertools

import pytest

from broker.protocol.errors import ErrorCode
from broker.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from broker.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from broker.protocol.messages.metadata import MetadataRequest
from kgctl.client.net.errors import AuthenticationFailed, Unreachable
from kgctl.client.net.steps import Endpoint
from kgctl.client.network.nodes import Node
from kgctl.client.network.settings import NetworkSettings
from tests.harness.client_script import SEED, Script
from tests.kgctl.client.network.requests import connected, error_in, send, send_any

REFUSED = AuthenticationFailed("seed:9092: wrong password")


def waits(script: Script, endpoint: Endpoint, ms: int) -> list[int]:
    """The times between connections to an address within that many milliseconds."""
    times: list[int] = []
    until = script.now_ms + ms
    while script.now_ms < until:
        before = len(script.connects())
        script.network.is_ready(1, script.now_ms)
        script.turn()
        times += [script.now_ms for each in script.connects()[before:] if each.endpoint == endpoint]
        script.now_ms += 1
    return [later - earlier for earlier, later in itertools.pairwise(times)]


# --- opening ---


def test_connecting_waits_longer_after_each_failure() -> None:
    script = connected(Script(), 1)
    endpoint = script.endpoint(1)
    script.down.add(endpoint)
    script.break_node(endpoint)
    pauses = waits(script, endpoint, 8_000)
    for pause, expected in zip(pauses, [100, 200, 400, 800, 1000, 1000], strict=False):
        assert expected * 0.8 <= pause <= min(1000, expected * 1.2) + 1


def test_a_connection_that_works_ends_the_backoff() -> None:
    script = connected(Script(), 1)
    endpoint = script.endpoint(1)
    script.down.add(endpoint)
    script.break_node(endpoint)
    waits(script, endpoint, 3000)
    script.down.clear()
    script.sleep(1000)
    connected(script, 1)
    script.break_node(endpoint)
    wait = script.network.ready_at_ms(1, script.now_ms)
    assert wait is not None
    assert 40 <= wait - script.now_ms <= 60


def test_a_node_is_unavailable_during_its_backoff_and_says_why() -> None:
    script = connected(Script(), 1)
    error = Unreachable("gone")
    script.break_node(script.endpoint(1), error)
    assert script.network.is_unavailable(1, script.now_ms)
    assert script.network.error_of(1) is error
    assert not script.network.is_ready(1, script.now_ms)
    assert not any(each.endpoint == script.endpoint(1) for each in script.connects()[2:])
    script.sleep(60)
    assert not script.network.is_unavailable(1, script.now_ms)
    connected(script, 1)
    assert script.network.error_of(1) is None


def test_a_connection_that_does_not_open_in_time_is_given_up_each_time_later() -> None:
    script = Script(silent={SEED})
    times = []
    script.turn()
    for _ in range(4):
        began = script.now_ms
        while len(script.closes()) == len(times):
            script.sleep(100)
        times.append(script.now_ms - began)
    for took, expected in zip(times, [10_000, 20_000, 30_000, 30_000], strict=True):
        assert expected * 0.8 - 100 <= took <= expected * 1.2 + 1100
    error = next(iter(script.network._connections.peers.values())).error
    assert str(error) == "seed:9092: could not connect in time"


def test_a_node_that_accepts_connections_but_says_nothing_is_given_up() -> None:
    script = Script(answers={ApiVersionsRequest: None})
    answers = send_any(script, timeout_ms=15_000)
    script.sleep(15_000)
    assert "accepts connections but does not answer" in str(error_in(answers))


def test_a_connection_is_not_ready_before_its_versions_are_known() -> None:
    script = Script(answers={ApiVersionsRequest: None})
    script.network.is_ready(-1, script.now_ms)
    script.turn()
    assert script.links() == [SEED]
    assert not script.network.is_ready(-1, script.now_ms)


def test_a_connection_that_ends_while_it_asks_for_versions_is_opened_again() -> None:
    script = Script(answers={ApiVersionsRequest: None})
    script.turn()
    script.fail(script.requests(ApiVersionsRequest)[0])
    script.answers.clear()
    script.sleep(1000)
    assert script.network.metadata.is_bootstrapped


def test_a_connection_can_be_dropped_while_it_opens() -> None:
    script = Script(silent={SEED})
    script.turn()
    script.network.drop(-1, script.now_ms, Unreachable("dropped"))
    script.turn(1)
    (connect,), (close,) = script.connects(), script.closes()
    assert connect.link == close.link
    script.network.connected(connect.link, script.now_ms)  # too late
    assert not script.network.is_ready(-1, script.now_ms)


# --- versions ---


def refused(*, with_ranges: bool) -> ApiVersionsResponse:
    rows = [ApiVersionsResponse.ApiKey(api_key=18, min_version=0, max_version=2)] if with_ranges else []
    return ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=rows)


@pytest.mark.parametrize(("with_ranges", "version"), [(True, 2), (False, 0)])
def test_a_broker_that_refuses_the_version_of_api_versions_is_asked_again(with_ranges: bool, version: int) -> None:
    """KIP-511: its answer is in version 0, and names the versions that it knows."""
    script = Script(answers={ApiVersionsRequest: None})
    script.turn()
    script.answer(script.requests(ApiVersionsRequest)[0], refused(with_ranges=with_ranges), version=0)
    script.turn()
    (again,) = script.requests(ApiVersionsRequest)
    assert again.version == version
    script.answers.clear()
    script.turn()
    assert script.network.metadata.is_bootstrapped


def test_a_broker_that_refuses_to_list_its_versions_is_left() -> None:
    script = Script(answers={ApiVersionsRequest: lambda _: ApiVersionsResponse(error_code=42, api_keys=[])})
    answers = send_any(script, timeout_ms=1000)
    script.sleep(1000)
    assert "INVALID_REQUEST" in str(error_in(answers))


# --- sessions that end, idle connections, new addresses ---


def test_a_connection_whose_session_ends_is_replaced_without_a_failed_request() -> None:
    """KIP-368: another connection is opened first, and the old one is closed when it is idle."""
    script = connected(Script(session_ms=10_000), 1)
    answers = send(script)
    script.sleep(9_500)
    assert [each.endpoint for each in script.connects()].count(script.endpoint(1)) == 2
    assert not script.network.is_ready(1, script.now_ms)  # the old one still has a request
    script.answer(script.requests(HeartbeatRequest)[0], HeartbeatResponse())
    script.turn()
    assert answers == [HeartbeatResponse()]
    assert script.network.is_ready(1, script.now_ms)
    assert not script.network.is_unavailable(1, script.now_ms)
    later = send(script)
    script.answer(script.requests(HeartbeatRequest)[0], HeartbeatResponse())
    assert later == [HeartbeatResponse()]


def test_no_request_goes_to_a_session_that_has_ended() -> None:
    script = connected(Script(session_ms=10_000), 1)
    answers = send(script)
    script.silent.add(script.endpoint(1))
    script.sleep(9_999)
    assert script.network.is_ready(1, script.now_ms)
    script.sleep(1)
    assert not script.network.is_ready(1, script.now_ms)
    script.answer(script.requests(HeartbeatRequest)[0], HeartbeatResponse())
    script.turn()
    assert answers == [HeartbeatResponse()]
    assert not script.network.is_ready(1, script.now_ms)


def test_an_idle_connection_is_closed_and_opened_again_when_it_is_needed() -> None:
    script = connected(Script(settings=NetworkSettings(connections_max_idle_ms=1000)), 1)
    script.sleep(999)
    assert not script.closes()
    script.sleep(1)
    assert not script.links()
    assert not script.network.is_unavailable(1, script.now_ms)
    connected(script, 1)


def test_a_connection_with_a_request_is_not_idle() -> None:
    script = connected(Script(settings=NetworkSettings(connections_max_idle_ms=1000)), 1)
    answers = send(script)
    script.sleep(20_000)
    assert script.links() == [script.endpoint(1)]
    assert not answers


def test_a_node_with_a_new_address_is_connected_to_there() -> None:
    script = connected(Script(node_count=2), 1, 2)
    answers = send(script)
    script.nodes[1] = Node(1, "elsewhere", 9092)
    script.network.metadata.request_update()
    script.sleep(1000)
    assert not script.network.is_ready(1, script.now_ms)
    script.answer(script.requests(HeartbeatRequest)[0], HeartbeatResponse())
    connected(script, 1)
    assert answers == [HeartbeatResponse()]
    assert script.links() == [SEED, script.endpoint(2), Endpoint("elsewhere", 9092)]


def test_a_node_takes_over_the_connection_to_its_address_in_the_bootstrap_list() -> None:
    script = Script(bootstrap=(Endpoint("host1", 9092),))
    script.turn()
    assert script.network.is_ready(1, script.now_ms)
    assert len(script.connects()) == 1


# --- the least loaded node ---


def test_the_least_loaded_node_has_the_fewest_requests_in_flight() -> None:
    script = connected(Script(node_count=3), 1, 2, 3)
    for node_id, count in ((1, 3), (2, 1), (3, 2)):
        for _ in range(count):
            send(script, node_id)
    send_any(script)
    assert [request.endpoint for request in script.requests(HeartbeatRequest)][-1] == script.endpoint(2)
    assert script.network.in_flight(2) == 2


def test_a_connection_is_preferred_to_a_new_one() -> None:
    script = connected(Script(node_count=3), 2)
    send(script, 2)
    before = len(script.connects())
    send_any(script)
    assert script.network.in_flight(2) == 2
    assert len(script.connects()) == before


def test_a_throttled_node_is_not_the_least_loaded() -> None:
    script = connected(Script(node_count=2), 1, 2)
    send(script, 1)
    script.answer(script.requests(HeartbeatRequest)[0], HeartbeatResponse(throttle_time_ms=5000))
    send(script, 2)
    send_any(script)
    assert script.network.in_flight(2) == 2


def test_the_node_whose_last_attempt_is_oldest_is_tried_first() -> None:
    script = connected(Script(node_count=3), 1, 2, 3)
    for node_id in (2, 1, 3):
        script.down.add(script.endpoint(node_id))
        script.break_node(script.endpoint(node_id))
        script.sleep(10)
    script.break_node(SEED)
    tried = [each.endpoint.host for each in script.connects()[4:]]
    script.sleep(200)
    tried = [each.endpoint.host for each in script.connects()[4:] if each.endpoint != SEED][:3]
    assert sorted(tried) == ["host1", "host2", "host3"]


# --- refused credentials ---


def test_refused_credentials_fail_what_waits_and_are_not_repeated_before_the_program_has_seen_it() -> None:
    script = Script(silent={SEED})
    answers = send_any(script)
    script.network.lost(script.connects()[0].link, REFUSED, script.now_ms)
    script.sleep(60_000)
    assert answers == [REFUSED]
    assert len(script.connects()) == 1
    with pytest.raises(AuthenticationFailed):
        script.network.metadata.take_error()
    script.network.metadata.take_error()  # once
    script.silent.clear()
    script.sleep(1000)
    assert script.network.metadata.is_bootstrapped


def test_a_connection_that_fails_with_the_metadata_in_flight_makes_the_client_ask_again() -> None:
    script = Script(node_count=2, answers={MetadataRequest: None})
    script.turn()
    script.fail(script.requests(MetadataRequest)[0])
    script.answers.clear()
    script.sleep(1000)
    assert script.network.metadata.is_bootstrapped
