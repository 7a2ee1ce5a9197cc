"""The router and the declarations: every request has one, and none is handled before it is authorized."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from broker.cores.groups.coordinator import HANDLERS
from broker.protocol.acls import Operation, ResourceType
from broker.protocol.api_keys import APIS
from broker.protocol.errors import ErrorCode
from broker.protocol.frames import request_frame
from broker.protocol.messages.api_versions import ApiVersionsRequest
from broker.protocol.messages.heartbeat import HeartbeatRequest
from broker.protocol.wire_types import Message
from broker.server.declaration import Declaration
from broker.server.handlers import SERVED_KEYS, find_declaration, groups
from broker.server.resources import Resources
from broker.server.router import Router
from broker.server.session import ANONYMOUS, Session
from tests.harness.requests import metadata_of
from tests.harness.running import RunningBroker
from tests.harness.wire_client import WireClient


def test_every_served_key_has_one_declaration() -> None:
    for key in SERVED_KEYS:
        declared = find_declaration(key)
        assert declared is not None, key
        assert declared.request is APIS[key].request


def test_only_requests_for_everyone_have_no_acl() -> None:
    open_to_all = [key for key in SERVED_KEYS if not declaration_of(key).guard.acls]
    expected = ["SaslHandshake", "ApiVersions", "SaslAuthenticate", "DescribeCluster"]
    expected += ["GetTelemetrySubscriptions", "PushTelemetry"]
    assert [APIS[key].name for key in open_to_all] == expected


def test_a_declaration_needs_a_guard() -> None:
    declare: Any = Declaration
    with pytest.raises(TypeError, match="guard"):
        declare(ApiVersionsRequest, lambda *_: None)


def test_the_groups_core_handles_the_requests_that_are_declared_for_it() -> None:
    assert {declared.request for declared in groups.REQUESTS} == HANDLERS.keys()


def declaration_of(key: int) -> Declaration:
    declared = find_declaration(key)
    assert declared is not None
    return declared


class Origin:
    """A connection that takes an answer."""

    def __init__(self) -> None:
        listener: Any = None
        self.session = Session(listener, authenticated=True)
        self.session.principal = "User:alice"
        self.session.host = "127.0.0.1"
        self.answers: list[Message] = []

    def answered(self, exchange: object, response: Message) -> None:
        self.answers.append(response)


class Denying:
    """An authorizer that denies everything."""

    version = 0

    def __init__(self) -> None:
        self.asked: list[tuple[object, ...]] = []

    def authorize(self, *question: object) -> bool:
        self.asked.append(question)
        return False

    def authorize_by_resource_type(self, *question: object) -> bool:
        return False


def test_a_request_passes_its_guard_before_its_handler_runs() -> None:
    # No handler can reach any data.
    nothing: Any = None
    no_records = SimpleNamespace(all=lambda kind: {})
    features: Any = SimpleNamespace(feature_levels={}, feature_epoch=0, security_records=no_records)
    authorizer = Denying()
    router = Router(
        find_declaration, Resources(nothing, features, nothing, nothing, nothing, nothing, nothing, authorizer)
    )
    origin: Any = Origin()

    software = ApiVersionsRequest(client_software_name="test", client_software_version="1")
    router.dispatch(*router.open(request_frame(software, 3, 1, "c")[4:], origin))
    assert authorizer.asked == []
    for number in (2, 3):
        heartbeat = HeartbeatRequest(group_id="orders", generation_id=1, member_id="m")
        router.dispatch(*router.open(request_frame(heartbeat, 4, number, "c")[4:], origin))
    assert [answer.error_code for answer in origin.answers] == [
        ErrorCode.NONE,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ]
    # The second decision is remembered.
    assert authorizer.asked == [("User:alice", "127.0.0.1", Operation.READ, ResourceType.GROUP, "orders")]


def test_decisions_are_dropped_when_the_acls_or_the_principal_change() -> None:
    authorizer = Denying()
    nothing: Any = None
    resources = Resources(nothing, nothing, nothing, nothing, nothing, nothing, nothing, authorizer)
    origin: Any = Origin()
    for change in ({}, {"version": 1}, {"principal": "User:bob"}):
        authorizer.version = change.get("version", authorizer.version)
        origin.session.principal = change.get("principal", origin.session.principal)
        assert not resources.access(origin).allows_on_cluster(Operation.ALTER)
        assert not resources.access(origin).allows_on_cluster(Operation.ALTER)
    assert [principal for principal, *_ in authorizer.asked] == ["User:alice", "User:alice", "User:bob"]


def test_a_connection_is_anonymous_and_knows_its_listener_and_host(running: RunningBroker, client: WireClient) -> None:
    metadata_of(client)
    (connection,) = running.run(lambda: list(running.broker.connections))
    session = connection.session
    assert (session.principal, session.authenticated, session.host) == (ANONYMOUS, True, "127.0.0.1")
    assert (session.listener.name, session.listener.security_protocol) == ("PLAINTEXT", "PLAINTEXT")
    assert (session.listener.advertised.host, session.listener.advertised.port) == running.address
