"""`kgctl lab designs`: Kafka's designs of rebalancing, each with the same failures."""

from __future__ import annotations

import re
import sys
from typing import Annotated

import typer

from kgctl.commands.shared.arguments import named
from kgctl.commands.shared.effects import local, shows
from kgctl.commands.shared.help import examples
from kgctl.commands.shared.settings import settings
from kgctl.lab.design import LabSettings
from kgctl.lab.play import DESIGNS, compare
from kgctl.render.status_line import StatusLine

_SEEDS = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?")
MAX_SEEDS = 10_000
EPILOG = examples(
    "kgctl lab designs",
    "kgctl lab designs --members 100 --partitions 300",
    "kgctl lab designs --seeds 1-20 --design two-phase --design cooperative",
    "kgctl lab designs -o json",
)


@shows("lab-designs")
@local
def designs(
    ctx: typer.Context,
    members: Annotated[int, typer.Option("--members", metavar="N", min=1, max=1000, help="Members of the group.")] = 20,
    partitions: Annotated[
        int, typer.Option("--partitions", metavar="N", min=1, max=10_000, help="Partitions of its topic.")
    ] = 60,
    failures: Annotated[
        int, typer.Option("--failures", metavar="N", min=1, max=1000, help="Failures, one after the other.")
    ] = 8,
    seeds: Annotated[
        str,
        typer.Option("--seeds", metavar="N[-N]", help="What to draw the failures from; their figures are added up."),
    ] = "1",
    design: Annotated[
        list[str] | None,
        typer.Option("--design", metavar="NAME", help=f"Only this one: {', '.join(DESIGNS)}; repeatable."),
    ] = None,
) -> None:
    """Compare Kafka's designs of rebalancing, old and new.

    Simulates a group whose members crash, leave, pause and lose the network to ZooKeeper or the coordinator, each for 15
    to 25 seconds. zookeeper: members watch each other and assign partitions to themselves (Kafka 0.8). server-side: a
    broker assigns. two-phase: JoinGroup and SyncGroup, as today, with the coordinator and the consumers of kgctl itself;
    cooperative: the same with members that keep their partitions. The same seeds give the same result.

    MESSAGES are requests, answers and notifications without heartbeats, NOTIFIED the watches that fired. Times are
    seconds. DOUBLE-S: partitions with two owners whose commits are accepted. FENCED-S: owners whose commits are refused.
    UNOWNED-S: partitions without an owner. STABLE-S: from a failure or its repair to the last change of an owner, on average;
    SLOWEST-S: the longest.
    """
    chosen = named(design or [], tuple(DESIGNS), "--design")
    group = LabSettings(members=members, partitions=partitions)
    with StatusLine(sys.stderr) as line:
        rows = compare(chosen or DESIGNS, group, failures, _seeds(seeds), line.show)
    settings(ctx).show(rows, kind="lab-designs")


def _seeds(text: str) -> range:
    found = _SEEDS.fullmatch(text.strip())
    seeds = range(int(found[1]), int(found[2] or found[1]) + 1) if found else range(0)
    if not 1 <= len(seeds) <= MAX_SEEDS:
        raise typer.BadParameter(f"{text!r} is not a seed or a range such as 1-20.", param_hint="'--seeds'")
    return seeds
