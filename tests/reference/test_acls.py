"""Our broker answers requests about ACLs as a real Kafka does."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.harness.acl_requests import ask, chosen, create, creation, delete, describe, play
from tests.harness.commandline import Kgctl
from tests.harness.reference_kafka import KafkaTools, ReferenceKafka
from tests.harness.running import RunningBroker, until
from tests.harness.secured_kafka import ADMIN, AUTHORIZER, SecuredKafka

SUPER = {"authorizer_class_name": "StandardAuthorizer", "super_users": "User:ANONYMOUS"}
STANDARD = SUPER | {"authorizer_class_name": AUTHORIZER}


@pytest.fixture(scope="module")
def kafka(tools: KafkaTools) -> Iterator[SecuredKafka]:
    with SecuredKafka() as kafka:
        assert isinstance(kafka, SecuredKafka)
        yield kafka


def test_requests_about_acls_are_answered_alike(kafka: SecuredKafka, tmp_path: Path) -> None:
    theirs = list(play(lambda: kafka.client("SASL_PLAINTEXT", ADMIN)))
    with RunningBroker(tmp_path / "data", **SUPER) as running:
        ours = list(play(running.client))
    for their, our in zip(theirs, ours, strict=True):
        assert our == their


def test_a_broker_without_an_authorizer_refuses_alike(tools: KafkaTools, tmp_path: Path) -> None:
    requests = [describe(), create(creation(), creation("")), delete(chosen())]
    with ReferenceKafka() as plain, plain.readiness_client() as client:
        theirs = [ask(client, request) for request in requests]
    with RunningBroker(tmp_path / "data") as running, running.client() as client:
        assert [ask(client, request) for request in requests] == theirs


# -- Kafka's tool and kgctl


@contextmanager
def authorizing(kind: str, path: Path) -> Iterator[str]:
    """The address of a broker with an authorizer, for which everybody is a super user."""
    if kind == "ours":
        with RunningBroker(path / "data", **SUPER) as running:
            yield "{}:{}".format(*running.address)
    else:
        with ReferenceKafka({name.replace("_", "."): value for name, value in STANDARD.items()}) as plain:
            yield plain.bootstrap_servers


@pytest.mark.parametrize("kind", ["ours", "kafka"])
def test_kafkas_tool_and_kgctl_see_and_make_the_same_acls(tools: KafkaTools, tmp_path: Path, kind: str) -> None:
    with authorizing(kind, tmp_path) as bootstrap:
        kgctl = Kgctl(bootstrap)

        def kafka_acls(*arguments: str) -> str:
            done = tools.run("acls", "--bootstrap-server", bootstrap, *arguments)
            assert (done.returncode, done.stderr) == (0, ""), done.stdout
            return done.stdout

        both = ("--producer", "--consumer", "--idempotent", "--topic", "orders", "--group", "g")
        more = ("--transactional-id", "t", "--resource-pattern-type", "prefixed", "--allow-host", "10.0.0.1")
        kafka_acls("--add", *both, *more, "--allow-principal", "User:alice")
        made = until(lambda: kgctl.rows("acls", "list"))
        assert len(made) == 8
        again = kgctl.rows("acls", "add", *both, *more, "--allow-principal", "User:alice")
        assert [row["status"] for row in again] == ["exists"] * 8

        denied = ("--topic", "*", "--deny-principal", "User:bob", "--operation", "DescribeConfigs")
        assert kgctl("acls", "add", *denied, "--execute").exit_code == 0
        until(lambda: len(kgctl.rows("acls", "list")) == 9)
        assert acls_in(kafka_acls("--list")) == {tuple(row.values()) for row in kgctl.rows("acls", "list")}
        matching = ("--topic", "orders-2", "--resource-pattern-type", "match")
        assert acls_in(kafka_acls("--list", *matching)) == {
            tuple(row.values()) for row in kgctl.rows("acls", "list", *matching)
        }
        kafka_acls("--remove", "--force", *denied)
        until(lambda: len(kgctl.rows("acls", "list")) == 8)
        assert kgctl("acls", "remove", "--principal", "User:alice", "--execute").exit_code == 0
        until(lambda: not kgctl.rows("acls", "list"))
        assert acls_in(kafka_acls("--list")) == set()


def acls_in(text: str) -> set[tuple[str, ...]]:
    """What `kafka-acls --list` prints, in the order of kgctl's columns."""
    found = set()
    for line in text.splitlines():
        resource = re.search(r"ResourcePattern\(resourceType=(\w+), name=(.*), patternType=(\w+)\)", line)
        if resource is not None:
            pattern = resource.groups()
        entry = re.search(r"\(principal=(.*), host=(.*), operation=(\w+), permissionType=(\w+)\)", line)
        if entry is not None:
            principal, host, operation, permission = entry.groups()
            found.add((*pattern, principal, permission, operation, host))
    return found
