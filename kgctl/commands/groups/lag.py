"""`kgctl groups lag`: how far groups are behind, in records and in time, and how long it lasts."""

from __future__ import annotations

from typing import Annotated

import typer

from kgctl.commands.groups.sampling import SampleTime, names_of, sample_seconds, take_samples
from kgctl.commands.shared.arguments import named, not_empty, only_one
from kgctl.commands.shared.effects import reads, shows
from kgctl.commands.shared.help import examples
from kgctl.commands.shared.outcome import conclude
from kgctl.commands.shared.settings import settings
from kgctl.watch.lag import GROUPINGS, PARTITION, lag_rows, summed

EPILOG = examples(
    "kgctl groups lag orders",
    "kgctl groups lag orders --sample 30s",
    "kgctl groups lag --all --by group --sample 5s --sort time_lag_ms:desc",
)


@shows("group-lag", "group-lag-sums")
@reads
def lag(
    ctx: typer.Context,
    groups: Annotated[
        list[str] | None, typer.Argument(metavar="GROUP...", show_default=False, callback=not_empty)
    ] = None,
    all_groups: Annotated[bool, typer.Option("--all", help="Every group.")] = False,
    by: Annotated[
        str, typer.Option("--by", metavar="|".join(GROUPINGS), help="What a row is about; times are the worst ones.")
    ] = PARTITION,
    sample: SampleTime = None,
) -> None:
    """Show lag in records and in time, rates, time to drain, retention headroom.

    TIME-LAG is the age of the oldest unread record. DELETED-IN is when retention may delete it, at the earliest. IN and OUT
    are records per second and ETA is when the lag is zero at these rates; they need --sample. A value that is not certain
    is -, an estimate has a ~ before it. `-o json` says how sure each value is: high (read from the cluster, or measured for
    30 s), medium (measured for a shorter time, or from the timestamps of producers), low (an estimate).
    """
    only_one({"GROUP": groups, "--all": all_groups})
    if not groups and not all_groups:
        ctx.fail("Name groups, or give --all.")
    (grouping,) = named([by], GROUPINGS, "--by") or [PARTITION]
    seconds = sample_seconds(sample)
    chosen = settings(ctx)
    chosen.explain_as("kafka-consumer-groups.sh", "--describe", *_classic(groups))
    with chosen.admin() as admin:
        names, listing = names_of(admin, groups)
        samples = take_samples(admin, names, seconds)
        facts = admin.lag_facts([group for group in samples[-1].groups.values() if group.error is None])
    rows = lag_rows(samples, facts)
    for kind, why in facts.missing.items():
        chosen.explain(f"Without {kind}: {why}.")
    if seconds is None:
        chosen.explain("Rates and the time to drain need --sample: one snapshot does not show them.")
    kind = "group-lag" if grouping == PARTITION else "group-lag-sums"
    chosen.show(summed(rows, grouping), kind=kind, errors=listing.errors)
    errors = [*listing.errors, *(row.error for row in rows)]
    conclude(errors, len(errors))


def _classic(groups: list[str] | None) -> list[str]:
    return [word for group in groups for word in ("--group", group)] if groups else ["--all-groups"]
