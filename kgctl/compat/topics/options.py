"""The options of kafka-topics, and which of them fit together."""

from __future__ import annotations

from collections.abc import Sequence

from kgctl.compat.options import HELP, Arguments, Option, UsageError, exclude, parse, require

ACTIONS = ("create", "list", "alter", "describe", "delete")
REPORTS = (
    "under-replicated-partitions",
    "under-min-isr-partitions",
    "at-min-isr-partitions",
    "unavailable-partitions",
)
_FLAGS = ("topics-with-overrides", "if-exists", "if-not-exists", "exclude-internal")
_VALUES = (
    "bootstrap-server",
    "command-config",
    "topic",
    "topic-id",
    "config",
    "delete-config",
    "replica-assignment",
)
_WHOLE = ("partitions", "replication-factor", "partition-size-limit-per-response")
# The actions that an option belongs to.
_USED_WITH = {
    "config": ("alter", "create"),
    "partitions": ("alter", "create"),
    "replication-factor": ("create",),
    "replica-assignment": ("alter", "create"),
    "topics-with-overrides": ("describe",),
    "if-exists": ("alter", "delete", "describe"),
    "if-not-exists": ("create",),
    "exclude-internal": ("list", "describe"),
}


def parsed(arguments: Sequence[str]) -> Arguments:
    """Raises UsageError."""
    options = [
        *map(Option, (*HELP, *ACTIONS, *REPORTS, *_FLAGS)),
        *(Option(name, "value") for name in _VALUES),
        *(Option(name, "whole") for name in _WHOLE),
    ]
    found = parse(options, arguments)
    if sum(map(found.has, ACTIONS)) != 1:
        raise UsageError("Command must include exactly one action: --list, --describe, --create, --alter or --delete")
    if found.has("describe") and found.has("if-exists") and not found.has("topic", "topic-id"):
        raise UsageError("--topic or --topic-id is required to describe a topic")
    if not found.has("list", "describe"):
        require(found, "topic")
    if found.has("alter"):
        if found.has("bootstrap-server") and found.has("config"):
            raise UsageError(
                'Option combination "[bootstrap-server],[config]" can\'t be used with option "[alter]" (the kafka-configs '
                "CLI supports altering topic configs with a --bootstrap-server option)"
            )
        require(found, "partitions")
    for name, actions in _USED_WITH.items():
        exclude(found, name, [action for action in ACTIONS if action not in actions])
    if found.has("create"):
        exclude(found, "replica-assignment", ["partitions", "replication-factor"])
    for report in REPORTS:
        exclude(found, report, ["topics-with-overrides", *(action for action in ACTIONS if action != "describe")])
    exclude(found, "topics-with-overrides", REPORTS)
    return found
