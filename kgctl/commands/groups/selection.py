"""The arguments and options that choose groups, and the groups that they mean."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from broker.light_dataclasses import dataclass, field
from kgctl.client.net.errors import NotFound
from kgctl.commands.shared.arguments import not_empty, only_one
from kgctl.commands.shared.patterns import matching, parse_pattern, parsed
from kgctl.model.failure import RowError
from kgctl.model.groups import SHARE

if TYPE_CHECKING:
    from kgctl.client.admin.admin import Admin

Groups = Annotated[list[str] | None, typer.Argument(metavar="GROUP...", show_default=False, callback=not_empty)]
Match = Annotated[
    str | None,
    typer.Option(
        "--match",
        metavar="REGEX",
        callback=parsed("--match"),
        help="Only groups whose whole name matches REGEX.",
        show_default=False,
    ),
]
AllGroups = Annotated[bool, typer.Option("--all-groups", help="All groups that the cluster lists.")]


def tool_of(admin: Admin, groups: Sequence[str]) -> str:
    """Kafka's tool for groups that have been described."""
    types = admin.cluster.group_types
    shared = bool(groups) and all(types.get(group) == SHARE for group in groups)
    return "kafka-share-groups.sh" if shared else "kafka-consumer-groups.sh"


@dataclass(slots=True)
class Selection:
    """Groups by name, or those that the cluster lists: all, or whose name matches, of these types and states.

    `errors` are those of brokers that could not list their groups.
    """

    names: Sequence[str] = ()
    pattern: re.Pattern[str] | None = None
    types: Sequence[str] = ()
    states: Sequence[str] = ()
    errors: tuple[RowError, ...] = field(default=(), init=False)

    @property
    def is_listed(self) -> bool:
        return not self.names

    @property
    def is_one(self) -> bool:
        return len(self.names) == 1

    def groups(self, admin: Admin) -> list[str]:
        """Raises NotFound if the cluster lists no such group."""
        if self.names:
            return list(self.names)
        # Only brokers from Kafka 3.8 on filter by type.
        listing = admin.list_groups(self.states)
        self.errors = listing.errors
        names = [row.group for row in listing.groups if not self.types or row.type in self.types]
        if self.pattern is not None:
            names = matching(names, self.pattern)
        if not names and not listing.errors:
            raise NotFound(f"No group matches{self._described()}.")
        return names

    def _described(self) -> str:
        said = [f" {self.pattern.pattern!r}"] if self.pattern else []
        said += [f" state {', '.join(self.states)}"] if self.states else []
        return " and".join(said)


def selected(
    ctx: typer.Context,
    groups: Sequence[str] | None,
    match: str | None,
    all_groups: bool,
    *,
    types: Sequence[str] = (),
    states: Sequence[str] = (),
) -> Selection:
    """The selection that the options ask for; a usage error if they ask for none or for several."""
    only_one({"GROUP": groups, "--match": match, "--all-groups": all_groups})
    if not (groups or match is not None or all_groups or states):
        ctx.fail("Name groups, or give --match REGEX or --all-groups.")
    pattern = None if match is None else parse_pattern(match, "--match")
    return Selection(tuple(dict.fromkeys(groups or ())), pattern, types, states)
