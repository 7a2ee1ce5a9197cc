"""The ACLs on which kafka-acls and `kgctl compat kafka-acls` are compared, and the invocations."""

from __future__ import annotations

import re
from dataclasses import asdict

from broker.protocol.acls import CLUSTER_NAME, Operation, PatternType, Permission, ResourceType
from broker.security.acls.bindings import Binding, Filter
from kgctl.model.acls import AclChange, AclRow
from tests.harness.clusters import Cluster
from tests.harness.commandline import Kgctl
from tests.harness.compat_state import Case

_LITERAL, _ALLOW, _ANY_HOST = PatternType.LITERAL, Permission.ALLOW, "*"
ACLS = [
    Binding(ResourceType.TOPIC, _LITERAL, "t", "User:a", _ANY_HOST, Operation.READ, _ALLOW),
    Binding(ResourceType.TOPIC, PatternType.PREFIXED, "p-", "User:b", _ANY_HOST, Operation.ALTER, Permission.DENY),
    Binding(ResourceType.CLUSTER, _LITERAL, CLUSTER_NAME, "User:a", _ANY_HOST, Operation.IDEMPOTENT_WRITE, _ALLOW),
    Binding(ResourceType.TRANSACTIONAL_ID, _LITERAL, "x", "User:b", "10.0.0.1", Operation.ALL, _ALLOW),
    Binding(ResourceType.GROUP, _LITERAL, "g", "User:b", "10.0.0.1", Operation.ALL, _ALLOW),
]
AUTHORIZED = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
CASES: list[Case] = [
    ["--list"],
    ["--list", "--topic", "t"],
    ["--list", "--topic", "p-x", "--resource-pattern-type", "match"],
    ["--list", "--cluster"],
    ["--list", "--principal", "User:a"],
    ["--list", "--principal", "User:a", "--principal", "User:c", "--topic", "t"],
    ["--list", "--transactional-id", "x"],
    ["--list", "--topic", "absent"],
    ["--list", "--add"],
    ["--list", "--producer"],
    ["--list", "--bogus"],
    ["--list", "--topic", "t", "--resource-pattern-type", "sideways"],
    ["--list", "--principal", "nobody"],
    ["--add", "--topic", "t"],
    ["--add", "--allow-principal", "User:a"],
    ["--add", "--topic", "t", "--allow-principal", "nobody"],
    ["--add", "--topic", "t", "--allow-principal", "User:a", "--operation", "Dance"],
    ["--add", "--topic", "t", "--allow-principal", "User:a", "--operation", "any"],
    ["--add", "--topic", "t", "--allow-principal", "User:a", "--operation", "Describe_Configs"],
    ["--add", "--topic", "t", "--allow-principal", "User:a", "--resource-pattern-type", "match"],
    ["--add", "--topic", "", "--allow-principal", "User:a"],
    ["--add", "--topic", "t", "--principal", "User:a"],
    ["--add", "--producer", "--allow-principal", "User:a"],
    ["--add", "--producer", "--topic", "t", "--operation", "Read", "--allow-principal", "User:a"],
    ["--add", "--idempotent", "--topic", "t", "--allow-principal", "User:a"],
    ["--add", "--consumer", "--topic", "t", "--allow-principal", "User:a"],
    ["--add", "--consumer", "--topic", "t", "--group", "g", "--cluster", "--allow-principal", "User:a"],
    ["--remove"],
    ["--add", "--remove", "--topic", "t"],
]

# Without an answer on stdin, Kafka 4.1 reads from the terminal only.
CHANGES: list[Case] = [
    ["--add", "--topic", "t", "--allow-principal", "User:a", "--operation", "Read"],
    ["--add", "--topic", "n", "--topic", "m", "--allow-principal", "User:a", "--operation", "describeCONFIGS"],
    ["--add", "--group", "g", "--deny-principal", "User:b", "--deny-host", "10.0.0.2", "--deny-host", "10.0.0.3"],
    ["--add", "--cluster", "--allow-principal", "User:a", "--operation", "ClusterAction", "--operation", "Alter"],
    ["--add", "--delegation-token", "d", "--user-principal", "User:u", "--allow-principal", "User:c"],
    ["--add", "--producer", "--topic", "p-", "--allow-principal", "User:a", "--resource-pattern-type", "PREFIXED"],
    ["--add", "--producer", "--idempotent", "--topic", "t", "--transactional-id", "x", "--allow-principal", "User:a"],
    [
        "--add",
        "--consumer",
        "--topic",
        "t",
        "--group",
        "g",
        "--allow-principal",
        "User:a",
        "--allow-principal",
        "User:b",
    ],
    ["--add", "--producer", "--consumer", "--topic", "t", "--group", "g", "--allow-principal", "User:a"],
    ["--remove", "--force", "--topic", "t"],
    ["--remove", "--force", "--topic", "t", "--operation", "Dance"],
    ["--remove", "--force", "--topic", "t", "--allow-principal", "User:a", "--operation", "Read"],
    ["--remove", "--force", "--topic", "p-x", "--resource-pattern-type", "match"],
    ["--remove", "--force", "--topic", "p-", "--resource-pattern-type", "any"],
    ["--remove", "--force", "--consumer", "--topic", "t", "--group", "g", "--allow-principal", "User:a"],
    ["--remove", "--force", "--topic", "absent", "--transactional-id", "x"],
]
QUESTIONS: list[tuple[Case, str]] = [
    (["--remove", "--topic", "t"], "y\n"),
    (["--remove", "--topic", "t"], "Y\n"),
    (["--remove", "--topic", "t"], "n\n"),
    (["--remove", "--topic", "t"], "yes\n"),
    (["--remove", "--topic", "t", "--allow-principal", "User:a", "--operation", "Read"], "y\n"),
    (["--remove", "--topic", "t", "--allow-principal", "User:a", "--operation", "Read"], "\n"),
]


def restored(cluster: Cluster) -> list[AclRow]:
    """The ACLs of the cluster before it has those of the comparison again, and no others."""
    with Kgctl(cluster.bootstrap_servers).admin() as admin:
        found, plan = admin.list_acls([Filter()]), admin.plan_acl_addition(ACLS)
        admin.add_acls(plan)
        wanted = {_row(change) for change in plan}
        admin.remove_acls([AclChange(**asdict(row)) for row in found if row not in wanted])
        return found


def _row(change: AclChange) -> AclRow:
    fields = asdict(change)
    return AclRow(**{name: fields[name] for name in AclRow.__dataclass_fields__})


def shape(text: str) -> str:
    """The output with its ACLs in an order of their own, and without stack traces."""
    text = re.sub(r"(?m)^(\tat |Caused by|\t\.\.\. ).*\n", "", text)
    acl = r"\(principal=.*?permissionType=\w+\)"
    acls = sorted(re.findall(acl, text))
    parts = re.split(r"(?m)^(?=Current|Adding|Are you)", re.sub(rf"\t{acl}", "\t", text))
    return "".join([*sorted(parts), *acls])
