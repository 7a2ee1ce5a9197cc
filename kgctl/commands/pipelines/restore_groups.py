"""`kgctl pipeline restore-groups`: gives groups the committed offsets that an archive keeps, on the cluster that has its records now."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from broker.light_dataclasses import replace
from kgctl.client.net.errors import KgctlError, NotFound, Precondition
from kgctl.commands.groups.reset_execution import Drain, drain_seconds
from kgctl.commands.groups.restoration import OFFSET, Restoration
from kgctl.commands.pipelines.replay_options import State, distinct
from kgctl.commands.shared.arguments import Execute, not_empty
from kgctl.commands.shared.effects import check_change, decides_itself, shows
from kgctl.commands.shared.help import examples
from kgctl.commands.shared.journaling import journaled
from kgctl.commands.shared.plan_execution import KIND, conclude_plan
from kgctl.commands.shared.settings import settings
from kgctl.model.items import StoredTopic
from kgctl.model.plans import OFFSETS, ChangeRow, StoredGroup, StoredOffset
from kgctl.pipelines.archive.groups import read_groups
from kgctl.pipelines.archive.layout import GroupsSnapshot
from kgctl.pipelines.archive.manifest import Archive, kept_in_place, read_archive
from kgctl.pipelines.replay.groups import Continuation, ReplayedTopic, continuations, left_out
from kgctl.pipelines.replay.kept import KeptReplay, kept_replays
from kgctl.pipelines.replay.log import FOLDER
from kgctl.pipelines.replay.plan import LOG_APPEND_TIME, TIMESTAMPS
from kgctl.pipelines.replay.records import RecordFilter
from kgctl.pipelines.replay.settings import PREFIX
from kgctl.pipelines.replay.times import RecordTimes
from kgctl.render import note
from kgctl.watch.figures import counted

if TYPE_CHECKING:
    from kgctl.client.admin.admin import Admin

REPLAY, TIMESTAMP = "replay", "timestamp"
EPILOG = examples(
    "kgctl pipeline restore-groups archive --context new",
    "kgctl pipeline restore-groups archive --context new --execute",
    "kgctl pipeline restore-groups archive --group orders=orders-copy --execute",
)


@shows(KIND)
@journaled
@decides_itself
def restore_groups(
    ctx: typer.Context,
    folder: Annotated[Path, typer.Argument(metavar="DIR", show_default=False)],
    group: Annotated[
        list[str] | None,
        typer.Option(
            "--group",
            metavar="OLD[=NEW]",
            callback=not_empty,
            help="Restore only this group, under its old or a new name; repeatable. [default: all]",
        ),
    ] = None,
    topic: Annotated[
        list[str] | None,
        typer.Option(
            "--topic",
            metavar="NAME[=NEW]",
            callback=not_empty,
            help="Restore only offsets in this topic, under its own or a new name; repeatable. [default: replayed topics]",
        ),
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(
            "--by",
            metavar="replay|timestamp",
            help="replay: the offsets that records got in a replay; timestamp: the first record at or after the time of the next "
            "unread one. [default: replay, where it is known]",
        ),
    ] = None,
    id_: Annotated[
        str | None,
        typer.Option("--id", metavar="NAME", callback=not_empty, help="The replay, if several wrote the same topic."),
    ] = None,
    state: State = None,
    drain: Drain = None,
    execute: Execute = False,
) -> None:
    """Set the committed offsets of groups to those of an archive.

    After a replay into the same partitions, the offsets are exact: each group continues with the first record that it had
    not read. For topics that were replayed by key or moved by other means, offsets are found by time: a group may read
    records again, but skips none. Groups that do not exist are created. Groups that have members are refused; see --drain.
    Without --execute the plan is shown and nothing changes.
    """
    if by not in (None, REPLAY, TIMESTAMP):
        raise typer.BadParameter(f"{by!r} is not one of {REPLAY}, {TIMESTAMP}.", param_hint="'--by'")
    seconds = drain_seconds(drain)
    ctx.with_resource(kept_in_place(folder))
    archive = read_archive(folder)
    snapshot = _chosen(folder, read_groups(folder), group or ())
    if execute:
        names = list(dict.fromkeys(one.group for one in snapshot.offsets))
        check_change(ctx, names, f"`{ctx.command_path}` with --execute")
    chosen = settings(ctx)
    taken = datetime.fromtimestamp(snapshot.taken_ms / 1000, UTC)
    note(f"The archive has the committed offsets of {taken:%Y-%m-%d %H:%M:%S} UTC.")
    with chosen.admin() as admin:
        kept = state or folder / FOLDER
        topics = _topics(admin, archive, kept, id_, topic or (), {one.topic for one in snapshot.offsets})
        _explain(topics, folder, kept, by)
        found = _resolved(admin, continuations(snapshot, topics, by_timestamp=by == TIMESTAMP))
        if others := left_out(snapshot, topics):
            note(f"{counted(others, 'committed offset')} of other topics left out.")
        failed = {one.group for one in found if one.error}
        good: dict[str, list[StoredOffset]] = {}
        for one in found:
            if one.group not in failed and one.offset is not None:
                stored = StoredOffset(one.key.topic, one.key.partition, one.offset, metadata=one.metadata)
                good.setdefault(one.group, []).append(stored)
        types = {one.group: one.type for one in snapshot.offsets}
        groups = [StoredGroup(name, None, types[name], offsets=tuple(offsets)) for name, offsets in good.items()]
        restoration = Restoration(
            "pipeline restore-groups", groups, OFFSET, is_same_cluster=False, taken_ms=snapshot.taken_ms, drain=seconds
        )
        rows = restoration.run(chosen, admin, is_executed=execute)
    rows += [_failed_row(one, execute=execute) for one in found if one.group in failed]
    conclude_plan(chosen, rows, execute=execute, all_or_nothing=False)


def _explain(topics: Mapping[str, ReplayedTopic], folder: Path, kept: Path, by: str | None) -> None:
    """Print notes about unknown replays and missing topics. Raises Precondition if `by` demands a replay that is not known."""
    unknown = [name for name, one in topics.items() if not one.is_replayed]
    if by == REPLAY and unknown:
        raise Precondition(
            f"no replay of this archive to this cluster is known for {_quoted(unknown)}: leave --by out to find offsets by time, "
            "or give --state"
        )
    if missing := [one.target for one in topics.values() if not one.exists]:
        note(
            f"The cluster has no topic {_quoted(missing)}: write the records first, for example with "
            f"`kgctl pipeline replay {folder} --all-topics --create --execute`."
        )
    by_time = [name for name in unknown if topics[name].exists]
    if by_time and by is None:
        note(
            f"No replay of {_quoted(by_time)} to this cluster is known in {kept}: offsets are found by time. If there was a replay, "
            "name its folder with --state."
        )


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(map(repr, names))


def _chosen(folder: Path, snapshot: GroupsSnapshot | None, given: Sequence[str]) -> GroupsSnapshot:
    """The committed offsets of the groups that are to be restored, under their new names."""
    if snapshot is None or not snapshot.offsets:
        raise NotFound(f"{folder} holds no committed offsets of groups")
    if not given:
        # The positions of another replay mean nothing elsewhere.
        offsets = tuple(one for one in snapshot.offsets if not one.group.startswith(PREFIX))
        return GroupsSnapshot(snapshot.taken_ms, offsets)
    known = {one.group for one in snapshot.offsets}
    names: dict[str, str] = {}
    for text in given:
        # Names may contain the sign, too.
        parts = [(text[:place], text[place + 1 :]) for place, sign in enumerate(text) if sign == "="]
        old, new = next(((old, new) for old, new in [(text, text), *parts] if old in known), (text, text))
        if old not in known:
            raise NotFound(f"the archive has no committed offsets of group {text.partition('=')[0]!r}")
        if old in names:
            raise typer.BadParameter(f"{old!r} is given twice.", param_hint="'--group'")
        if not new or new in names.values():
            raise typer.BadParameter(f"{text!r} names {'two groups' if new else 'no group'}.", param_hint="'--group'")
        names[old] = new
    offsets = tuple(replace(one, group=names[one.group]) for one in snapshot.offsets if one.group in names)
    return GroupsSnapshot(snapshot.taken_ms, offsets)


def _topics(
    admin: Admin, archive: Archive, state: Path, id_: str | None, chosen: Sequence[str], needed: Collection[str]
) -> dict[str, ReplayedTopic]:
    """How the topics of the archive came to the cluster: as its replays say, or without one under their own names.

    `chosen`: the topics, with their new names if they have any. `needed`: those in which the groups have offsets.
    """
    replays = [
        one
        for one in kept_replays(state, archive.cluster_id, admin.cluster_id())
        if id_ in (None, one.id, one.short_id)
    ]
    if id_ is not None and not replays:
        raise NotFound(f"no replay {id_} has written to this cluster")
    wanted = distinct(((old, new) for old, _, new in (text.partition("=") for text in chosen)), "--topic")
    if len({new or old for old, new in wanted.items()}) < len(wanted):
        raise typer.BadParameter("two topics would be one.", param_hint="'--topic'")
    for name in wanted:
        if name not in archive.topics:
            raise NotFound(f"the archive has no topic {name!r}; it has {', '.join(archive.topics)}")
    several: dict[str, list[tuple[str, KeptReplay]]] = {}
    for replay in replays:
        for target, source in replay.settings.sources.items():
            if not chosen or (source in wanted and wanted[source] in ("", target)):
                several.setdefault(source, []).append((target, replay))
    found: dict[str, tuple[str, KeptReplay | None]] = {
        name: _preferred(name, some) for name, some in several.items() if name in needed
    }
    for name in wanted if chosen else () if several else archive.topics:
        if name in needed:
            found.setdefault(name, (wanted.get(name) or name, None))
    targets = {target for target, _ in found.values()} | {one for replay in replays for one in replay.settings.sources}
    stored = admin.stored_topics(sorted(targets))
    counts = {name: topic.partitions for name, topic in stored.items() if isinstance(topic, StoredTopic)}
    for replay in replays:
        replay.settle(admin, archive, counts)
    times = admin.topic_configs([name for name in targets if name in counts], all_of_them=True) if replays else ()
    timed = {row.topic for row in times if (row.config, row.value) == (TIMESTAMPS, LOG_APPEND_TIME)}
    return {
        source: _topic(archive, source, target, counts, replay, sets_times=target in timed)
        for source, (target, replay) in found.items()
    }


def _preferred(source: str, candidates: Sequence[tuple[str, KeptReplay]]) -> tuple[str, KeptReplay]:
    """The only replay of a topic, or the only one of all its records under its own name. Raises Precondition."""
    if len(candidates) == 1:
        return candidates[0]
    moved = [one for one in candidates if one[0] == source and one[1].settings.chosen.is_empty]
    if len(moved) == 1:
        return moved[0]
    known = ", ".join(
        f"{replay.short_id} to {target!r}{'' if replay.settings.chosen.is_empty else ' (some records)'}"
        for target, replay in candidates
    )
    raise Precondition(
        f"topic {source!r} was replayed several times, {known}: choose one with --id or --topic {source}=NAME"
    )


def _topic(
    archive: Archive,
    source: str,
    target: str,
    counts: Mapping[str, int],
    replay: KeptReplay | None,
    *,
    sets_times: bool,
) -> ReplayedTopic:
    """`sets_times`: the broker gives records the time of their arrival."""
    spans = {key.partition: span for key, span in archive.spans.items() if key.topic == source}
    exists, count = target in counts, counts.get(target, archive.topics[source].partitions)
    if replay is None:
        times = RecordTimes(archive, source, RecordFilter())
        return ReplayedTopic(target, count, times, exists=exists, is_replayed=False, spans=spans)
    its = replay.settings
    maps = {} if its.by_key else replay.maps(target)
    ends = replay.ends(target) if its.by_key else None
    if replay.lacks_positions(target) and any(first < end for first, end in spans.values()):
        note(
            f"The cluster no longer knows how far replay {replay.short_id} of topic '{target}' was: offsets are found by time."
        )
    times = RecordTimes(archive, source, its.chosen)
    has_new_times = its.is_now or sets_times
    return ReplayedTopic(
        target,
        count,
        times,
        exists=exists,
        by_key=its.by_key,
        shift_ms=its.shift_ms,
        has_new_times=has_new_times,
        maps=maps,
        spans=spans,
        ends=ends,
    )


def _resolved(admin: Admin, found: Sequence[Continuation]) -> list[Continuation]:
    """The same with offsets instead of moments."""
    wanted: dict[Any, set[int]] = {}
    for one in found:
        if one.moment_ms is not None:
            wanted.setdefault(one.key, set()).add(one.moment_ms)
    places = admin.offsets_at(wanted)

    def resolve(one: Continuation) -> Continuation:
        if one.moment_ms is None:
            return one
        place = places[one.key, one.moment_ms]
        if isinstance(place, KgctlError):
            return replace(one, error=place.as_row())
        return replace(one, offset=place.offset if one.at_most is None else min(place.offset, one.at_most))

    return [resolve(one) for one in found]


def _failed_row(one: Continuation, *, execute: bool) -> ChangeRow:
    """A group is changed as a whole or not at all."""
    status = "failed" if one.error else "skipped" if execute else "planned"
    return ChangeRow(
        one.group, OFFSETS, one.key.topic, one.key.partition, new_offset=one.offset, status=status, error=one.error
    )
