"""Admin clients create, describe and delete ACLs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness.running import RunningBroker

FOUND = {
    ("TOPIC", "orders", "LITERAL", "User:alice", "*", "READ", "ALLOW"),
    ("GROUP", "bill", "PREFIXED", "User:bob", "10.0.0.1", "ALL", "DENY"),
}


@pytest.fixture
def bootstrap(tmp_path: Path) -> Iterator[str]:
    options = {"authorizer_class_name": "StandardAuthorizer", "super_users": "User:ANONYMOUS"}
    with RunningBroker(tmp_path / "data", **options) as running:
        yield "{}:{}".format(*running.address)


def test_librdkafka_creates_describes_and_deletes_acls(bootstrap: str) -> None:
    confluent = pytest.importorskip("confluent_kafka.admin")
    binding, chosen = confluent.AclBinding, confluent.AclBindingFilter
    types, patterns = confluent.ResourceType, confluent.ResourcePatternType
    operations, permissions = confluent.AclOperation, confluent.AclPermissionType
    kinds = {types.TOPIC: "TOPIC", types.GROUP: "GROUP"}

    def fields(acls: list[object]) -> set[tuple[str, ...]]:
        return {
            (
                kinds[acl.restype],
                acl.name,
                acl.resource_pattern_type.name,
                acl.principal,
                acl.host,
                acl.operation.name,
                acl.permission_type.name,
            )
            for acl in acls
        }

    admin = confluent.AdminClient({"bootstrap.servers": bootstrap})
    made = [
        binding(types.TOPIC, "orders", patterns.LITERAL, "User:alice", "*", operations.READ, permissions.ALLOW),
        binding(types.GROUP, "bill", patterns.PREFIXED, "User:bob", "10.0.0.1", operations.ALL, permissions.DENY),
    ]
    refused = binding(types.TOPIC, "orders", patterns.LITERAL, "alice", "*", operations.READ, permissions.ALLOW)
    for future in admin.create_acls(made, request_timeout=10).values():
        assert future.result() is None
    for future in admin.create_acls([refused], request_timeout=10).values():
        with pytest.raises(Exception, match="Could not parse principal"):
            future.result()
    everything = chosen(types.ANY, None, patterns.ANY, None, None, operations.ANY, permissions.ANY)
    assert fields(admin.describe_acls(everything, request_timeout=10).result()) == FOUND
    billing = chosen(types.GROUP, "billing", patterns.MATCH, None, None, operations.ANY, permissions.ANY)
    (deleted,) = admin.delete_acls([billing], request_timeout=10).values()
    assert {row[1] for row in fields(deleted.result())} == {"bill"}
    assert {row[1] for row in fields(admin.describe_acls(everything, request_timeout=10).result())} == {"orders"}


def test_kafka_python_creates_describes_and_deletes_acls(bootstrap: str) -> None:
    kafka = pytest.importorskip("kafka.admin")
    patterns, types = kafka.ACLResourcePatternType, kafka.ResourceType
    operations, permissions = kafka.ACLOperation, kafka.ACLPermissionType

    def fields(acls: list[object]) -> set[tuple[str, ...]]:
        return {
            (
                acl.resource_pattern.resource_type.name,
                acl.resource_pattern.resource_name,
                acl.resource_pattern.pattern_type.name,
                acl.principal,
                acl.host,
                acl.operation.name,
                acl.permission_type.name,
            )
            for acl in acls
        }

    admin = kafka.KafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        orders = kafka.ResourcePattern(types.TOPIC, "orders", patterns.LITERAL)
        bill = kafka.ResourcePattern(types.GROUP, "bill", patterns.PREFIXED)
        made = [
            kafka.ACL("User:alice", "*", operations.READ, permissions.ALLOW, orders),
            kafka.ACL("User:bob", "10.0.0.1", operations.ALL, permissions.DENY, bill),
        ]
        assert admin.create_acls(made)["failed"] == []
        anything = kafka.ResourcePatternFilter(types.ANY, None, patterns.ANY)
        everything = kafka.ACLFilter(None, None, operations.ANY, permissions.ANY, anything)
        found, error = admin.describe_acls(everything)
        assert (fields(found), error.errno) == (FOUND, 0)
        billing = kafka.ResourcePatternFilter(types.GROUP, "billing", patterns.MATCH)
        ((_, deleted, error),) = admin.delete_acls(
            [kafka.ACLFilter(None, None, operations.ANY, permissions.ANY, billing)]
        )
        assert ({acl.resource_pattern.resource_name for acl in deleted}, error.errno) == ({"bill"}, 0)
    finally:
        admin.close()
