"""`kgctl pipeline replay`: writes the records of an archive to topics."""

from __future__ import annotations

import importlib.util
import re
import select
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from broker.light_dataclasses import replace
from kgctl.client.admin.stored_topics import log_ends
from kgctl.client.admin.times import duration_ms
from kgctl.client.net.errors import BadValue, KgctlError, NotFound, Precondition
from kgctl.commands.pipelines.replay_options import (
    All,
    ByPartition,
    Create,
    From,
    Id,
    Key,
    KeyMatch,
    NoTransactions,
    Now,
    Rate,
    Replicas,
    Restart,
    Shift,
    Speed,
    State,
    To,
    Topic,
    Until,
    distinct,
    parse_rate,
    parse_speed,
)
from kgctl.commands.pipelines.run_options import one_of
from kgctl.commands.records.produce_options import Compression, CompressionKind
from kgctl.commands.shared.arguments import Execute
from kgctl.commands.shared.effects import check_change, decides_itself, shows
from kgctl.commands.shared.help import examples
from kgctl.commands.shared.interruption import Interrupted, Interruption
from kgctl.commands.shared.journaling import journaled, keep
from kgctl.commands.shared.outcome import conclude, note_dry_run
from kgctl.commands.shared.settings import Settings, settings
from kgctl.commands.shared.times import check_span, parse_datetime
from kgctl.exit_codes import INTERRUPTED
from kgctl.journal.items import topics_created
from kgctl.model.changes import DONE, FAILED
from kgctl.model.items import StoredTopic
from kgctl.model.pipelines import ReplayRow
from kgctl.pipelines.archive.layout import TopicFacts
from kgctl.pipelines.archive.manifest import Archive, kept_in_place, read_archive
from kgctl.pipelines.progress import Progress
from kgctl.pipelines.replay.log import FOLDER, keep_settings, kept_settings, locked
from kgctl.pipelines.replay.plan import plan_rows
from kgctl.pipelines.replay.settings import PREFIX, ReplaySettings, id_of, settings_of
from kgctl.pipelines.runner import PipelinesMissing
from kgctl.pipelines.tables.errors import Damaged
from kgctl.render import note
from kgctl.render.progress import ProgressLine
from kgctl.watch.figures import counted

if TYPE_CHECKING:
    from kgctl.client.admin.admin import Admin

KIND = "pipeline-replay"
EPILOG = (
    "Exit codes: those of kgctl; 1 a record or a file cannot be used, 6 the target cannot take the records or another process runs "
    "this replay, 130 interrupted. To continue an unfinished replay, run the same command again.\n\n"
    + examples(
        "kgctl pipeline replay archive --all-topics --create --context new",
        "kgctl pipeline replay archive --all-topics --create --execute",
        "kgctl pipeline replay archive --topic orders --to orders-copy --execute",
        "kgctl pipeline replay archive --topic orders --to test --speed 10",
        "kgctl pipeline replay archive --topic orders --to test --key 4711",
    )
)


@shows(KIND)
@journaled
@decides_itself
def replay(
    ctx: typer.Context,
    folder: Annotated[Path, typer.Argument(metavar="DIR", show_default=False)],
    to: To = None,
    topic: Topic = None,
    all_topics: All = False,
    create: Create = False,
    replicas: Replicas = None,
    partitions: ByPartition = "same",
    key: Key = None,
    key_match: KeyMatch = None,
    since: From = None,
    until: Until = None,
    shift: Shift = None,
    is_now: Now = False,
    rate: Rate = None,
    speed: Speed = None,
    compression: CompressionKind = Compression.NONE,
    no_transactions: NoTransactions = False,
    id_: Id = None,
    restart: Restart = False,
    state: State = None,
    execute: Execute = False,
) -> None:
    """Write the records of an archive to topics.

    Keys, values, headers and timestamps are those of the archive, and each partition keeps its order. Without --execute the
    plan is shown and nothing changes.

    Each transaction also commits the position of the replay, as offsets of the group kgctl-replay-ID. The same command
    therefore continues a replay that was interrupted or killed, and no record is lost or written twice. If the archive has
    grown, the same command writes what is new.
    """
    pace = parse_rate(rate), parse_speed(speed)
    if replicas is not None and not create:
        raise typer.BadParameter("Give it with --create.", param_hint="'--replication-factor'")
    if shift is not None and is_now:
        raise typer.BadParameter("Give one of them.", param_hint="'--shift-time', '--now'")
    by_key = one_of(partitions, ("same", "by-key"), "--partitions") == "by-key"
    texts: dict[str, object] = {
        "keys": sorted(key or ()), "key_match": key_match, "from": since, "until": until, "shift": shift, "now": is_now,
        "by_key": by_key,
    }  # fmt: skip
    ctx.with_resource(kept_in_place(folder))
    archive = read_archive(folder)
    targets = _targets(archive, to, topic or [], all_topics)
    if execute:
        check_change(ctx, list(targets.values()), f"`{ctx.command_path}` with --execute")
    chosen = settings(ctx)
    with chosen.admin() as admin:
        cluster_id = admin.cluster_id()
        if cluster_id == archive.cluster_id and any(source == target for source, target in targets.items()):
            raise Precondition(
                "the archive is of this cluster, and a topic would be written to itself: give it another name with --to or "
                "--topic NAME=NEW"
            )
        wanted = {"cluster_id": cluster_id, "source_cluster_id": archive.cluster_id, **texts}
        name = id_ or id_of(wanted)
        if not name.startswith(PREFIX):
            name = PREFIX + name
        kept = (state or folder / FOLDER) / name
        replay_settings, resolved = _settings(name, wanted, targets, kept, no_transactions)
        replay_settings = _with_first_counts(admin, archive, replay_settings)
        rows = _plan(admin, archive, replay_settings, create=create, restart=restart)
        if not execute:
            _conclude(chosen, rows, replay_settings, execute=False)
            return
        if any(row.error for row in rows):
            _conclude(chosen, rows, replay_settings, execute=True)
        if importlib.util.find_spec("pyarrow") is None:
            raise PipelinesMissing("a replay needs pyarrow: pip install 'kgctl[pipelines]'")
        with locked(kept):
            _create(chosen, admin, archive, rows, replicas)
        rows = _carry_out(chosen, admin, archive, replay_settings, resolved, rows, pace, compression, kept, restart)
    _conclude(chosen, rows, replay_settings, execute=True)


def _targets(archive: Archive, to: str | None, topics: Sequence[str], everything: bool) -> dict[str, str]:
    """Which topics of the archive go where."""
    known = archive.topics
    if everything and (topics or to):
        raise typer.BadParameter("Give one of them.", param_hint="'--all-topics', '--topic', '--to'")
    if everything:
        return {name: name for name in known}
    if to is not None:
        names = list(topics) or list(known)
        if len(names) != 1:
            raise typer.BadParameter(
                f"the archive has {len(known)} topics: choose one with --topic."
                if not topics
                else "--to names one topic; for several, use --topic NAME=NEW.",
                param_hint="'--to'",
            )
        found = {names[0]: to}
    elif topics:
        found = distinct((_renamed(text, known) for text in topics), "--topic")
    else:
        raise typer.BadParameter("Give --to TOPIC, --topic or --all-topics.", param_hint="'--to'")
    for name in found:
        if name not in known:
            raise NotFound(f"the archive has no topic {name!r}; it has {', '.join(known)}")
    if len(set(found.values())) < len(found):
        raise typer.BadParameter("two topics would be written to one.", param_hint="'--topic'")
    return found


def _renamed(text: str, known: Mapping[str, object]) -> tuple[str, str]:
    """Names of topics cannot contain the sign."""
    old, equals, new = text.partition("=")
    if equals and not new:
        raise typer.BadParameter(f"{text!r} names no topic.", param_hint="'--topic'")
    return old, new or old


def _settings(
    name: str, wanted: Mapping[str, Any], targets: Mapping[str, str], kept: Path, no_transactions: bool
) -> tuple[ReplaySettings, dict[str, Any]]:
    """The settings, and as they are kept. What a first run has resolved stays: `now-1h` must not move with each run."""
    found = kept_settings(kept)
    if found is not None:
        differing = [one for one, value in wanted.items() if found.get(one) != value]
        if differing:
            raise Precondition(
                f"replay {name} was begun with other options ({', '.join(differing)}): repeat those, or give another --id"
            )
        resolved = {**found, "sources": dict(found["sources"])}
    else:
        resolved = {
            **wanted,
            "since_ms": None if wanted["from"] is None else parse_datetime(wanted["from"], "--from"),
            "until_ms": None if wanted["until"] is None else parse_datetime(wanted["until"], "--until"),
            "shift_ms": _shift_ms(wanted["shift"]),
            "sources": {},
        }
        check_span(resolved["since_ms"], resolved["until_ms"])
    for source, target in targets.items():
        if resolved["sources"].setdefault(target, source) != source:
            other = resolved["sources"][target]
            raise Precondition(f"replay {name} has written topic {other!r} to {target!r}: give another --id")
    try:
        return settings_of(name, resolved, targets, in_transactions=not no_transactions), resolved
    except re.error as error:
        text = f"{wanted['key_match']!r} is not a regular expression: {error}."
        raise typer.BadParameter(text, param_hint="'--key-match'") from None


def _with_first_counts(admin: Admin, archive: Archive, replay_settings: ReplaySettings) -> ReplaySettings:
    from kgctl.pipelines.replay.positions import first_counts

    found = admin.stored_topics(list(replay_settings.sources))
    counts = {name: one.partitions for name, one in found.items() if isinstance(one, StoredTopic)}
    return replace(replay_settings, counts=first_counts(admin, archive, replay_settings, counts))


def _plan(
    admin: Admin, archive: Archive, replay_settings: ReplaySettings, *, create: bool, restart: bool
) -> list[ReplayRow]:
    from kgctl.pipelines.replay.positions import read_positions

    found = admin.stored_topics(list(replay_settings.sources))
    stored = [one for one in found.values() if isinstance(one, StoredTopic)]
    lengths = admin.run(log_ends(admin.cluster, stored)) if stored else {}
    counts = {one.topic: one.partitions for one in stored}
    positions = read_positions(admin, archive, replay_settings, counts, is_stable=False)
    if restart:
        positions = {part: n for part, n in positions.items() if part.topic not in replay_settings.targets.values()}
    configs: dict[str, dict[str, str | None]] = {}
    for row in admin.topic_configs([one.topic for one in stored], all_of_them=True) if stored else ():
        configs.setdefault(row.topic, {})[row.config] = row.value
    moment = int(time.time() * 1000)
    return plan_rows(archive, replay_settings, found, lengths, positions, configs, moment, creates=create)


def _create(chosen: Settings, admin: Admin, archive: Archive, rows: Sequence[ReplayRow], replicas: int | None) -> None:
    """Create the topics that do not exist yet, each with its facts in the archive.

    Raises Damaged, and creates none, if the archive lacks a file of them.
    """
    found = admin.stored_topics([row.target for row in rows])
    missing = [row for row in rows if found[row.target] is None]
    path = archive.missing_file({row.topic for row in missing})
    if path is not None:
        raise Damaged(f"{path}: the file is missing; no topic was created")
    for row in missing:
        _create_one(chosen, admin, row.target, archive.topics[row.topic], replicas)


def _create_one(chosen: Settings, admin: Admin, target: str, facts: TopicFacts, replicas: int | None) -> None:
    made = keep(
        chosen,
        admin,
        "topics create",
        lambda: topics_created(admin, [target]),
        lambda: admin.create_topics(
            [target], partitions=facts.partitions, replicas=replicas, configs=facts.configs, note=note
        ),
    )
    conclude((one.error for one in made), len(made))
    note(f"Created topic '{target}' with {counted(facts.partitions, 'partition')}.")


def _carry_out(
    chosen: Settings,
    admin: Admin,
    archive: Archive,
    replay_settings: ReplaySettings,
    resolved: Mapping[str, Any],
    rows: Sequence[ReplayRow],
    pace: tuple[float | None, float | None],
    compression: Compression,
    kept: Path,
    restart: bool,
) -> list[ReplayRow]:
    from broker.protocol.compression import Codec
    from kgctl.pipelines.replay.pacing import Pace
    from kgctl.pipelines.replay.running import Means, run_replay
    from kgctl.pipelines.replay.sending import UnusableRecord

    found = admin.stored_topics(list(replay_settings.sources))
    counts = {name: one.partitions for name, one in found.items() if isinstance(one, StoredTopic)}
    total, began = sum(row.left for row in rows), time.monotonic()
    interruption = Interruption()
    line = ProgressLine(json_lines=False)

    def on_progress(records: int) -> None:
        seconds = time.monotonic() - began
        speed = records / seconds if seconds else None
        left = (total - records) / speed if speed and total > records else None
        line.show(Progress("progress", job="replay", records=records, records_per_s=speed, eta_s=left))

    means = Means(
        admin,
        chosen.connection(),
        kept,
        Codec[compression.name],
        _waiting(interruption),
        interruption.may_interrupt,
        on_progress,
    )
    # The same command would begin again, and write the same records a second time.
    continues = "the command without --restart continues" if restart else "the same command continues"
    try:
        with interruption:
            done = run_replay(
                archive,
                replay_settings,
                counts,
                Pace(*pace),
                means,
                restart=restart,
                begun=lambda: keep_settings(kept, {**resolved, "counts": {**counts, **replay_settings.counts}}),
            )
    except Interrupted:
        line.close()
        note(f"Interrupted. What was committed stays; {continues} from there.")
        raise typer.Exit(INTERRUPTED) from None
    except UnusableRecord:
        line.close()
        raise
    except KgctlError:
        line.close()
        note(f"The replay has not reached its end; {continues} it.")
        raise
    line.close()
    by_topic: dict[str, int] = {}
    for partition, records in done.items():
        by_topic[partition.topic] = by_topic.get(partition.topic, 0) + records
    return [replace(row, replayed=by_topic.get(row.target, 0), left=0, note=None, status=DONE) for row in rows]


def _waiting(interruption: Interruption) -> Callable[[float], None]:
    def wait(seconds: float) -> None:
        if interruption.requested or (seconds and select.select([interruption.fileno], [], [], seconds)[0]):
            raise Interrupted

    return wait


def _conclude(chosen: Settings, rows: Sequence[ReplayRow], replay_settings: ReplaySettings, *, execute: bool) -> None:
    if execute:
        rows = [replace(row, status="skipped") if row.status == "planned" else row for row in rows]
    chosen.show(rows, kind=KIND)
    errors = [row.error for row in rows]
    failed = [error for error in errors if error]
    if not failed:
        how = "" if replay_settings.in_transactions else "; without transactions, a crash repeats records"
        note(f"Replay {replay_settings.id}{how}.")
    note_dry_run(execute, errors, all_or_nothing=True)
    if execute and failed:
        note("Nothing was changed.")
    conclude(errors, len(failed))
    assert not any(row.status == FAILED for row in rows)


def _shift_ms(text: str | None) -> int:
    if text is None:
        return 0
    try:
        return duration_ms(text.removeprefix("+"))
    except BadValue as error:
        raise typer.BadParameter(str(error), param_hint="'--shift-time'") from None
