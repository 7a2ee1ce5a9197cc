"""What a replay would do, topic by topic: what is left of the archive, and whether the target can take it. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from kgctl.client.net.errors import KgctlError, NotFound, Precondition
from kgctl.model.failure import RowError
from kgctl.model.items import StoredTopic
from kgctl.model.pipelines import ReplayRow
from kgctl.model.topic_partition import TopicPartition
from kgctl.pipelines.archive.manifest import Archive
from kgctl.pipelines.replay.settings import ReplaySettings
from kgctl.watch.figures import counted, span

RETENTION, TIMESTAMPS, POLICY = "retention.ms", "message.timestamp.type", "cleanup.policy"
LOG_APPEND_TIME = "LogAppendTime"
# Kafka's, for a topic that is going to be created; its broker may have others.
DEFAULTS = {RETENTION: "604800000", POLICY: "delete"}


def plan_rows(
    archive: Archive,
    settings: ReplaySettings,
    found: Mapping[str, StoredTopic | KgctlError | None],
    lengths: Mapping[str, int | None],
    positions: Mapping[TopicPartition, int],
    configs: Mapping[str, Mapping[str, str | None]],
    now_ms: int,
    *,
    creates: bool,
) -> list[ReplayRow]:
    """A row per topic of the replay. `configs` are those in force in each target, also defaults; `lengths` is how many offsets each target has handed out, `positions` where each part continues."""
    rows = []
    for source, target in settings.targets.items():
        facts, topic = archive.topics[source], found[target]
        files = archive.files()
        spans = {key: span_ for key, span_ in archive.spans.items() if key.topic == source}
        own = [file for file in files if file.topic == source]
        left = sum(
            min(file.records, max(0, file.last_offset + 1 - positions.get(TopicPartition(target, file.partition), 0)))
            for file in own
            if settings.chosen.overlaps(file.min_timestamp_ms, file.max_timestamp_ms)
        )
        times = [time for file in own for time in (file.min_timestamp_ms, file.max_timestamp_ms) if time >= 0]
        is_resumed = any(settings.part_of(key) in positions for key in spans)
        notes = []
        if is_resumed:
            notes.append("continues an earlier run" if left else "is replayed already")
        elif isinstance(topic, StoredTopic) and lengths.get(target):
            notes.append(f"the target has {counted(lengths[target] or 0, 'offset')} already")
        if topic is None and creates:
            notes.append(f"will be created with {counted(facts.partitions, 'partition')}")
        if left and (creates or isinstance(topic, StoredTopic)):
            its = configs.get(target, {}) if isinstance(topic, StoredTopic) else {**DEFAULTS, **facts.configs}
            notes += _about_configs(its, settings, min(times, default=now_ms), now_ms)
        if any(hole.topic == source for hole in archive.holes()):
            notes.append("the archive lacks records that retention had deleted")
        error = _obstacle(target, topic, max(key.partition for key in spans) + 1, settings, creates)
        rows.append(
            ReplayRow(
                topic=source,
                target=target,
                partitions=facts.partitions,
                records=sum(file.records for file in own),
                left=left,
                size_bytes=sum(file.size for file in own),
                oldest_ms=min(times, default=None),
                newest_ms=max(times, default=None),
                note="; ".join(notes) or None,
                status="failed" if error else "planned",
                error=error,
            )
        )
    return rows


def _obstacle(
    target: str, topic: StoredTopic | KgctlError | None, needed: int, settings: ReplaySettings, creates: bool
) -> RowError | None:
    """Why the target cannot take the records."""
    if isinstance(topic, KgctlError):
        return topic.as_row()
    if topic is None:
        advice = "add --create to create it with the partitions and configs of the archive"
        return None if creates else NotFound(f"topic {target!r} does not exist: {advice}").as_row()
    if not settings.by_key and topic.partitions < needed:
        advice = f"add --partitions by-key, or `kgctl topics alter {target} --partitions {needed}`"
        have = f"has {counted(topic.partitions, 'partition')}, the archive has {needed}"
        return Precondition(f"topic {target!r} {have}: {advice}").as_row()
    return None


def _about_configs(
    configs: Mapping[str, str | None], settings: ReplaySettings, oldest_ms: int, now_ms: int
) -> list[str]:
    """What the target's configs do to records as they are replayed."""
    notes = []
    if configs.get(TIMESTAMPS) == LOG_APPEND_TIME:
        return ["LogAppendTime: the target replaces the timestamps"]
    retention = configs.get(RETENTION) or ""
    if not settings.is_now and "delete" in (configs.get(POLICY) or "") and retention.isdigit():
        age_s, keeps_s = (now_ms - oldest_ms - settings.shift_ms) / 1000, int(retention) / 1000
        if age_s > keeps_s:
            notes.append(
                f"the oldest record is {span(age_s)} old, and retention.ms deletes records after {span(keeps_s)}"
            )
    return notes
