"""Our broker answers requests about ACLs as a real Kafka does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness.acl_requests import ask, chosen, create, creation, delete, describe, play
from tests.harness.reference_kafka import KafkaTools, ReferenceKafka
from tests.harness.running import RunningBroker
from tests.harness.secured_kafka import ADMIN, SecuredKafka

SUPER = {"authorizer_class_name": "StandardAuthorizer", "super_users": "User:ANONYMOUS"}


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
