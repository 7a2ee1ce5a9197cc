"""`kgctl acls`: list, add and remove ACLs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Annotated, Any, TypeVar

import typer

from broker.protocol.acls import CLUSTER_NAME, Operation, PatternType, ResourceType
from broker.security.acls.hosts import host_name
from kgctl.client.admin.acl_selection import (
    CONSUMER,
    IDEMPOTENT,
    PRODUCER,
    Role,
    Selection,
    check_principal,
    likely_mistakes,
    parse_operation,
)
from kgctl.client.net.errors import BadValue, NotFound
from kgctl.commands.shared.arguments import Execute, not_empty
from kgctl.commands.shared.classic import given_options
from kgctl.commands.shared.effects import changes, reads, shows
from kgctl.commands.shared.help import examples
from kgctl.commands.shared.journaling import journaled, keep
from kgctl.commands.shared.outcome import conclude, note_dry_run
from kgctl.commands.shared.settings import settings
from kgctl.journal.items import acls_added, acls_removed
from kgctl.model.changes import PLANNED
from kgctl.render import note

acls_app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="List, add and remove ACLs: who may do what.")

Names = list[str] | None
T = TypeVar("T")


def _names(flag: str, metavar: str, help: str) -> Any:
    return typer.Option(flag, metavar=metavar, callback=not_empty, help=f"{help}; repeatable.")


Topic = Annotated[Names, _names("--topic", "TOPIC", "Topic, or * for all topics")]
Group = Annotated[Names, _names("--group", "GROUP", "Consumer group, or * for all groups")]
Transaction = Annotated[Names, _names("--transactional-id", "ID", "Transactional id, or * for all of them")]
Cluster = Annotated[bool, typer.Option("--cluster", help="The cluster as a whole.")]
Token = Annotated[Names, _names("--delegation-token", "ID", "Delegation token, or * for all of them")]
User = Annotated[Names, _names("--user-principal", "USER", "User, such as User:alice, as a resource")]
Allow = Annotated[
    Names, _names("--allow-principal", "TYPE:NAME", "Principal to allow: User:alice, or User:* for everybody")
]
Deny = Annotated[Names, _names("--deny-principal", "TYPE:NAME", "Principal to deny, whatever else allows it")]
AllowHost = Annotated[Names, _names("--allow-host", "IP", "Address of the principals to allow")]
DenyHost = Annotated[Names, _names("--deny-host", "IP", "Address of the principals to deny")]
Operations = Annotated[Names, _names("--operation", "NAME", "Read, Write, DescribeConfigs, ... or All")]
AddPattern = Annotated[
    str, typer.Option("--resource-pattern-type", metavar="TYPE", help="literal, or prefixed: names that begin so.")
]
FilterPattern = Annotated[
    str,
    typer.Option(
        "--resource-pattern-type",
        metavar="TYPE",
        help="literal, prefixed, any (of both), or match: every pattern that applies to the name.",
    ),
]
Producer = Annotated[
    bool, typer.Option("--producer", help="What a producer needs: Write, Create and Describe on the topics.")
]
Consumer = Annotated[
    bool, typer.Option("--consumer", help="What a consumer needs: Read and Describe on topics, Read on groups.")
]
Idempotent = Annotated[
    bool, typer.Option("--idempotent", help="With --producer: IdempotentWrite on the cluster, for brokers before 3.0.")
]


TOOL = "kafka-acls.sh"
# Parameters whose options kafka-acls.sh has, too.
RESOURCES = ("topic", "group", "transactional_id", "cluster", "delegation_token", "user_principal")
RULES = (
    "resource_pattern_type",
    "allow_principal",
    "deny_principal",
    "allow_host",
    "deny_host",
    "operation",
    "producer",
    "consumer",
    "idempotent",
)


@acls_app.command(
    "list",
    epilog=examples(
        "kgctl acls list",
        "kgctl acls list --principal User:alice -o json",
        "kgctl acls list --topic orders --resource-pattern-type match",
    ),
)
@shows("acls")
@reads
def list_acls(
    ctx: typer.Context,
    topic: Topic = None,
    group: Group = None,
    transactional_id: Transaction = None,
    cluster: Cluster = False,
    delegation_token: Token = None,
    user_principal: User = None,
    resource_pattern_type: FilterPattern = "literal",
    principal: Annotated[Names, _names("--principal", "TYPE:NAME", "Only ACLs of this principal")] = None,
) -> None:
    """List ACLs, by resource.

    Without a resource, the ACLs of all resources.
    """
    chosen = Selection(
        _resources(topic, group, transactional_id, cluster, delegation_token, user_principal),
        _pattern(resource_pattern_type, PatternType.ANY),
        anyhow=_principals("--principal", principal),
    )
    settings(ctx).explain_as(TOOL, "--list", *given_options(ctx, *RESOURCES, "resource_pattern_type", "principal"))
    with settings(ctx).admin() as admin:
        rows = admin.list_acls(chosen.filters())
    settings(ctx).show(rows, kind="acls")


@acls_app.command(
    epilog=examples(
        "kgctl acls add --topic orders --allow-principal User:al --operation Read",
        "kgctl acls add --producer --topic t --allow-principal User:app --execute",
        "kgctl acls add --consumer --topic t --group g --allow-principal User:app",
        "kgctl acls add --cluster --deny-principal User:bob --operation Alter",
    )
)
@shows("acl-changes")
@journaled
@changes(when="execute")
def add(
    ctx: typer.Context,
    topic: Topic = None,
    group: Group = None,
    transactional_id: Transaction = None,
    cluster: Cluster = False,
    delegation_token: Token = None,
    user_principal: User = None,
    resource_pattern_type: AddPattern = "literal",
    allow_principal: Allow = None,
    deny_principal: Deny = None,
    allow_host: AllowHost = None,
    deny_host: DenyHost = None,
    operation: Operations = None,
    producer: Producer = False,
    consumer: Consumer = False,
    idempotent: Idempotent = False,
    execute: Execute = False,
) -> None:
    """Add ACLs. They are in force at once, also for connected clients.

    Each principal gets each operation on each resource. Without --operation, all operations; without a host, from all hosts.
    """
    resources = _resources(topic, group, transactional_id, cluster, delegation_token, user_principal)
    chosen = Selection(
        resources,
        _pattern(resource_pattern_type),
        _principals("--allow-principal", allow_principal),
        _principals("--deny-principal", deny_principal),
        (),
        list(map(host_name, allow_host or ())),
        list(map(host_name, deny_host or ())),
        _operations(operation),
        _roles(resources, producer, consumer, idempotent, operation, deny_principal, deny_host),
    )
    if not resources:
        ctx.fail("Name resources: --topic, --group, --transactional-id, --cluster, ...")
    if not (allow_principal or deny_principal):
        ctx.fail("Name principals with --allow-principal or --deny-principal.")
    for principals, hosts, flag in ((allow_principal, allow_host, "allow"), (deny_principal, deny_host, "deny")):
        if hosts and not principals:
            raise typer.BadParameter(f"It needs --{flag}-principal.", param_hint=f"'--{flag}-host'")
    bindings = _usage(chosen.bindings, "--operation")
    for sentence in likely_mistakes(resources, [*(allow_host or ()), *(deny_host or ())]):
        note(f"Warning: {sentence}")
    settings(ctx).explain_as(TOOL, "--add", *given_options(ctx, *RESOURCES, *RULES))
    with settings(ctx).admin() as admin:
        rows = admin.plan_acl_addition(bindings)
        if execute:
            plan = rows
            rows = keep(settings(ctx), admin, "acls add", lambda: acls_added(plan), lambda: admin.add_acls(plan))
    settings(ctx).show(rows, kind="acl-changes")
    note_dry_run(execute, [row.error for row in rows if row.status == PLANNED])
    conclude((row.error for row in rows), len(rows))


@acls_app.command(
    epilog=examples(
        "kgctl acls remove --topic orders --operation Read --execute",
        "kgctl acls remove --consumer --topic t --group g --principal User:app",
        "kgctl acls remove --principal User:bob",
    )
)
@shows("acl-changes")
@journaled
@changes(when="execute")
def remove(
    ctx: typer.Context,
    topic: Topic = None,
    group: Group = None,
    transactional_id: Transaction = None,
    cluster: Cluster = False,
    delegation_token: Token = None,
    user_principal: User = None,
    resource_pattern_type: FilterPattern = "literal",
    principal: Annotated[Names, _names("--principal", "TYPE:NAME", "What this principal is allowed and denied")] = None,
    allow_principal: Allow = None,
    deny_principal: Deny = None,
    allow_host: AllowHost = None,
    deny_host: DenyHost = None,
    operation: Operations = None,
    producer: Producer = False,
    consumer: Consumer = False,
    idempotent: Idempotent = False,
    execute: Execute = False,
) -> None:
    """Remove ACLs. This is in force at once, also for connected clients.

    Removes every ACL that fits all that is given: without a principal, host or operation, those of every principal, host
    or operation. The plan shows which.
    """
    resources = _resources(topic, group, transactional_id, cluster, delegation_token, user_principal)
    chosen = Selection(
        resources,
        _pattern(resource_pattern_type, PatternType.ANY),
        _principals("--allow-principal", allow_principal),
        _principals("--deny-principal", deny_principal),
        _principals("--principal", principal),
        list(map(host_name, allow_host or ())),
        list(map(host_name, deny_host or ())),
        _operations(operation),
        _roles(resources, producer, consumer, idempotent, operation, deny_principal, deny_host),
    )
    if not (resources or principal or allow_principal or deny_principal):
        ctx.fail("Name resources with --topic, --group, ..., or principals with --principal.")
    filters = _usage(chosen.filters, "--operation")
    if not principal:
        settings(ctx).explain_as(TOOL, "--remove", *given_options(ctx, *RESOURCES, *RULES))
    with settings(ctx).admin() as admin:
        rows = admin.plan_acl_removal(filters)
        if not rows:
            raise NotFound("no ACL fits what is given")
        if execute:
            plan = rows
            rows = keep(
                settings(ctx), admin, "acls remove", lambda: acls_removed(plan), lambda: admin.remove_acls(plan)
            )
    settings(ctx).show(rows, kind="acl-changes")
    note_dry_run(execute, [row.error for row in rows])
    conclude((row.error for row in rows), len(rows))


def _resources(
    topics: Names, groups: Names, transactions: Names, cluster: bool, tokens: Names, users: Names
) -> list[tuple[ResourceType, str]]:
    given = {
        ResourceType.TOPIC: topics,
        ResourceType.GROUP: groups,
        ResourceType.TRANSACTIONAL_ID: transactions,
        ResourceType.CLUSTER: [CLUSTER_NAME] if cluster else None,
        ResourceType.DELEGATION_TOKEN: tokens,
        ResourceType.USER: users,
    }
    return [(kind, name) for kind, names in given.items() for name in names or ()]


def _pattern(text: str, *more: PatternType) -> PatternType:
    known = [PatternType.LITERAL, PatternType.PREFIXED, *more, *([PatternType.MATCH] if more else [])]
    for found in known:
        if found.name == text.upper():
            return found
    names = ", ".join(found.name.lower() for found in known)
    raise typer.BadParameter(f"{text!r} is not one of {names}.", param_hint="'--resource-pattern-type'")


def _principals(option: str, given: Names) -> list[str]:
    return [_usage(partial(check_principal, text), option) for text in given or ()]


def _operations(given: Names) -> list[Operation]:
    return [_usage(partial(parse_operation, text), "--operation") for text in given or ()]


def _usage(make: Callable[[], T], option: str) -> T:
    """The value, or the error of a wrong option."""
    try:
        return make()
    except BadValue as error:
        raise typer.BadParameter(f"{error}.", param_hint=f"'{option}'") from None


def _roles(
    resources: list[tuple[ResourceType, str]],
    producer: bool,
    consumer: bool,
    idempotent: bool,
    operations: Names,
    denied: Names,
    denied_hosts: Names,
) -> list[Role]:
    """The roles that are given; a role fixes the operations and what kinds of resources may be named."""
    if idempotent and not producer:
        raise typer.BadParameter("It needs --producer.", param_hint="'--idempotent'")
    if not (producer or consumer):
        return []
    roles: list[Role] = [
        *([PRODUCER] if producer else []),
        *([CONSUMER] if consumer else []),
        *([IDEMPOTENT] if idempotent else []),
    ]
    hint = " and ".join(f"'--{name}'" for name, given in (("producer", producer), ("consumer", consumer)) if given)
    if operations or denied or denied_hosts:
        raise typer.BadParameter(
            "It allows fixed operations: give no --operation, --deny-principal or --deny-host.", param_hint=hint
        )
    kinds = {kind for kind, _ in resources}
    if ResourceType.TOPIC not in kinds or (consumer and ResourceType.GROUP not in kinds):
        needed = "--topic and --group" if consumer else "--topic"
        raise typer.BadParameter(f"It needs {needed}.", param_hint=hint)
    for kind in sorted(kinds):
        if not any(kind in role for role in roles):
            raise typer.BadParameter(f"It allows nothing on resources of type {kind.name}.", param_hint=hint)
    return roles
