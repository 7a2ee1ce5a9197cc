"""Requests: answers, failures, timeouts, throttling."""

from __future__ import annotations

import pytest

from broker.protocol.messages.api_versions import ApiVersionsRequest
from broker.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from broker.protocol.messages.metadata import MetadataRequest
from broker.protocol.messages.produce import ProduceRequest
from kgctl.client.net.errors import BadValue, NoAnswer, NotKafka, Unreachable, Unsupported
from kgctl.client.net.read_only import ReadOnly
from kgctl.client.network.outgoing import Outgoing
from kgctl.client.network.settings import NetworkSettings
from tests.harness.client_script import SEED, Script
from tests.kgctl.client.network.requests import connected, error_in, heartbeat, send, send_any

HEARTBEAT = HeartbeatRequest.API_KEY


def test_a_request_gets_its_answer() -> None:
    script = connected(Script(), 1)
    answers = send(script)
    assert script.network.in_flight(1) == script.network.in_flight() == 1
    script.answer(script.requests(HeartbeatRequest)[0], HeartbeatResponse())
    assert answers == [HeartbeatResponse()]
    assert script.network.in_flight(1) == 0


def test_answers_come_in_the_order_of_the_requests() -> None:
    script = connected(Script(), 1)
    first, second = send(script), send(script)
    one, two = script.requests(HeartbeatRequest)
    script.answer(one, HeartbeatResponse(error_code=1))
    script.answer(two, HeartbeatResponse(error_code=2))
    assert (first[0].error_code, second[0].error_code) == (1, 2)
    assert two.correlation_id == one.correlation_id + 1


def test_an_answer_to_another_request_ends_the_connection() -> None:
    script = connected(Script(), 1)
    answers = send(script)
    request = script.requests(HeartbeatRequest)[0]
    request.correlation_id += 1
    script.answer(request, HeartbeatResponse())
    script.turn()
    assert isinstance(error_in(answers), NotKafka)
    assert script.closes()


def test_a_request_to_a_node_that_is_not_ready_fails_at_once() -> None:
    script = Script()
    assert isinstance(error_in(send(script, node_id=1)), Unreachable)
    assert isinstance(error_in(send(script, node_id=77)), Unreachable)


def test_a_request_that_the_node_does_not_offer_fails_alone() -> None:
    script = connected(Script(offered={3: (0, 13), 18: (0, 4)}), 1)
    assert isinstance(error_in(send(script)), Unsupported)
    assert script.network.is_ready(1, script.now_ms)
    assert isinstance(script.network.version_of(1, HeartbeatRequest), Unsupported)


def test_the_version_is_the_highest_in_common_within_the_bounds() -> None:
    script = Script(offered={HEARTBEAT: (1, 3), 3: (0, 13), 18: (0, 4)})
    assert script.network.version_of(1, HeartbeatRequest) is None
    connected(script, 1)
    version_of = script.network.version_of
    assert version_of(1, HeartbeatRequest) == 3
    assert version_of(1, HeartbeatRequest, max_version=2) == 2
    assert isinstance(version_of(1, HeartbeatRequest, min_version=4), Unsupported)
    assert isinstance(version_of(1, HeartbeatRequest, max_version=0), Unsupported)
    assert version_of(77, HeartbeatRequest) is None


def test_a_request_can_be_made_from_its_version() -> None:
    script = connected(Script(offered={HEARTBEAT: (1, 3), 3: (0, 13), 18: (0, 4)}), 1)
    made: list[int] = []

    def make(version: int) -> HeartbeatRequest:
        made.append(version)
        return HeartbeatRequest(group_id="g", generation_id=1, member_id="m")

    outgoing = Outgoing(make, HeartbeatResponse, lambda *_: None, 1000, api=HeartbeatRequest)
    script.network.send(1, outgoing, script.now_ms)
    script.turn()
    assert made == [3] == [outgoing.version]
    assert outgoing.sent_ms == script.now_ms


def test_a_request_that_cannot_be_encoded_fails_alone() -> None:
    script = connected(Script(), 1)
    answers = send(script)
    script.answer(script.requests(HeartbeatRequest)[0], HeartbeatResponse())
    bad = HeartbeatRequest(group_id="g", generation_id=1 << 40, member_id="m")
    failed: list[object] = []
    script.network.send(
        1, Outgoing(bad, HeartbeatResponse, lambda answer, _: failed.append(answer), 1000), script.now_ms
    )
    script.turn()
    assert isinstance(failed[0], BadValue)
    assert answers == [HeartbeatResponse()]
    assert script.network.is_ready(1, script.now_ms)


def test_nothing_is_changed_with_a_read_only_client() -> None:
    script = connected(Script(settings=NetworkSettings(read_only=True)), 1)
    assert isinstance(error_in(send(script)), ReadOnly)
    assert not script.requests(HeartbeatRequest)


def test_a_request_without_an_answer_is_done_once_it_is_written() -> None:
    script = connected(Script(settings=NetworkSettings(max_in_flight_requests_per_connection=1)), 1)
    done: list[object] = []
    request = ProduceRequest(acks=0, timeout_ms=1000, topic_data=[])
    outgoing = Outgoing(request, None, lambda answer, _: done.append(answer), 1000)
    script.network.send(1, outgoing, script.now_ms)
    script.step()
    assert not done
    assert not script.network.is_ready(1, script.now_ms)
    script.step()
    assert done == [None]
    assert script.network.is_ready(1, script.now_ms)


def test_no_more_requests_are_in_flight_than_allowed() -> None:
    script = connected(Script(settings=NetworkSettings(max_in_flight_requests_per_connection=2)), 1)
    send(script)
    assert script.network.is_ready(1, script.now_ms)
    send(script)
    assert not script.network.is_ready(1, script.now_ms)
    assert script.network.ready_at_ms(1, script.now_ms) is None
    script.answer(script.requests(HeartbeatRequest)[0], HeartbeatResponse())
    assert script.network.is_ready(1, script.now_ms)


def test_a_request_that_times_out_ends_its_connection_and_all_requests_on_it() -> None:
    script = connected(Script(), 1)
    patient, hasty = send(script, timeout_ms=5000), send(script, timeout_ms=500)
    script.sleep(499)
    assert not hasty
    script.sleep(1)
    assert isinstance(error_in(hasty), NoAnswer)
    assert isinstance(error_in(patient), NoAnswer)
    assert script.closes()
    assert not script.network.is_ready(1, script.now_ms)


def test_an_answer_in_time_stops_the_clock() -> None:
    script = connected(Script(), 1)
    answers = send(script, timeout_ms=500)
    script.answer(script.requests(HeartbeatRequest)[0], HeartbeatResponse())
    late = send(script, timeout_ms=5000)
    script.sleep(4999)
    assert answers
    assert not late
    script.sleep(1)
    assert isinstance(error_in(late), NoAnswer)


def test_requests_fail_with_the_connection_in_their_order() -> None:
    script = connected(Script(), 1)
    order: list[str] = []
    for name in ("first", "second"):
        outgoing = heartbeat([])
        outgoing.done = lambda answer, _, name=name: order.append(name)
        script.network.send(1, outgoing, script.now_ms)
    script.turn()
    script.break_node(script.endpoint(1))
    script.turn()
    assert order == ["first", "second"]


def test_a_dropped_connection_fails_what_is_in_flight() -> None:
    script = connected(Script(), 1)
    answers = send(script)
    error = Unreachable("dropped")
    script.network.drop(1, script.now_ms, error)
    script.turn()
    assert answers == [error]
    assert script.network.in_flight() == 0
    assert not script.network.is_ready(1, script.now_ms)


def test_a_closed_client_fails_everything() -> None:
    script = connected(Script(node_count=2), 1)
    script.silent.add(script.endpoint(2))
    script.network.is_ready(2, script.now_ms)
    script.turn()
    sent = send(script)
    waiting: list[object] = []
    script.network.send_any(heartbeat(waiting), script.now_ms)
    script.network.close(script.now_ms)
    script.turn()
    assert "closed" in str(error_in(sent))
    assert "closed" in str(waiting[0])
    assert len(script.closes()) == len(script.connects())


@pytest.mark.parametrize(("version", "pause"), [(1, 0), (2, 500)])
def test_a_client_leaves_a_broker_alone_that_throttles_it(version: int, pause: int) -> None:
    """Older versions have the broker wait itself (KIP-219)."""
    script = connected(Script(offered={HEARTBEAT: (0, version), 3: (0, 13), 18: (0, 4)}), 1)
    send(script)
    script.answer(script.requests(HeartbeatRequest)[0], HeartbeatResponse(throttle_time_ms=500))
    assert script.network.is_ready(1, script.now_ms) == (not pause)
    assert script.network.ready_at_ms(1, script.now_ms) == (script.now_ms + pause if pause else None)
    script.sleep(500)
    assert script.network.is_ready(1, script.now_ms)


def test_a_request_for_any_node_waits_for_one() -> None:
    script = Script(down={SEED})
    answers = send_any(script, timeout_ms=5000)
    script.sleep(2000)
    assert not answers
    script.down.clear()
    script.sleep(2000)
    script.answer(script.requests(HeartbeatRequest)[0], HeartbeatResponse())
    assert answers == [HeartbeatResponse()]


def test_a_request_for_any_node_says_why_it_found_none() -> None:
    script = Script(down={SEED})
    answers = send_any(script, timeout_ms=5000)
    script.sleep(4999)
    assert not answers
    script.sleep(1)
    assert str(error_in(answers)) == "seed:9092: connection refused"


def test_the_wait_for_a_node_counts_for_the_timeout() -> None:
    script = Script(down={SEED})
    answers = send_any(script, timeout_ms=5000)
    script.sleep(4000)
    script.down.clear()
    script.sleep(999)
    assert script.requests(HeartbeatRequest)
    assert not answers
    script.sleep(1)
    assert isinstance(error_in(answers), NoAnswer)


def test_the_metadata_is_asked_for_before_a_busy_client_fills_the_connection() -> None:
    script = connected(Script(settings=NetworkSettings(max_in_flight_requests_per_connection=1)), 1)
    script.answers[MetadataRequest] = None
    script.sleep(1000)
    script.network.metadata.request_update()
    assert not script.network.is_ready(1, script.now_ms)
    script.turn()
    assert script.requests(MetadataRequest)


def test_the_client_gives_its_name_and_version() -> None:
    script = connected(Script(), 1)
    request = script.sent(ApiVersionsRequest)[0]
    assert request.client_software_name == "kgctl"
    assert request.client_software_version


def test_a_throttled_broker_must_still_answer_in_time() -> None:
    script = connected(Script(), 1)
    first = send(script)
    second = send(script, timeout_ms=1000)
    script.answer(script.requests(HeartbeatRequest)[0], HeartbeatResponse(throttle_time_ms=60_000))
    script.sleep(1000)
    assert first == [HeartbeatResponse(throttle_time_ms=60_000)]
    assert isinstance(error_in(second), NoAnswer)
