"""The router and the declarations: every request has one, and none is handled before it is authorized."""

from __future__ import annotations

from typing import Any

import pytest

from broker.cores.groups.coordinator import HANDLERS
from broker.protocol.api_keys import APIS
from broker.protocol.frames import request_frame
from broker.protocol.messages.api_versions import ApiVersionsRequest
from broker.protocol.messages.metadata import MetadataRequest
from broker.protocol.wire_types import Message
from broker.server.declaration import Declaration
from broker.server.exchange import RequestRefused
from broker.server.handlers import SERVED_KEYS, find_declaration, groups
from broker.server.router import Router
from broker.server.session import ANONYMOUS, Session
from tests.harness.requests import metadata_of
from tests.harness.running import RunningBroker
from tests.harness.wire_client import WireClient


@pytest.mark.parametrize("key", SERVED_KEYS)
def test_every_served_key_has_one_declaration(key: int) -> None:
    declared = find_declaration(key)
    assert declared is not None
    assert declared.request is APIS[key].request


def test_only_requests_for_everyone_have_no_acl() -> None:
    open_to_all = [key for key in SERVED_KEYS if not declaration_of(key).acls]
    assert [APIS[key].name for key in open_to_all] == ["ApiVersions", "DescribeCluster"]


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
        self.client_host = "/127.0.0.1"
        self.answers: list[Message] = []

    def answered(self, exchange: object, response: Message) -> None:
        self.answers.append(response)


def test_a_request_is_authorized_by_its_declaration_before_its_handler_runs() -> None:
    asked: list[tuple[str, type[Message]]] = []

    def authorize(session: Session, declaration: Declaration) -> bool:
        asked.append((session.principal, declaration.request))
        return declaration.request is ApiVersionsRequest

    # Without resources no handler can reach any data.
    resources: Any = None
    router = Router(find_declaration, resources, authorize)
    origin: Any = Origin()

    software = ApiVersionsRequest(client_software_name="test", client_software_version="1")
    router.dispatch(*router.open(request_frame(software, 3, 1, "c")[4:], origin))
    assert len(origin.answers) == 1
    with pytest.raises(RequestRefused, match="User:alice may not send Metadata"):
        router.dispatch(*router.open(request_frame(MetadataRequest(topics=[]), 12, 2, "c")[4:], origin))
    assert asked == [("User:alice", ApiVersionsRequest), ("User:alice", MetadataRequest)]
    assert len(origin.answers) == 1


def test_a_connection_is_anonymous_and_knows_its_listener_and_host(running: RunningBroker, client: WireClient) -> None:
    metadata_of(client)
    (connection,) = running.run(lambda: list(running.broker.connections))
    session = connection.session
    assert (session.principal, session.authenticated, session.host) == (ANONYMOUS, True, "127.0.0.1")
    assert (session.listener.name, session.listener.security_protocol) == ("PLAINTEXT", "PLAINTEXT")
    assert (session.listener.advertised.host, session.listener.advertised.port) == running.address
