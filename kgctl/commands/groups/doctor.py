"""`kgctl groups doctor`: one verdict per group, and what is wrong with it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from broker.light_dataclasses import replace
from kgctl.client.net.errors import KgctlError, Precondition
from kgctl.commands.groups.deriving import deriver
from kgctl.commands.groups.recent import with_recent
from kgctl.commands.groups.sampling import SampleTime, names_of, sample_seconds, take_samples, with_facts
from kgctl.commands.groups.selection import Match
from kgctl.commands.groups.unused_after import DAY, UnusedAfter, unused_after_s
from kgctl.commands.shared.arguments import named, not_empty, only_one
from kgctl.commands.shared.effects import reads, shows
from kgctl.commands.shared.help import examples
from kgctl.commands.shared.outcome import conclude
from kgctl.commands.shared.patterns import matching
from kgctl.commands.shared.settings import settings
from kgctl.exit_codes import CONDITION_NOT_MET
from kgctl.model.findings import FAIL_ON, WORST_FIRST, Finding, is_as_bad
from kgctl.model.health import NO_VERDICT
from kgctl.render import note
from kgctl.watch.doctor.facts import HISTORY, HOLDS, REBALANCES, facts_of
from kgctl.watch.doctor.rules import diagnose, rule_rows

if TYPE_CHECKING:
    from kgctl.client.admin.admin import Admin
    from kgctl.model.groups import GroupDescription
    from kgctl.model.history import GroupEventRow
    from kgctl.model.transactions import GroupHold

EPILOG = examples(
    "kgctl groups doctor",
    "kgctl groups doctor orders --sample 30s --verbose",
    "kgctl groups doctor --match 'shop-.*' --all",
    "kgctl groups doctor --fail-on warning -o json",
    "kgctl groups doctor --rules",
)


UNUSED = "unused"


@shows("group-findings", "doctor-rules")
@reads
def doctor(
    ctx: typer.Context,
    groups: Annotated[
        list[str] | None, typer.Argument(metavar="[GROUP...]", show_default=False, callback=not_empty)
    ] = None,
    match: Match = None,
    sample: SampleTime = None,
    fail_on: Annotated[
        str,
        typer.Option(
            "--fail-on",
            metavar="|".join(FAIL_ON),
            help="Exit with 3 if a finding is at least as bad.",
            show_default=True,
        ),
    ] = FAIL_ON[0],
    rules: Annotated[bool, typer.Option("--rules", help="List the rules and exit.")] = False,
    all_: Annotated[bool, typer.Option("--all", help="Also list groups without findings, and unused ones.")] = False,
    unused_after: UnusedAfter = DAY,
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Also show the rules that found nothing, or could not look.")
    ] = False,
) -> None:
    """Find what is wrong with groups.

    The findings about all groups by default, with evidence and advice; groups without findings and unused ones are only
    counted, unless you name them or pass --all. error means that records are lost, or that the group makes no progress;
    with one, the exit code is 3. warning means that the group works badly, info that something may be intended. VERDICT
    is - if one snapshot does not prove one; --sample watches for longer. No rule alarms on a guess.
    """
    only_one({"GROUP": groups, "--match": match})
    chosen = settings(ctx)
    if rules:
        chosen.show(rule_rows(), kind="doctor-rules")
        return
    (limit,) = named([fail_on], FAIL_ON, "--fail-on")
    seconds, unused_s = sample_seconds(sample), unused_after_s(unused_after)
    missing: dict[str, str] = {}
    with chosen.admin() as admin:
        names, listing = names_of(admin, groups)
        names = matching(names, match)
        samples = take_samples(admin, names, seconds)
        samples[-1] = with_facts(admin, chosen, samples[-1])
        described = list(with_recent(admin, chosen, list(samples[-1].groups.values())))
        samples[-1] = replace(samples[-1], groups={group.group: group for group in described})
        present = [group for group in described if group.error is None]
        lag = admin.lag_facts(present)
        holds, events = _holds(admin, present, missing), _events(admin, missing)
    every = facts_of(samples, lag, holds, events, missing, unused_after_s=unused_s)
    findings = sorted((found for facts in every for found in diagnose(facts, verbose=verbose)), key=_badness)
    if not (groups or all_ or verbose):
        findings = _without_quiet(findings)
    failed = [Finding(group.group, None, None, None, None, error=group.error) for group in described if group.error]
    for kind, why in (dict(missing) | dict(lag.missing)).items():
        chosen.explain(f"Without {kind}: {why}.")
    chosen.show([*findings, *failed], kind="group-findings", errors=listing.errors)
    errors = [*listing.errors, *(row.error for row in failed)]
    conclude(errors, len(errors) + len(samples[-1].groups) - len(failed))
    if any(is_as_bad(found.severity, limit) for found in findings if found.rule):
        raise typer.Exit(CONDITION_NOT_MET)


def _without_quiet(findings: Sequence[Finding]) -> list[Finding]:
    """The findings without groups that nothing is wrong with, and without unused ones; a note counts these by verdict."""
    loud = {found.group for found in findings if found.rule not in (None, UNUSED)}
    quiet = {found.group: found.verdict or NO_VERDICT for found in findings if found.group not in loud}
    if quiet:
        counts = ", ".join(f"{count:,} {word}" for word, count in Counter(quiet.values()).most_common())
        without = counts.replace(NO_VERDICT, "without a verdict")
        note(f"Nothing found in {len(quiet):,} of {len(quiet) + len(loud):,} groups: {without}. --all lists them.")
    return [found for found in findings if found.group in loud]


def _badness(found: Finding) -> int:
    return WORST_FIRST.index(found.severity) if found.severity else -1


def _holds(admin: Admin, present: Sequence[GroupDescription], missing: dict[str, str]) -> list[GroupHold]:
    try:
        return admin.group_holds(present)
    except KgctlError as error:
        missing[HOLDS] = str(error)
        return []


def _events(admin: Admin, missing: dict[str, str]) -> tuple[GroupEventRow, ...]:
    try:
        return admin.new_events(None, whole_history=True)
    except KgctlError as error:
        missing[HISTORY] = str(error)
        if not isinstance(error, Precondition):
            missing[REBALANCES] = str(error)
            return ()
        try:
            return tuple(deriver(admin, error)())
        except KgctlError as why:
            missing[REBALANCES] = str(why)
            return ()
