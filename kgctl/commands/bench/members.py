"""`kgctl bench members`: how a group with many members rebalances."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from kgctl.commands.bench.options import Keep, Partitions, Replicas, TopicName
from kgctl.commands.records.consume_options import GroupProtocol
from kgctl.commands.shared.arguments import not_empty, only_one
from kgctl.commands.shared.effects import changes, shows
from kgctl.commands.shared.help import examples
from kgctl.commands.shared.settings import settings

if TYPE_CHECKING:
    from kgctl.commands.bench.group_run import GroupFigures, GroupLoad
    from kgctl.model.bench import BenchMembers

MOST_MEMBERS = 1000
# A member has a connection to the bootstrap address, one to a leader or for lookups, and one to the coordinator.
_DESCRIPTORS_PER_MEMBER = 3
_OTHER_DESCRIPTORS = 100
EPILOG = examples(
    "kgctl bench members",
    "kgctl bench members --count 1000 --partitions 500 --duration 60",
    "kgctl bench members --assignor cooperative-sticky --rebalances 10 -o json",
    "kgctl bench members --group-protocol consumer",
)
_DEFAULT_ASSIGNORS = {GroupProtocol.CLASSIC: "range", GroupProtocol.CONSUMER: "uniform"}
_HEARTBEAT_INTERVAL, _SESSION_TIMEOUT = 3.0, 45.0


@shows("bench-members")
@changes(names="topic")
def members(
    ctx: typer.Context,
    count: Annotated[
        int, typer.Option("--count", min=1, max=MOST_MEMBERS, metavar="N", help="Members of the group.")
    ] = 100,
    duration: Annotated[
        float, typer.Option("--duration", min=0, metavar="SECONDS", help="How long to watch the group that is stable.")
    ] = 10.0,
    rebalances: Annotated[
        int,
        typer.Option("--rebalances", min=0, max=1000, metavar="N", help="How often a member leaves and joins again."),
    ] = 3,
    group_protocol: Annotated[
        GroupProtocol,
        typer.Option(
            "--group-protocol",
            metavar="classic|consumer",
            help="Who assigns the partitions: a member (classic), or the broker (consumer, KIP-848).",
        ),
    ] = GroupProtocol.CLASSIC,
    assignor: Annotated[
        str | None,
        typer.Option(
            "--assignor",
            metavar="NAME|MODULE:NAME",
            callback=not_empty,
            help="range, roundrobin, sticky, cooperative-sticky, or one of a Python module. [default: range] With"
            " --group-protocol consumer, one of the broker's: uniform, range. [default: uniform]",
        ),
    ] = None,
    heartbeat_interval: Annotated[
        float | None,
        typer.Option(
            "--heartbeat-interval",
            min=0.01,
            metavar="SECONDS",
            help="Time between heartbeats; the broker's choice with --group-protocol consumer. [default: 3]",
        ),
    ] = None,
    session_timeout: Annotated[
        float | None,
        typer.Option(
            "--session-timeout",
            min=0.1,
            metavar="SECONDS",
            help="When a silent member is evicted; the broker's choice with --group-protocol consumer. [default: 45]",
        ),
    ] = None,
    stable_within: Annotated[
        float, typer.Option("--stable-within", min=0.1, metavar="SECONDS", help="Time limit for each rebalance.")
    ] = 120.0,
    partitions: Partitions = 64,
    replicas: Replicas = None,
    topic: TopicName = None,
    keep: Keep = False,
) -> None:
    """Measure how a group with many members rebalances.

    Each member is a whole consumer with connections and heartbeats of its own; fetches are paused. Up to 1,000 members
    are possible if the process may open three files for each (ulimit -n). They join a group of their own, which is
    removed at the end, as is the topic, kgctl-bench-TIME-ID. A topic that --topic names may exist; nothing is written to it.

    STABLE-S: from the start until all members are in one generation and all partitions have an owner. P50-S and MAX-S: from
    the moment in which a member leaves, and joins again, until that holds again; the others notice it by
    their heartbeats. GENERATIONS are all that any member has seen. P99-MS is the time until a heartbeat is answered. With
    --group-protocol consumer, the generation of a member is its member epoch.

    After Ctrl-C the command shows what was measured until then, and the exit code is 130. The exit code is 3 if the
    members do not come together in time.
    """
    from kgctl.commands.bench.bench_topic import BenchTopic, bench_topic, fresh_name
    from kgctl.commands.bench.group_run import GroupLoad, GroupRun
    from kgctl.commands.bench.run import measuring

    only_one({"--topic": topic, "--keep": keep})
    _check_times(group_protocol, heartbeat_interval, session_timeout)
    _allow_connections(count)
    connection = settings(ctx).connection()
    wanted = BenchTopic(topic, True, keep, partitions, replicas)
    with measuring(settings(ctx)) as run, bench_topic(connection, wanted, run.note) as name:
        load = GroupLoad(
            topic=name,
            group=fresh_name(),
            members=count,
            partitions=run.partition_count(connection, name),
            protocol=group_protocol.value,
            assignor=assignor or _DEFAULT_ASSIGNORS[group_protocol],
            rebalances=rebalances,
            seconds=duration,
            heartbeat_s=heartbeat_interval or _HEARTBEAT_INTERVAL,
            session_s=session_timeout or _SESSION_TIMEOUT,
            stable_within_s=stable_within,
        )
        group = GroupRun(connection, load, run.interruption, run.show)
        try:
            import asyncio

            asyncio.run(group.run())
        finally:
            from kgctl.commands.bench.bench_topic import remove_group

            run.row = _row(load, group.figures, is_complete=not run.interruption.requested)
            remove_group(connection, load.group, run.note)


def _check_times(protocol: GroupProtocol, heartbeat_interval: float | None, session_timeout: float | None) -> None:
    """BadParameter for what cannot be meant."""
    if protocol is GroupProtocol.CONSUMER:
        for option, value in (("heartbeat-interval", heartbeat_interval), ("session-timeout", session_timeout)):
            if value is not None:
                config = f"consumer.{option.replace('-', '.')}.ms"
                raise typer.BadParameter(
                    f"the broker decides it with --group-protocol consumer (group.{config}).",
                    param_hint=f"'--{option}'",
                )
    if (heartbeat_interval or _HEARTBEAT_INTERVAL) >= (session_timeout or _SESSION_TIMEOUT):
        raise typer.BadParameter("must be below --session-timeout.", param_hint="'--heartbeat-interval'")


def _allow_connections(members: int) -> None:
    """Raise the limit of open files of this process as far as needed and allowed. BadParameter if that is not enough."""
    import resource

    needed = members * _DESCRIPTORS_PER_MEMBER + _OTHER_DESCRIPTORS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return
    if hard != resource.RLIM_INFINITY and hard < needed:
        most = max(0, (hard - _OTHER_DESCRIPTORS) // _DESCRIPTORS_PER_MEMBER)
        raise typer.BadParameter(
            f"{members:,} members need {needed:,} open files, and {hard:,} are allowed (ulimit -Hn), enough for {most:,}.",
            param_hint="'--count'",
        )
    resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))


def _row(load: GroupLoad, figures: GroupFigures, *, is_complete: bool) -> BenchMembers:
    from kgctl.commands.bench.run import NO_PERCENTILES, in_seconds
    from kgctl.model.bench import BenchMembers

    rebalances = in_seconds(figures.rebalances.percentiles())
    beats = figures.heartbeats.percentiles() or NO_PERCENTILES
    return BenchMembers(
        group=load.group,
        topic=load.topic,
        members=load.members,
        partitions=load.partitions,
        group_protocol=load.protocol,
        assignor=load.assignor,
        stable_s=None if figures.stable_s is None else round(figures.stable_s, 3),
        generations=len(figures.generations),
        rebalances=figures.rebalances.count,
        rebalance_p50_s=rebalances[0],
        rebalance_p95_s=rebalances[1],
        rebalance_p99_s=rebalances[2],
        rebalance_max_s=rebalances[3],
        heartbeats=figures.heartbeats.count,
        heartbeats_failed=figures.heartbeats_failed,
        heartbeat_p50_ms=beats[0],
        heartbeat_p95_ms=beats[1],
        heartbeat_p99_ms=beats[2],
        heartbeat_max_ms=beats[3],
        seconds=round(figures.seconds, 3),
        cpu_s=round(figures.cpu_s, 3),
        is_complete=is_complete,
    )
