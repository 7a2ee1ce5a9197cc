"""Fetch sessions over a socket: the answers of a real Kafka, rights that change, quotas, and clients."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from broker.protocol.acls import Operation, ResourceType
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.fetch import FetchRequest
from tests.broker.server.test_guards import allow, revoke_all
from tests.broker.server.test_quotas import set_quota
from tests.harness.authorization.clusters import connect_as, secured_broker
from tests.harness.fetch_walk import walk_all
from tests.harness.requests import create_topic, fetch_request, produce, values_of
from tests.harness.running import RunningBroker, until
from tests.harness.wire_client import WireClient

# What Kafka 4.1 answered: `python -m tests.harness.fetch_walk` on tests.harness.reference_kafka.
RECORDED = Path(__file__).with_name("fetch_walk.txt")
ALICE = "User:alice"


def test_a_walk_through_sessions_has_kafkas_answers(running: RunningBroker) -> None:
    assert walk_all(running.client) == RECORDED.read_text().splitlines()


@pytest.fixture
def secured(tmp_path: Path) -> Iterator[RunningBroker]:
    with secured_broker(tmp_path / "data", ALICE) as broker:
        yield broker


def both(session_id: int, epoch: int, **arguments: Any) -> FetchRequest:
    """A fetch of topics "mine" and "theirs"; after the first epoch they are in the session."""
    request = fetch_request("mine", 0, session_id=session_id, session_epoch=epoch, **arguments)
    request.topics += fetch_request("theirs", 0).topics
    if epoch > 0:
        request.topics = []
    return request


def codes(answer: Any) -> dict[str, int]:
    assert answer.error_code == ErrorCode.NONE
    return {topic.topic: row.error_code for topic in answer.responses for row in topic.partitions}


def test_a_session_loses_and_gains_topics_when_acls_change(secured: RunningBroker) -> None:
    denied, fine = ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.NONE
    with connect_as(secured, "User:admin") as admin, connect_as(secured, ALICE) as alice:
        for name in ("mine", "theirs"):
            create_topic(admin, name)
        allow(admin, Operation.READ, ResourceType.TOPIC, "mine")
        opened = alice.ask(both(0, 0), 12)
        assert codes(opened) == {"mine": fine, "theirs": denied}
        assert codes(alice.ask(both(opened.session_id, 1), 12)) == {"theirs": denied}
        allow(admin, Operation.READ, ResourceType.TOPIC, "theirs")
        assert codes(alice.ask(both(opened.session_id, 2), 12)) == {"theirs": fine}
        alice.send(both(opened.session_id, 3, max_wait_ms=60_000), 12)
        until(lambda: len(secured.broker.waiters) == 1)
        revoke_all(admin)
        produce(admin, "mine", b"secret")
        # The fetch was allowed when it arrived, but its records come later.
        assert codes(alice.receive()) == {"mine": denied, "theirs": denied}


def test_a_session_belongs_to_one_principal(secured: RunningBroker) -> None:
    with connect_as(secured, "User:admin") as admin, connect_as(secured, ALICE) as alice:
        create_topic(admin, "mine")
        create_topic(admin, "theirs")
        opened = admin.ask(both(0, 0), 12)
        assert opened.session_id > 0
        assert alice.ask(both(opened.session_id, 1), 12).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        assert alice.ask(both(opened.session_id, -1), 12).session_id == 0
        assert admin.ask(both(opened.session_id, 1), 12).error_code == ErrorCode.NONE


def test_a_throttled_fetch_keeps_its_session_and_its_records(running: RunningBroker, client: WireClient) -> None:
    create_topic(client, "mine")
    create_topic(client, "theirs")
    opened = client.ask(both(0, 0), 12)
    produce(client, "mine", b"x" * 50_000)
    set_quota(client, "consumer_byte_rate", 1000, user="ANONYMOUS")
    throttled = client.ask(both(opened.session_id, 1), 12)
    assert throttled.throttle_time_ms > 0
    assert (throttled.session_id, throttled.responses) == (opened.session_id, [])
    with running.client() as second:
        full = second.ask(both(0, 0), 12)
        assert full.throttle_time_ms > 0
        # The session of an answer without partitions would be useless.
        assert (full.session_id, full.responses) == (0, [])
    with running.client() as third:
        set_quota(third, "consumer_byte_rate", None, user="ANONYMOUS")
        answer = third.ask(both(opened.session_id, 2), 12)
        assert [values_of(row) for topic in answer.responses for row in topic.partitions] == [[b"x" * 50_000]]


def test_the_broker_keeps_as_many_sessions_as_configured(tmp_path: Path) -> None:
    options = {"max.incremental.fetch.session.cache.slots": "1"}
    with RunningBroker(tmp_path / "data", **options) as broker, broker.client() as client:
        create_topic(client, "mine")
        assert client.ask(both(0, 0), 12).session_id > 0
        second = client.ask(both(0, 0), 12)
        assert (second.error_code, second.session_id, len(second.responses)) == (ErrorCode.NONE, 0, 2)


def test_older_versions_have_no_sessions(client: WireClient) -> None:
    create_topic(client, "mine")
    assert client.ask(both(0, 0), 7).session_id > 0
    assert client.ask(both(0, 0), 6).session_id == 0
