"""The options of kafka-acls."""

from __future__ import annotations

from collections.abc import Sequence

from broker.protocol.acls import ResourceType
from kgctl.compat.options import HELP, Arguments, Option, UsageError, exclude, parse

RESOURCES = {
    "topic": ResourceType.TOPIC,
    "group": ResourceType.GROUP,
    "transactional-id": ResourceType.TRANSACTIONAL_ID,
    "delegation-token": ResourceType.DELEGATION_TOKEN,
    "user-principal": ResourceType.USER,
}
_ACTIONS = ("list", "add", "remove")
_ROLES = ("producer", "consumer")
_SUBJECTS = ("allow-host", "allow-principal", "deny-host", "deny-principal")
# A cluster is reached through its brokers only.
_ELSEWHERE = {"3.9": ("authorizer", "authorizer-properties", "zk-tls-config-file"), "4.1": ("bootstrap-controller",)}


def parsed(arguments: Sequence[str], dialect: str) -> Arguments:
    """Raises UsageError."""
    flags = (*_ACTIONS, *_ROLES, "cluster", "idempotent", "force")
    values = ("bootstrap-server", *RESOURCES, *_SUBJECTS, *_ELSEWHERE[dialect])
    options = [
        *map(Option, (*HELP, *flags)),
        *(Option(name, "value") for name in values),
        Option("command-config", "optional"),
        Option("principal", "optional"),
        Option("operation", "value", "All"),
        Option("resource-pattern-type", "value", "literal"),
    ]
    found = parse(options, arguments)
    if not found.has(*HELP):
        _check(found, _ELSEWHERE[dialect])
    return found


def _check(found: Arguments, elsewhere: Sequence[str]) -> None:
    refused = [name for name in elsewhere if found.has(name)]
    if refused:
        raise UsageError(f"kgctl has no --{refused[0]}; it works with --bootstrap-server")
    if sum(map(found.has, _ACTIONS)) != 1:
        raise UsageError("Command must include exactly one action: --list, --add, --remove. ")
    exclude(found, "list", (*_ROLES, *_SUBJECTS))
    for role in _ROLES:
        exclude(found, role, ("operation", "deny-principal", "deny-host"))
    if found.has("principal") and not found.has("list"):
        raise UsageError("The --principal option is only available if --list is set")
    if found.has("producer") and not found.has("topic"):
        raise UsageError("With --producer you must specify a --topic")
    if found.has("idempotent") and not found.has("producer"):
        raise UsageError("The --idempotent option is only available if --producer is set")
    is_alone = not found.has("producer")
    if found.has("consumer") and (
        not (found.has("topic") and found.has("group")) or (is_alone and found.has("cluster", "transactional-id"))
    ):
        raise UsageError(
            "With --consumer you must specify a --topic and a --group and no --cluster or --transactional-id option "
            "should be specified."
        )
