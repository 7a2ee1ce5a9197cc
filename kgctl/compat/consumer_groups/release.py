"""What differs between the releases of kafka-consumer-groups, as data."""

from __future__ import annotations

from collections.abc import Callable

from broker.light_dataclasses import dataclass
from kgctl.compat.tool import columns

_WARNING_HEAD = "WARN: No action will be performed as the --execute option is missing."
_WARNING_REST = (
    "In a future major release, the default behavior of this command will be to prompt the user before executing the reset "
    "rather than doing a dry run. You should add the --dry-run option explicitly if you are scripting this command and want "
    "to keep the current default behavior without prompting.\n"
)
_ACTIONS = ("list", "describe", "delete", "reset-offsets", "delete-offsets")


@dataclass(frozen=True, slots=True)
class Release:
    """`describe_version` is the highest version of DescribeGroups that the tool speaks: from 6 on, an unknown group is an error."""

    version: str
    timeout_ms: int
    describe_version: int
    actions: tuple[str, ...]
    describe_needs: tuple[str, ...]
    delete_offsets_needs: tuple[str, ...]
    states: tuple[str, ...]
    types: tuple[str, ...]
    reset_warning: str
    # Tables
    line_end: str
    reset_line: str
    has_epochs: bool
    state_row: Callable[[str, str], Callable[..., str]]
    no_strategy: str
    # Reset and deletion
    reset_hides_cause: bool
    causes_are_wrapped: bool
    deleted: Callable[[list[str]], str]
    also_deleted: Callable[[list[str]], str]
    offsets_deleted: Callable[[str, list[str]], str]
    group_errors: dict[str, str]
    some_failed: str
    unknown_failed: str
    topic_width: Callable[[list[str]], int]
    partition_width: int
    no_partition: str
    error_prefix: str


def _old_state(group: str, coordinator: str) -> Callable[..., str]:
    # The width of the coordinator column goes to the group.
    return columns(max(25, len(coordinator)), 25, 20, 15)


def _new_state(group: str, coordinator: str) -> Callable[..., str]:
    return columns(max(15, len(group)), max(25, len(coordinator)), 20, 20)


def _quoted(groups: list[str]) -> str:
    return ", ".join(f"'{group}'" for group in groups)


_STATES = ("PreparingRebalance", "CompletingRebalance", "Stable", "Dead", "Empty", "Assigning", "Reconciling")

RELEASES = {
    "3.9": Release(
        version="3.9.1",
        timeout_ms=5000,
        describe_version=5,
        actions=_ACTIONS,
        describe_needs=("reset-offsets", "describe", "delete", "list"),
        delete_offsets_needs=("all-groups", "group"),
        states=_STATES,
        types=("Consumer", "Classic"),
        reset_warning=_WARNING_HEAD + _WARNING_REST,
        line_end="",
        reset_line="",
        has_epochs=False,
        state_row=_old_state,
        no_strategy="",
        reset_hides_cause=False,
        causes_are_wrapped=True,
        deleted=lambda groups: f"Deletion of requested consumer groups ('{', '.join(groups)}') was successful.",
        also_deleted=lambda groups: f"These consumer groups were deleted successfully: '{chr(39).join(groups)}', '",
        offsets_deleted=lambda group, topics: (
            f"Request succeed for deleting offsets with topic {', '.join(topics)} group {group}"
        ),
        group_errors={
            "INVALID_GROUP_ID": "'{group}' is not valid.",
            "GROUP_ID_NOT_FOUND": "'{group}' does not exist.",
            "GROUP_AUTHORIZATION_FAILED": "Access to '{group}' is not authorized.",
            "NON_EMPTY_GROUP": (
                "Deleting offsets of a consumer group '{group}' is forbidden if the group is not empty."
            ),
        },
        some_failed="Encounter some partition level error, see the follow-up details:",
        unknown_failed="Encounter some unknown error: {name}",
        topic_width=lambda _: 30,
        partition_width=15,
        no_partition="Not Provided",
        error_prefix="Error: :",
    ),
    "4.1": Release(
        version="4.1.0",
        timeout_ms=30_000,
        describe_version=6,
        actions=(*_ACTIONS, "validate-regex"),
        describe_needs=("all-groups", "group"),
        delete_offsets_needs=("topic", "group"),
        states=_STATES,
        types=("Consumer", "Classic"),
        reset_warning=f"{_WARNING_HEAD} {_WARNING_REST}",
        line_end="\n",
        reset_line="\n",
        has_epochs=True,
        state_row=_new_state,
        no_strategy="-",
        reset_hides_cause=True,
        causes_are_wrapped=False,
        deleted=lambda groups: f"Deletion of requested consumer groups ({_quoted(groups)}) was successful.",
        also_deleted=lambda groups: f"These consumer groups were deleted successfully: {_quoted(groups)}",
        offsets_deleted=lambda group, topics: f"Request succeeded for deleting offsets from group {group}.",
        group_errors={
            "INVALID_GROUP_ID": "The group id is invalid.",
            "GROUP_ID_NOT_FOUND": "The group id does not exist.",
            "GROUP_AUTHORIZATION_FAILED": "Group authorization failed.",
            "NON_EMPTY_GROUP": "The group is not empty.",
        },
        some_failed="Encountered some partition-level error, see the follow-up details.",
        unknown_failed="Encountered some unknown error: {name}",
        topic_width=lambda topics: max([15, *map(len, topics)]),
        partition_width=10,
        no_partition="-",
        error_prefix="Error: ",
    ),
}
