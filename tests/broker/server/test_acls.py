"""CreateAcls, DescribeAcls and DeleteAcls."""

from __future__ import annotations

from pathlib import Path

import pytest

from broker.config.config import load_config
from broker.config.option import ConfigError
from broker.local import LocalBroker
from broker.protocol.errors import ErrorCode
from broker.storage import StorageError
from tests.harness.acl_requests import (
    ALL,
    ALLOW,
    CLUSTER,
    DENY,
    GROUP,
    LITERAL,
    MATCH,
    PREFIXED,
    READ,
    TOPIC,
    UNHEARD_OF,
    UNKNOWN,
    WRITE,
    ask,
    chosen,
    create,
    creation,
    delete,
    describe,
)
from tests.harness.ports import kept_address
from tests.harness.running import RunningBroker, until
from tests.harness.wire_client import WireClient

SUPER = {"authorizer_class_name": "StandardAuthorizer", "super_users": "User:ANONYMOUS;User:admin"}
NO_ERROR = (0, "")
UNPARSED = (
    "Could not parse principal from `alice` (no colon is present separating the principal type from the principal name)"
)


@pytest.fixture
def running(tmp_path: Path) -> RunningBroker:
    return RunningBroker(tmp_path / "data", **SUPER)


def test_acls_are_kept_in_the_store_and_a_duplicate_is_no_second_one(running: RunningBroker) -> None:
    with running:
        with running.client() as client:
            asked = create(creation("b"), creation("a"), creation("a"), creation("a", pattern=PREFIXED))
            assert ask(client, asked) == [NO_ERROR] * 4
            first = ask(client, describe())
        running.restart()
        with running.client() as client:
            assert ask(client, describe()) == first
            assert ask(client, delete(chosen("a", pattern=LITERAL))) == [
                (0, None, (0, TOPIC, LITERAL, "a", "User:alice", "*", READ, ALLOW))
            ]
        running.restart()
        with running.client() as client:
            assert ask(client, describe())[1:] == [
                (TOPIC, LITERAL, "b", "User:alice", "*", READ, ALLOW),
                (TOPIC, PREFIXED, "a", "User:alice", "*", READ, ALLOW),
            ]
    assert first == [
        NO_ERROR,
        (TOPIC, LITERAL, "a", "User:alice", "*", READ, ALLOW),
        (TOPIC, LITERAL, "b", "User:alice", "*", READ, ALLOW),
        (TOPIC, PREFIXED, "a", "User:alice", "*", READ, ALLOW),
    ]


def test_entries_that_are_not_valid_are_refused_one_by_one(running: RunningBroker) -> None:
    with running, running.client() as client:
        refused = ask(
            client,
            create(
                creation(""),
                creation("ok"),
                creation("no", kind=UNHEARD_OF),
                creation("no", pattern=UNHEARD_OF),
                creation("no", operation=UNHEARD_OF),
                creation("no", permission=UNHEARD_OF),
                creation("no", kind=CLUSTER),
                creation("no", principal="alice"),
            ),
        )
        assert refused == [
            (42, "Invalid empty resource name"),
            NO_ERROR,
            (42, "Invalid resourceType UNKNOWN"),
            (42, "Invalid patternType UNKNOWN"),
            (42, "Invalid operation UNKNOWN"),
            (42, "Invalid permissionType UNKNOWN"),
            (42, "The only valid name for the CLUSTER resource is kafka-cluster"),
            (42, UNPARSED),
        ]
        assert ask(client, create(creation("no"), creation("no", pattern=MATCH))) == [(-1, None)] * 2
        assert len(ask(client, describe())) == 2


def test_the_number_of_unknown_closes_the_connection(running: RunningBroker) -> None:
    requests = [create(creation(kind=UNKNOWN)), describe(operation=UNKNOWN), delete(chosen(), chosen(pattern=UNKNOWN))]
    with running:
        for request in requests:
            with running.client() as client:
                assert ask(client, request) == "closed"


def test_all_filters_of_a_request_see_the_acls_as_they_were(running: RunningBroker) -> None:
    with running, running.client() as client:
        ask(client, create(creation("batch"), creation("*", kind=GROUP), creation("bat", pattern=PREFIXED)))
        found = (0, TOPIC, LITERAL, "batch", "User:alice", "*", READ, ALLOW)
        prefix = (0, TOPIC, PREFIXED, "bat", "User:alice", "*", READ, ALLOW)
        asked = delete(
            chosen("batch"), chosen(kind=UNHEARD_OF), chosen("batch", kind=TOPIC, pattern=MATCH), chosen("x")
        )
        assert ask(client, asked) == [
            (0, None, found),
            (42, "Unknown patternFilter."),
            (0, None, found, prefix),
            (0, None),
        ]
        assert ask(client, describe()) == [NO_ERROR, (GROUP, LITERAL, "*", "User:alice", "*", READ, ALLOW)]


def test_each_of_many_entries_is_answered_in_order(running: RunningBroker) -> None:
    names = ["" if number % 7 == 0 else f"topic-{number % 500}" for number in range(1000)]
    with running, running.client() as client:
        results = client.ask(create(*map(creation, names))).results
        assert [bool(row.error_code) for row in results] == [name == "" for name in names]
        filters = [chosen(name or "none") for name in names[:30]]
        found = client.ask(delete(*filters)).filter_results
        assert [[acl.resource_name for acl in row.matching_acls] for row in found] == [
            [name] if name else [] for name in names[:30]
        ]


def test_without_an_authorizer_there_are_no_acls(tmp_path: Path) -> None:
    code = int(ErrorCode.SECURITY_DISABLED)
    with RunningBroker(tmp_path / "data") as running, running.client() as client:
        assert ask(client, describe()) == [(code, "No Authorizer is configured on the broker")]
        assert ask(client, create(creation(), creation(""))) == [(code, "No Authorizer is configured.")] * 2
        assert ask(client, delete(chosen())) == [(code, "No Authorizer is configured.")]


def test_a_change_is_in_force_at_once_on_open_connections(tmp_path: Path) -> None:
    options = {"authorizer_class_name": "StandardAuthorizer", "allow_everyone_if_no_acl_found": "true"}
    with RunningBroker(tmp_path / "data", **options) as running, running.client() as one, running.client() as other:
        assert ask(other, describe()) == [NO_ERROR]
        own = creation("kafka-cluster", kind=CLUSTER, principal="User:bob", operation=WRITE)
        assert ask(one, create(own)) == [NO_ERROR]
        # An ACL applies to the cluster now, and none is for this client.
        code = int(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        assert ask(other, describe()) == [(code, "The principal needs DESCRIBE on the cluster.")]
        for client in (one, other):
            assert ask(client, create(own, own)) == [(code, "The principal needs ALTER on the cluster.")] * 2
            assert ask(client, delete(chosen())) == [(code, "The principal needs ALTER on the cluster.")]


def test_a_start_refuses_an_acl_that_it_cannot_read(running: RunningBroker) -> None:
    with running:
        running.log.security_records.put("acls", '{"kind":"MOON"}', "")
    with pytest.raises(StorageError, match="an ACL that this version cannot read"), running:
        pass


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("authorizer.class.name=kafka.security.authorizer.AclAuthorizer", "this broker has only StandardAuthorizer"),
        ("super.users=User:admin;root", "'root' is not a principal such as User:root"),
        ("allow.everyone.if.no.acl.found=yes", "must be true or false"),
    ],
)
def test_options_of_the_authorizer_are_checked(option: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        load_config(overrides=[option])


def test_options_that_need_an_authorizer_cause_a_warning_without_one() -> None:
    config = load_config(overrides=["super.users=User:a"])
    assert config.warnings == ["option super.users is ignored without authorizer.class.name"]
    name = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
    config = load_config(overrides=["super.users= User:a ;;User:b,c", f"authorizer.class.name={name}"])
    assert (config.warnings, config.super_user_names) == ([], ("User:a", "User:b,c"))


def test_a_denial_is_stored_as_well(running: RunningBroker) -> None:
    with running:
        with running.client() as client:
            ask(client, create(creation(permission=DENY), creation(permission=ALLOW)))
        running.restart()
        with running.client() as client:
            assert [row[-1] for row in ask(client, describe())[1:]] == [DENY, ALLOW]


def test_a_killed_broker_has_every_acl_that_it_acknowledged(tmp_path: Path) -> None:
    config = {name.replace("_", "."): value for name, value in SUPER.items()}
    with LocalBroker(data_dir=tmp_path / "data", config=config, listen=kept_address()) as local:
        host, port = local.bootstrap_servers.split(":")
        with WireClient((host, int(port))) as client:
            assert ask(client, create(creation("kept"), creation("removed"))) == [NO_ERROR] * 2
            assert len(ask(client, delete(chosen("removed")))[0]) == 3
        local.kill()
        local.restart()
        host, port = local.bootstrap_servers.split(":")
        with WireClient((host, int(port))) as client:
            assert ask(client, describe())[1:] == [(TOPIC, LITERAL, "kept", "User:alice", "*", READ, ALLOW)]


def test_a_client_over_ipv6_has_the_host_that_kafka_gives_it(tmp_path: Path) -> None:
    all_for = creation("kafka-cluster", kind=CLUSTER, principal="User:*", host="0:0:0:0:0:0:0:1", operation=ALL)
    with RunningBroker(tmp_path / "data", **SUPER) as running, running.client() as client:
        assert ask(client, create(all_for)) == [NO_ERROR]
    options = {
        "authorizer_class_name": "StandardAuthorizer",
        "listeners": "FOUR://127.0.0.1:0,SIX://[::1]:0",
        "listener_security_protocol_map": "FOUR:PLAINTEXT,SIX:PLAINTEXT",
    }
    with RunningBroker(tmp_path / "data", **options) as running:
        with running.client("SIX") as client:
            assert ask(client, describe())[0] == NO_ERROR
        with running.client("FOUR") as client:
            assert ask(client, describe())[0] != NO_ERROR


def test_while_many_acls_change_no_more_is_allowed_than_before_or_after(running: RunningBroker) -> None:
    allowed = [creation(principal=f"User:{number}") for number in range(4000)]
    denied = creation(principal="User:bob", permission=DENY)

    def is_there(client: WireClient, principal: str) -> bool:
        return len(ask(client, describe("orders", principal=principal))) > 1

    with running, running.client() as changing, running.client() as other:
        changing.send(create(*allowed, denied))
        until(lambda: is_there(other, "User:0"))
        assert is_there(other, "User:bob")
        assert not any(row.error_code for row in changing.receive().results)
        changing.send(delete(chosen("orders", principal="User:bob"), chosen()))
        until(lambda: not is_there(other, "User:bob"))
        assert not is_there(other, "User:3999")
        assert [len(row.matching_acls) for row in changing.receive().filter_results] == [1, 4001]
