"""`kgctl acls` on a broker with an authorizer."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kgctl.model.acls import AclRow
from kgctl.render.fitting import fit
from kgctl.render.layouts import LAYOUTS
from tests.harness.commandline import Kgctl
from tests.harness.running import RunningBroker

Acl = tuple[str, ...]


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    options = {"authorizer_class_name": "StandardAuthorizer", "super_users": "User:ANONYMOUS"}
    with RunningBroker(tmp_path_factory.mktemp("acls") / "data", **options) as running:
        yield "{}:{}".format(*running.address)


@pytest.fixture
def kgctl(address: str) -> Iterator[Kgctl]:
    kgctl = Kgctl(address)
    yield kgctl
    for principal in ("User:alice", "User:bob", "User:*"):
        kgctl("acls", "remove", "--principal", principal, "--execute")
    assert listed(kgctl) == []


def acls_of(rows: list[dict[str, str]]) -> list[Acl]:
    keys = ("resource_type", "resource", "pattern_type", "principal", "permission", "operation", "host")
    return [tuple(row[key] for key in keys) for row in rows]


def listed(kgctl: Kgctl, *arguments: object) -> list[Acl]:
    return acls_of(kgctl.rows("acls", "list", *arguments))


def add(kgctl: Kgctl, *arguments: object) -> None:
    done = kgctl("acls", "add", *arguments, "--execute")
    assert (done.exit_code, done.stderr) == (0, "")


def topic(name: str, principal: str, operation: str, *, permission: str = "ALLOW", host: str = "*") -> Acl:
    return "TOPIC", name, "LITERAL", principal, permission, operation, host


def test_acls_are_planned_added_listed_and_removed(kgctl: Kgctl) -> None:
    what = ("--topic", "orders", "--allow-principal", "User:alice", "--operation", "Read", "--operation", "Write")
    planned = kgctl("acls", "add", *what)
    assert planned.exit_code == 0
    assert planned.stdout.splitlines() == [
        "TYPE  RESOURCE        PATTERN  PRINCIPAL       PERMISSION OPERATION HOST STATUS",
        "TOPIC orders          LITERAL  User:alice      ALLOW      READ      *    planned",
        "TOPIC orders          LITERAL  User:alice      ALLOW      WRITE     *    planned",
    ]
    assert "Dry run: nothing was changed. Add --execute to apply the plan." in planned.stderr
    assert listed(kgctl) == []
    add(kgctl, *what[:-2])
    rows = kgctl.rows("acls", "add", *what, "--execute")
    assert [(row["operation"], row["status"]) for row in rows] == [("READ", "exists"), ("WRITE", "done")]
    again = kgctl("acls", "add", *what)
    assert (again.exit_code, again.stderr) == (0, "Dry run: nothing was changed. There is nothing to do.\n")
    assert listed(kgctl) == [topic("orders", "User:alice", "READ"), topic("orders", "User:alice", "WRITE")]
    assert [row["status"] for row in kgctl.rows("acls", "remove", *what)] == ["planned"] * 2
    assert [row["status"] for row in kgctl.rows("acls", "remove", *what[:-2], "--execute")] == ["done"]
    assert listed(kgctl) == [topic("orders", "User:alice", "WRITE")]


def test_a_producer_and_a_consumer_get_what_kafkas_tool_gives_them(kgctl: Kgctl) -> None:
    both = ("--producer", "--consumer", "--idempotent", "--topic", "orders", "--group", "g", "--transactional-id", "t")
    add(kgctl, *both, "--allow-principal", "User:alice", "--allow-host", "10.0.0.1")
    assert listed(kgctl) == [
        ("CLUSTER", "kafka-cluster", "LITERAL", "User:alice", "ALLOW", "IDEMPOTENT_WRITE", "10.0.0.1"),
        ("GROUP", "g", "LITERAL", "User:alice", "ALLOW", "READ", "10.0.0.1"),
        *(topic("orders", "User:alice", name, host="10.0.0.1") for name in ("CREATE", "DESCRIBE", "READ", "WRITE")),
        ("TRANSACTIONAL_ID", "t", "LITERAL", "User:alice", "ALLOW", "DESCRIBE", "10.0.0.1"),
        ("TRANSACTIONAL_ID", "t", "LITERAL", "User:alice", "ALLOW", "WRITE", "10.0.0.1"),
    ]
    removed = kgctl.rows("acls", "remove", "--consumer", "--topic", "orders", "--group", "g")
    assert [(row["resource_type"], row["operation"]) for row in removed] == [
        ("GROUP", "READ"),
        ("TOPIC", "DESCRIBE"),
        ("TOPIC", "READ"),
    ]


def test_prefixes_denials_and_hosts_are_added_and_found_by_match(kgctl: Kgctl) -> None:
    add(kgctl, "--topic", "ord", "--resource-pattern-type", "prefixed", "--deny-principal", "User:bob")
    add(kgctl, "--topic", "*", "--group", "*", "--allow-principal", "User:*", "--operation", "describe")
    add(
        kgctl, "--topic", "other", "--allow-principal", "User:bob", "--deny-principal", "User:bob", "--deny-host", "::1"
    )
    everything = listed(kgctl)
    assert everything == [
        ("GROUP", "*", "LITERAL", "User:*", "ALLOW", "DESCRIBE", "*"),
        topic("*", "User:*", "DESCRIBE"),
        ("TOPIC", "ord", "PREFIXED", "User:bob", "DENY", "ALL", "*"),
        topic("other", "User:bob", "ALL"),
        topic("other", "User:bob", "ALL", permission="DENY", host="0:0:0:0:0:0:0:1"),
    ]
    assert listed(kgctl, "--topic", "orders", "--resource-pattern-type", "match") == everything[1:3]
    assert listed(kgctl, "--topic", "orders") == []
    assert listed(kgctl, "--topic", "ord", "--resource-pattern-type", "ANY") == [everything[2]]
    assert listed(kgctl, "--principal", "User:bob", "--principal", "User:carol") == everything[2:]
    assert listed(kgctl, "--group", "*", "--topic", "*") == everything[:2]
    denied = kgctl.rows("acls", "remove", "--topic", "other", "--deny-host", "::1")
    assert acls_of(denied) == [everything[4]]
    assert acls_of(kgctl.rows("acls", "remove", "--topic", "other", "--allow-principal", "User:bob")) == [everything[3]]
    assert acls_of(kgctl.rows("acls", "remove", "--principal", "User:bob", "--operation", "All")) == everything[2:]


@pytest.mark.parametrize(
    ("arguments", "warning"),
    [
        (
            ("--topic", "ord*"),
            "Warning: topic 'ord*': only a lone * stands for all names; for those that begin with 'ord' give",
        ),
        (("--topic", "orders", "--allow-host", "app-1"), "Warning: host 'app-1' is not an IP address;"),
    ],
)
def test_acls_that_match_nothing_are_added_with_a_warning(
    kgctl: Kgctl, arguments: tuple[str, ...], warning: str
) -> None:
    done = kgctl("acls", "add", *arguments, "--allow-principal", "User:alice", "--operation", "Read", "--execute")
    assert done.exit_code == 0
    assert done.stderr.startswith(warning)
    assert done.stderr.count("\n") == 1


def test_a_removal_that_finds_nothing_exits_with_5(kgctl: Kgctl) -> None:
    result = kgctl("acls", "remove", "--topic", "none", "--execute")
    assert (result.exit_code, result.stderr) == (5, "Error: no ACL fits what is given\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["add"], "Name resources"),
        (["add", "--topic", "t"], "Name principals"),
        (["add", "--topic", "t", "--allow-principal", "alice"], "'alice' is not a principal such as User:alice"),
        (["add", "--topic", "t", "--allow-principal", "User:"], "is not a principal"),
        (["add", "--topic", "", "--allow-principal", "User:a"], "an empty name"),
        (
            ["add", "--topic", "t", "--allow-principal", "User:a", "--operation", "Sing"],
            "'Sing' is not one of All, Read",
        ),
        (
            ["add", "--group", "g", "--allow-principal", "User:a", "--operation", "Write"],
            "have no operation Write, only",
        ),
        (
            ["add", "--topic", "t", "--resource-pattern-type", "match", "--allow-principal", "User:a"],
            "literal, prefixed.",
        ),
        (["add", "--topic", "t", "--allow-principal", "User:a", "--deny-host", "*"], "It needs --deny-principal"),
        (["add", "--producer", "--group", "g", "--allow-principal", "User:a"], "It needs --topic"),
        (["add", "--consumer", "--topic", "t", "--allow-principal", "User:a"], "It needs --topic and --group"),
        (["add", "--consumer", "--topic", "t", "--group", "g", "--cluster", "--allow-principal", "User:a"], "CLUSTER"),
        (["add", "--producer", "--topic", "t", "--group", "g", "--allow-principal", "User:a"], "of type GROUP"),
        (["add", "--producer", "--topic", "t", "--deny-principal", "User:a"], "fixed operations"),
        (["add", "--idempotent", "--topic", "t", "--allow-principal", "User:a"], "It needs --producer"),
        (["remove"], "Name resources"),
        (["list", "--principal", "bob"], "not a principal"),
    ],
)
def test_options_that_do_not_fit_are_a_usage_error(kgctl: Kgctl, arguments: list[str], message: str) -> None:
    result = kgctl("acls", *arguments)
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.split())


def test_a_cluster_without_an_authorizer_exits_with_6_and_says_so(tmp_path: Path) -> None:
    with RunningBroker(tmp_path / "data") as running:
        kgctl = Kgctl("{}:{}".format(*running.address))
        for arguments in (["list"], ["add", "--topic", "t", "--allow-principal", "User:a", "--execute"]):
            result = kgctl("acls", *arguments)
            assert (result.exit_code, result.stdout) == (6, "")
            assert result.stderr.startswith("Error: ACLs: the cluster has no authorizer (option authorizer.class.name)")


def test_a_principal_that_may_not_see_acls_exits_with_7_and_the_operation(tmp_path: Path) -> None:
    with RunningBroker(tmp_path / "data", authorizer_class_name="StandardAuthorizer") as running:
        result = Kgctl("{}:{}".format(*running.address))("acls", "list")
    expected = "Error: ACLs: not authorised for DESCRIBE on the cluster (CLUSTER_AUTHORIZATION_FAILED)\n"
    assert (result.exit_code, result.stderr) == (7, expected)


def test_a_principal_that_may_only_see_acls_is_told_what_it_needs_to_change_them(tmp_path: Path) -> None:
    options = {"authorizer_class_name": "StandardAuthorizer", "super_users": "User:ANONYMOUS"}
    with RunningBroker(tmp_path / "data", **options) as running:
        kgctl = Kgctl("{}:{}".format(*running.address))
        add(kgctl, "--cluster", "--allow-principal", "User:ANONYMOUS", "--operation", "Describe")
    del options["super_users"]
    with RunningBroker(tmp_path / "data", **options) as running:
        kgctl = Kgctl("{}:{}".format(*running.address))
        result = kgctl("acls", "remove", "--cluster", "--execute")
    expected = (
        "Error: ACL ALLOW DESCRIBE on CLUSTER 'kafka-cluster' for User:ANONYMOUS: "
        "not authorised for ALTER on the cluster (CLUSTER_AUTHORIZATION_FAILED)\n"
    )
    assert (result.exit_code, result.stderr) == (7, expected)


def test_eighty_columns_hold_an_acl() -> None:
    rows = [
        AclRow("TOPIC", "orders", "LITERAL", "User:CN=payments,OU=shop,O=example", "ALLOW", "READ", "*"),
        AclRow("TRANSACTIONAL_ID", "payments-", "PREFIXED", "User:bob", "DENY", "DESCRIBE", "10.20.30.40"),
    ]
    found = fit(rows, LAYOUTS["acls"], verbose=False, limit=80)
    assert found.text == (
        "TYPE             RESOURCE  PATTERN  PRINCIPAL    PERMISSION OPERATION HOST\n"
        "TOPIC            orders    LITERAL  User:C…ample ALLOW      READ      *\n"
        "TRANSACTIONAL_ID payments- PREFIXED User:bob     DENY       DESCRIBE  10.20…0.40\n"
    )
    assert (found.left_out, found.shortened) == ((), True)


def test_json_has_the_keys_that_scripts_rely_on(kgctl: Kgctl) -> None:
    add(kgctl, "--topic", "orders", "--allow-principal", "User:alice")
    row = {
        "resource_type": "TOPIC",
        "resource": "orders",
        "pattern_type": "LITERAL",
        "principal": "User:alice",
        "permission": "ALLOW",
        "operation": "ALL",
        "host": "*",
    }
    assert kgctl.rows("acls", "list") == [row]
    assert kgctl.rows("acls", "remove", "--topic", "orders") == [row | {"status": "planned", "error": None}]
