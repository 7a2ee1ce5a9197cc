"""The clusters that the matrix runs on: this broker, and a real Kafka."""

from __future__ import annotations

from pathlib import Path

from tests.harness.authorization.cases import CASES
from tests.harness.authorization.matrix import ADMIN, ANONYMOUS, Answers, names, prepare, run
from tests.harness.running import RunningBroker
from tests.harness.sasl_conversations import MODULES
from tests.harness.secured_kafka import SecuredKafka, authenticate_plain
from tests.harness.wire_client import WireClient

PASSWORD = "a-password"
KAFKA_CASES = tuple(case for case in CASES if not case.is_native)


def on_this_broker(data_dir: Path) -> Answers:
    with secured_broker(data_dir, *names()) as broker:
        with connect_as(broker, ADMIN) as admin:
            world = prepare(admin)
        return run(lambda principal: connect_as(broker, principal), world)


def on_kafka() -> Answers:
    users = {name.removeprefix("User:"): PASSWORD for name in names() if name != ADMIN}
    with SecuredKafka(users=users) as kafka:

        def connect(principal: str) -> WireClient:
            if principal == ANONYMOUS:
                return kafka.client("PLAINTEXT")
            return kafka.client("SASL_SSL", principal.removeprefix("User:"))

        with connect(ADMIN) as admin:
            world = prepare(admin)
        return run(connect, world, KAFKA_CASES)


def secured_broker(data_dir: Path, *principals: str, **options: str) -> RunningBroker:
    """A broker with StandardAuthorizer, on which these principals can authenticate, and a super user."""
    users = " ".join(f'user_{name.removeprefix("User:")}="{PASSWORD}"' for name in {ADMIN, *principals})
    secured = {
        "listeners": "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": f"{MODULES}.plain.PlainLoginModule required {users};",
        "authorizer.class.name": "StandardAuthorizer",
        "super.users": ADMIN,
    }
    return RunningBroker(data_dir, **secured | options)


def connect_as(broker: RunningBroker, principal: str) -> WireClient:
    """A connection of this principal."""
    if principal == ANONYMOUS:
        return broker.client("PLAINTEXT")
    client = broker.client("SASL_PLAINTEXT")
    authenticate_plain(client, principal.removeprefix("User:"), PASSWORD)
    return client
