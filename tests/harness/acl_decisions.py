"""What a real Kafka decides by random ACLs, to compare the authorizer with.

    python -m tests.harness.acl_decisions      rewrites the recorded decisions

Each round sets some ACLs on topics. Two users then ask for their authorized operations on each topic (Metadata), and for a
producer id, which a principal gets that may write to any topic.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from broker.protocol.acls import CLUSTER_NAME, Operation, PatternType, Permission, ResourceType
from broker.protocol.errors import ErrorCode
from broker.protocol.messages.init_producer_id import InitProducerIdRequest
from broker.protocol.messages.metadata import MetadataRequest
from broker.security.acls.bindings import Binding
from tests.harness.acl_requests import chosen, create, creation, delete, describe
from tests.harness.requests import create_topic
from tests.harness.running import until
from tests.harness.secured_kafka import ADMIN, SecuredKafka
from tests.harness.wire_client import WireClient

RECORDED = Path(__file__).parent.parent / "broker" / "security" / "acls" / "kafka_decisions.json"
ROUNDS = 60
TOPICS = ("a", "ab", "abc", "b", "ba")
USERS = ("alice", "bob")
OPERATIONS = (
    Operation.ALL,
    Operation.READ,
    Operation.WRITE,
    Operation.CREATE,
    Operation.DELETE,
    Operation.ALTER,
    Operation.DESCRIBE,
    Operation.DESCRIBE_CONFIGS,
    Operation.ALTER_CONFIGS,
)


class Round(NamedTuple):
    """ACLs, and by user: operations on each topic as bits (None: the topic is hidden), and whether it may write somewhere."""

    bindings: list[Binding]
    operations: dict[str, list[int | None]]
    may_write: dict[str, bool]


def random_bindings(randomness: random.Random) -> list[Binding]:
    return list(
        dict.fromkeys(
            Binding(
                ResourceType.TOPIC,
                randomness.choice((PatternType.LITERAL, PatternType.PREFIXED)),
                randomness.choice((*TOPICS, "*", "*", "c")),
                randomness.choice(("User:alice", "User:bob", "User:*", "Group:alice")),
                randomness.choice(("*", "*", "127.0.0.1", "10.0.0.1")),
                randomness.choice(OPERATIONS),
                randomness.choice((Permission.ALLOW, Permission.ALLOW, Permission.DENY)),
            )
            for _ in range(randomness.randrange(1, 10))
        )
    )


def decisions(kafka: SecuredKafka, randomness: random.Random, rounds: int) -> Iterator[Round]:
    with kafka.client("SASL_PLAINTEXT", ADMIN) as admin:
        for topic in TOPICS:
            create_topic(admin, topic)
        for _ in range(rounds):
            bindings = random_bindings(randomness)
            _set(admin, bindings)
            clients = {user: kafka.client("SASL_PLAINTEXT", user) for user in USERS}
            operations = {user: _operations(client) for user, client in clients.items()}
            may_write = {user: _may_write(client) for user, client in clients.items()}
            for client in clients.values():
                client.close()
            yield Round(bindings, operations, may_write)


def _set(admin: WireClient, bindings: list[Binding]) -> None:
    # With any ACL on the cluster, allow.everyone.if.no.acl.found does not allow idempotent writes there.
    bindings = [
        *bindings,
        Binding(
            ResourceType.CLUSTER,
            PatternType.LITERAL,
            CLUSTER_NAME,
            "User:carol",
            "*",
            Operation.CREATE,
            Permission.ALLOW,
        ),
    ]
    admin.ask(delete(chosen()))
    until(lambda: not admin.ask(describe()).resources)
    creations = [
        creation(
            acl.name,
            kind=acl.kind,
            pattern=acl.pattern,
            principal=acl.principal,
            host=acl.host,
            operation=acl.operation,
            permission=acl.permission,
        )
        for acl in bindings
    ]
    assert not any(row.error_code for row in admin.ask(create(*creations)).results)
    until(lambda: sum(len(row.acls) for row in admin.ask(describe()).resources) == len(bindings))


def _operations(client: WireClient) -> list[int | None]:
    asked = [MetadataRequest.Topic(name=topic) for topic in TOPICS]
    request = MetadataRequest(topics=asked, allow_auto_topic_creation=False, include_topic_authorized_operations=True)
    found = {row.name: row for row in client.ask(request, 12).topics}
    return [None if found[topic].error_code else found[topic].topic_authorized_operations for topic in TOPICS]


def _may_write(client: WireClient) -> bool:
    request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60000)
    decided = (ErrorCode.NONE, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    answer = until(lambda: next((found for found in [client.ask(request, 4)] if found.error_code in decided), None))
    return bool(answer.error_code == ErrorCode.NONE)


def load() -> list[tuple[bool, list[Round]]]:
    """The recorded rounds, without and with allow.everyone.if.no.acl.found."""
    return [
        (
            part["allow_everyone"],
            [Round([_binding(*acl) for acl in acls], *decided) for acls, *decided in part["rounds"]],
        )
        for part in json.loads(RECORDED.read_text())
    ]


def _binding(pattern: int, name: str, principal: str, host: str, operation: int, permission: int) -> Binding:
    kind = ResourceType.TOPIC
    return Binding(kind, PatternType(pattern), name, principal, host, Operation(operation), Permission(permission))


def main() -> None:
    parts: list[dict[str, Any]] = []
    for allow_everyone in (False, True):
        option = {"allow.everyone.if.no.acl.found": str(allow_everyone).lower()}
        with SecuredKafka(option) as kafka:
            assert isinstance(kafka, SecuredKafka)
            rounds = [
                [[acl[1:] for acl in found.bindings], found.operations, found.may_write]
                for found in decisions(kafka, random.Random(allow_everyone), ROUNDS)
            ]
        parts.append({"allow_everyone": allow_everyone, "rounds": rounds})
    # A line for each round.
    RECORDED.write_text(json.dumps(parts, separators=(",", ":")).replace("],[[[", "],\n[[[") + "\n")


if __name__ == "__main__":
    main()
