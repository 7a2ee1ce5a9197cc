"""The options of kafka-consumer-groups, and which of them fit together."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kgctl.compat.consumer_groups.release import Release
from kgctl.compat.options import HELP, Arguments, Option, UsageError, exclude, listed, parse

SUMMARY = (
    "This tool helps to list all consumer groups, describe a consumer group, delete consumer group info, or reset consumer "
    "group offsets."
)
STRATEGIES = (
    "to-offset",
    "to-current",
    "to-datetime",
    "from-file",
    "by-duration",
    "to-earliest",
    "to-latest",
    "shift-by",
)


def options_of(release: Release) -> list[Option]:
    found = [
        *map(Option, HELP),
        *(Option(name, "value") for name in ("bootstrap-server", "command-config", "group", "topic")),
        *(Option(name) for name in ("all-topics", "all-groups", "dry-run", "execute", "export")),
        *(Option(name) for name in release.actions if name != "validate-regex"),
        Option("timeout", "number", str(release.timeout_ms)),
        *(Option(name) for name in ("to-earliest", "to-latest", "to-current")),
        *(Option(name, "value") for name in ("from-file", "to-datetime", "by-duration")),
        *(Option(name, "number") for name in ("to-offset", "shift-by")),
        *(Option(name, only_with=("describe",)) for name in ("members", "verbose", "offsets")),
        Option("state", "optional", only_with=("describe", "list")),
        Option("type", "optional", only_with=("list",)),
    ]
    return found + [Option(name, "value") for name in release.actions if name == "validate-regex"]


def parsed(arguments: Sequence[str], release: Release, err: Callable[[str], None]) -> Arguments:
    """Raises UsageError if the arguments do not fit together, BadOption if one of them cannot be parsed."""
    found = parse(options_of(release), arguments)
    if found.has("describe"):
        _check_describe(found, release)
    if found.has("delete"):
        _check_scope(found, "delete", ("all-groups", "group"))
        if found.has("topic"):
            raise UsageError("The consumer does not support topic-specific offset deletion from a consumer group.")
    if found.has("delete-offsets") and not (found.has("group") and found.has("topic")):
        raise UsageError(f"Option [delete-offsets] takes the following options: {listed(release.delete_offsets_needs)}")
    if found.has("reset-offsets"):
        _check_reset(found, release, err)
    exclude(found, "group", ["all-groups"])
    exclude(found, "group", ["list"])
    exclude(found, "topic", ["describe", "list"])
    if sum(map(found.has, release.actions)) != 1:
        actions = ", ".join(f"--{action}" for action in release.actions)
        raise UsageError(f"Command must include exactly one action: {actions}")
    return found


def _check_describe(found: Arguments, release: Release) -> None:
    _check_scope(found, "describe", release.describe_needs)
    views = ("members", "offsets", "state")
    if sum(map(found.has, views)) > 1:
        raise UsageError(f"Option [describe] takes at most one of these options: {listed(views)}")
    if found.value("state") is not None:
        raise UsageError("Option [describe] does not take a value for [state]")


def _check_scope(found: Arguments, action: str, named: Sequence[str]) -> None:
    if not found.has("group", "all-groups"):
        raise UsageError(f"Option [{action}] takes one of these options: {listed(named)}")


def _check_reset(found: Arguments, release: Release, err: Callable[[str], None]) -> None:
    if found.has("dry-run") and found.has("execute"):
        raise UsageError("Option [reset-offsets] only accepts one of [execute] and [dry-run]")
    if not found.has("dry-run", "execute"):
        err(release.reset_warning)
    _check_scope(found, "reset-offsets", ("all-groups", "group"))
    for strategy in STRATEGIES:
        exclude(found, strategy, [other for other in STRATEGIES if other != strategy])
