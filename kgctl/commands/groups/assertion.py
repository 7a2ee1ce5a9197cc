"""`kgctl groups assert`: check a condition about groups, without waiting."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated

import typer

from kgctl.commands.groups.condition_report import EXPLANATION, For, Junit, grammar, parsed, reporting, row_of
from kgctl.commands.groups.condition_values import Observed, Observer
from kgctl.commands.groups.selection import Groups, Match, Selection
from kgctl.commands.shared.arguments import only_one
from kgctl.commands.shared.effects import reads, shows
from kgctl.commands.shared.help import examples
from kgctl.commands.shared.patterns import parse_pattern
from kgctl.commands.shared.settings import settings
from kgctl.conditions.observation import OF_OFFSETS, is_unused
from kgctl.conditions.syntax import references
from kgctl.conditions.variables import Reference
from kgctl.render import note
from kgctl.watch.figures import counted

EPILOG = (
    grammar()
    + "\n\n"
    + examples(
        "kgctl groups assert orders --for 'state == Stable and lag < 100'",
        "kgctl groups assert --match 'etl-.*' --for 'verdict == OK' --junit lag.xml",
        "kgctl groups assert --all --for 'max_lag <= 1000 or state == Empty'",
        "kgctl groups assert old-orders --for 'state == Dead'",
    )
)


@shows("group-conditions")
@reads
def assert_(
    ctx: typer.Context,
    condition: For,
    groups: Groups = None,
    match: Match = None,
    all_groups: Annotated[bool, typer.Option("--all", help="Every group.")] = False,
    junit: Junit = None,
) -> None:
    """Check a condition about groups, without waiting.

    Exit code 0 if it holds for all groups, 3 if not (FAILED has the smallest parts that do not hold, with the last values),
    5 if groups do not exist. A group that does not exist has the state Dead, no members, and no other known value.
    With --match or --all, a condition about lag leaves out groups with neither members nor offsets. In GitHub Actions, each
    failure is an annotation as well.
    """
    tree = parsed(condition)
    only_one({"GROUP": groups, "--match": match, "--all": all_groups})
    if not (groups or match is not None or all_groups):
        ctx.fail("Name groups, or give --match REGEX or --all.")
    pattern = None if match is None else parse_pattern(match, "--match")
    selection = Selection(tuple(dict.fromkeys(groups or ())), pattern)
    chosen = settings(ctx)
    chosen.explain(EXPLANATION)
    with reporting(chosen, "kgctl groups assert", tree, junit, selection.names) as report:
        with chosen.admin() as admin:
            names = selection.groups(admin)
            found = Observer(admin, chosen, references(tree)).observe(names)
        if selection.is_listed:
            names = _with_offsets(names, found, [*references(tree)])
        report.conclude([row_of(tree, found[name]) for name in names], selection.errors)


def _with_offsets(names: list[str], found: Mapping[str, Observed], wanted: Iterable[Reference]) -> list[str]:
    """The groups without unused ones: these have neither members nor offsets, and so no lag to judge."""
    if all(one.name not in OF_OFFSETS for one in wanted):
        return names
    unused = [name for name in names if is_unused(found[name].group)]
    if not unused or len(unused) == len(names):
        return names
    shown = ", ".join(f"'{name}'" for name in unused[:10]) + (", ..." if len(unused) > 10 else "")
    note(f"Left out {counted(len(unused), 'group')} with neither members nor offsets: {shown}.")
    return [name for name in names if name not in set(unused)]
