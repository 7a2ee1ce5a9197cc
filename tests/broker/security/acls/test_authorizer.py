"""The authorizer decides as Kafka's StandardAuthorizer does: compared with a plain model, and by examples from a real Kafka."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.protocol.acls import Operation, PatternType, Permission, ResourceType
from broker.security.acls.authorizer import StandardAuthorizer
from broker.security.acls.bindings import Binding, Filter
from broker.security.acls.hosts import host_name
from tests.harness.acl_decisions import ROUNDS, TOPICS, USERS, Round, load

HOST = "127.0.0.1"
KINDS = [ResourceType.TOPIC, ResourceType.GROUP]
OPERATIONS = [
    Operation.ALL,
    Operation.READ,
    Operation.WRITE,
    Operation.DELETE,
    Operation.ALTER,
    Operation.DESCRIBE,
    Operation.DESCRIBE_CONFIGS,
    Operation.ALTER_CONFIGS,
]
NAMES = ["a", "ab", "abc", "b", "*", "*a"]
PRINCIPALS = ["User:alice", "User:bob", "User:*"]
HOSTS = [HOST, "10.0.0.1", "*"]


def acl(
    name: str = "orders",
    principal: str = "User:alice",
    operation: Operation = Operation.READ,
    permission: Permission = Permission.ALLOW,
    *,
    kind: ResourceType = ResourceType.TOPIC,
    pattern: PatternType = PatternType.LITERAL,
    host: str = "*",
) -> Binding:
    return Binding(kind, pattern, name, principal, host, operation, permission)


def authorizer(*bindings: Binding, **options: Any) -> StandardAuthorizer:
    made = StandardAuthorizer(**options)
    for binding in bindings:
        assert made.add(binding)
    return made


def may(
    made: StandardAuthorizer, operation: Operation, name: str = "orders", *, who: str = "User:alice", host: str = HOST
) -> bool:
    return made.authorize(who, host, operation, ResourceType.TOPIC, name)


# -- a model without any index


class Model:
    def __init__(self, bindings: set[Binding], *, allow_everyone: bool) -> None:
        self.bindings, self.allow_everyone = bindings, allow_everyone

    def authorize(self, principal: str, host: str, operation: Operation, kind: ResourceType, name: str) -> bool:
        on_it = [acl for acl in self.bindings if acl.kind == kind and self.applies(acl, name)]
        mine = [acl for acl in on_it if acl.principal in (principal, "User:*") and acl.host in (host, "*")]
        implying = {
            Operation.DESCRIBE: {Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER},
            Operation.DESCRIBE_CONFIGS: {Operation.ALTER_CONFIGS},
        }.get(operation, set())
        exact = {operation, Operation.ALL}
        if any(acl.permission == Permission.DENY and acl.operation in exact for acl in mine):
            return False
        if any(acl.permission == Permission.ALLOW and acl.operation in exact | implying for acl in mine):
            return True
        return not on_it and self.allow_everyone

    @staticmethod
    def applies(acl: Binding, name: str) -> bool:
        return name.startswith(acl.name) if acl.pattern == PatternType.PREFIXED else acl.name in (name, "*")

    def authorize_by_resource_type(self, principal: str, host: str, operation: Operation, kind: ResourceType) -> bool:
        if self.authorize(principal, host, operation, kind, "hardcode"):
            return True
        mine = [
            acl
            for acl in self.bindings
            if acl.kind == kind
            and acl.principal in (principal, "User:*")
            and acl.host in (host, "*")
            and acl.operation in (operation, Operation.ALL)
        ]
        denied = [acl for acl in mine if acl.permission == Permission.DENY]
        allowed = [acl for acl in mine if acl.permission == Permission.ALLOW]
        if any((acl.pattern, acl.name) == (PatternType.LITERAL, "*") for acl in denied):
            return False
        return any(
            (acl.pattern, acl.name) == (PatternType.LITERAL, "*")
            or not any(
                acl.name.startswith(other.name)
                if other.pattern == PatternType.PREFIXED
                else (acl.pattern, acl.name) == (other.pattern, other.name)
                for other in denied
            )
            for acl in allowed
        )

    def matching(self, chosen: Filter) -> set[Binding]:
        return {acl for acl in self.bindings if self.selects(chosen, acl)}

    @staticmethod
    def selects(chosen: Filter, acl: Binding) -> bool:
        wanted = {
            "kind": chosen.kind == ResourceType.ANY or chosen.kind == acl.kind,
            "principal": chosen.principal is None or chosen.principal == acl.principal,
            "host": chosen.host is None or chosen.host == acl.host,
            "operation": chosen.operation == Operation.ANY or chosen.operation == acl.operation,
            "permission": chosen.permission == Permission.ANY or chosen.permission == acl.permission,
            "pattern": chosen.pattern in (PatternType.ANY, PatternType.MATCH, acl.pattern),
            "name": chosen.name is None
            or chosen.name == acl.name
            or (chosen.pattern == PatternType.MATCH and Model.applies(acl, chosen.name)),
        }
        return all(wanted.values())


BINDINGS = st.builds(
    Binding,
    st.sampled_from(KINDS),
    st.sampled_from([PatternType.LITERAL, PatternType.PREFIXED]),
    st.sampled_from(NAMES),
    st.sampled_from(PRINCIPALS),
    st.sampled_from(HOSTS),
    st.sampled_from(OPERATIONS),
    st.sampled_from([Permission.ALLOW, Permission.DENY]),
)
FILTERS = st.builds(
    Filter,
    st.sampled_from([*KINDS, ResourceType.ANY, ResourceType.CLUSTER]),
    st.sampled_from([PatternType.ANY, PatternType.MATCH, PatternType.LITERAL, PatternType.PREFIXED]),
    st.sampled_from([*NAMES, "abcd", None]),
    st.sampled_from([*PRINCIPALS, None]),
    st.sampled_from([*HOSTS, None]),
    st.sampled_from([*OPERATIONS, Operation.ANY]),
    st.sampled_from([Permission.ALLOW, Permission.DENY, Permission.ANY]),
)


@settings(max_examples=150)
@given(
    st.lists(st.tuples(st.booleans(), BINDINGS), max_size=25),
    st.lists(FILTERS, max_size=4),
    st.booleans(),
)
def test_decisions_and_lists_are_those_of_a_plain_model(
    changes: list[tuple[bool, Binding]], filters: list[Filter], allow_everyone: bool
) -> None:
    model = Model(set(), allow_everyone=allow_everyone)
    made = StandardAuthorizer(allow_everyone=allow_everyone)
    for is_added, binding in changes:
        before = made.version
        if is_added:
            assert made.add(binding) == (binding not in model.bindings)
            model.bindings.add(binding)
        else:
            assert made.remove(binding) == (binding in model.bindings)
            model.bindings.discard(binding)
        assert made.version >= before
    assert len(made) == len(model.bindings)
    assert sorted(made.matching(Filter())) == sorted(model.bindings)
    for chosen in filters:
        found = made.matching(chosen)
        assert (set(found), len(found)) == (model.matching(chosen), len(set(found)))
    for operation in OPERATIONS:
        for kind in KINDS:
            asked = ("User:alice", HOST, operation, kind)
            assert made.authorize_by_resource_type(*asked) == model.authorize_by_resource_type(*asked)
            for name in [*NAMES, "abcd"]:
                assert made.authorize(*asked, name) == model.authorize(*asked, name), (operation, kind, name)


# -- recorded answers of a real Kafka


@pytest.mark.parametrize(("allow_everyone", "rounds"), load(), ids=["deny", "allow_everyone"])
def test_decisions_are_those_of_a_real_kafka(allow_everyone: bool, rounds: list[Round]) -> None:
    assert len(rounds) == ROUNDS
    for recorded in rounds:
        made = authorizer(*recorded.bindings, allow_everyone=allow_everyone)
        for user in USERS:
            found = [operations_of(made, f"User:{user}", topic) for topic in TOPICS]
            assert found == recorded.operations[user], recorded.bindings
            asked = (f"User:{user}", HOST, Operation.WRITE, ResourceType.TOPIC)
            assert made.authorize_by_resource_type(*asked) == recorded.may_write[user], recorded.bindings


def operations_of(made: StandardAuthorizer, principal: str, topic: str) -> int | None:
    """As Metadata shows them: None for a topic that the principal may not describe."""
    allowed = [
        operation
        for operation in Operation
        if Operation.READ <= operation <= Operation.ALTER_CONFIGS
        if operation != Operation.CLUSTER_ACTION and may(made, operation, topic, who=principal)
    ]
    return sum(1 << operation for operation in allowed) if Operation.DESCRIBE in allowed else None


# -- examples


def test_nobody_but_super_users_may_do_anything_without_acls() -> None:
    made = authorizer(super_users=["User:admin"])
    assert may(made, Operation.READ, who="User:admin")
    assert not may(made, Operation.READ)


def test_a_denial_goes_before_what_is_allowed_but_not_for_a_super_user() -> None:
    made = authorizer(
        acl("*", "User:*", Operation.ALL),
        acl(permission=Permission.DENY),
        acl(principal="User:admin", permission=Permission.DENY),
        super_users=["User:admin"],
    )
    assert not may(made, Operation.READ)
    assert may(made, Operation.READ, "others")
    assert may(made, Operation.WRITE)
    assert may(made, Operation.READ, who="User:admin")


def test_a_denied_read_does_not_deny_describe() -> None:
    made = authorizer(acl(operation=Operation.WRITE), acl(permission=Permission.DENY))
    assert may(made, Operation.DESCRIBE)
    assert not may(made, Operation.READ)


@pytest.mark.parametrize("operation", [Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER])
def test_describe_is_implied(operation: Operation) -> None:
    made = authorizer(acl(operation=operation))
    assert may(made, Operation.DESCRIBE)
    assert not may(made, Operation.DESCRIBE_CONFIGS)


def test_describe_configs_is_implied_by_alter_configs_alone() -> None:
    assert may(authorizer(acl(operation=Operation.ALTER_CONFIGS)), Operation.DESCRIBE_CONFIGS)
    assert not may(authorizer(acl(operation=Operation.ALTER)), Operation.DESCRIBE_CONFIGS)
    assert not may(authorizer(acl(operation=Operation.ALTER_CONFIGS)), Operation.DESCRIBE)


def test_everyone_may_use_only_resources_without_any_acl_if_the_option_says_so() -> None:
    made = authorizer(acl("orders", "User:bob"), acl("logs-", pattern=PatternType.PREFIXED), allow_everyone=True)
    assert may(made, Operation.WRITE, "free")
    assert not may(made, Operation.WRITE, "orders")
    assert not may(made, Operation.WRITE, "logs-1")


def test_a_prefix_counts_after_another_one_of_its_length_is_removed() -> None:
    orders, others = (acl(name, pattern=PatternType.PREFIXED) for name in ("ord", "oth"))
    made = authorizer(orders, others)
    assert made.remove(others)
    assert may(made, Operation.READ, "orders")
    assert made.remove(orders)
    assert not may(made, Operation.READ, "orders")


def test_a_host_is_compared_as_text() -> None:
    made = authorizer(acl(host="10.0.0.1"), acl("*", host="10.0.0.2", permission=Permission.DENY))
    assert may(made, Operation.READ, host="10.0.0.1")
    assert not may(made, Operation.READ, host="10.0.0.2")
    assert not may(made, Operation.READ, host=HOST)


def test_a_check_does_not_look_at_every_acl() -> None:
    made = StandardAuthorizer()
    for number in range(5000):
        made.add(acl(f"topic-{number}", f"User:{number}"))
        made.add(acl(f"prefix-{number}", f"User:{number}", pattern=PatternType.PREFIXED))
        made.add(acl("shared", f"User:{number}", Operation.WRITE))
    lookups: list[str] = []

    class Counted(str):
        __slots__ = ()

        def __hash__(self) -> int:
            lookups.append(str(self))
            return super().__hash__()

    assert made.authorize(Counted("User:7"), HOST, Operation.WRITE, ResourceType.TOPIC, "shared")
    assert made.authorize(Counted("User:7"), HOST, Operation.READ, ResourceType.TOPIC, "prefix-7-and-more")
    assert made.authorize_by_resource_type(Counted("User:9"), HOST, Operation.WRITE, ResourceType.TOPIC)
    assert len(lookups) < 60


def test_a_binding_is_stored_as_one_text() -> None:
    binding = acl("naïve*", 'User:CN=a,O="b"', host="::1", pattern=PatternType.PREFIXED)
    assert Binding.decode(binding.encode()) == binding
    for text in ("", "{}", "[]", binding.encode().replace("READ", "SING")):
        with pytest.raises(ValueError, match=r"Expecting|not an ACL"):
            Binding.decode(text)


@pytest.mark.parametrize(
    ("address", "as_java_writes_it"),
    [
        ("::1", "0:0:0:0:0:0:0:1"),
        ("2001:db8::00ff:1", "2001:db8:0:0:0:0:ff:1"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("fe80::1%lo", "fe80:0:0:0:0:0:0:1%lo"),
        ("10.0.0.1", "10.0.0.1"),
        ("*", "*"),
        ("not:an:address", "not:an:address"),
    ],
)
def test_addresses_are_compared_in_the_form_of_java(address: str, as_java_writes_it: str) -> None:
    assert host_name(address) == host_name(as_java_writes_it) == as_java_writes_it
